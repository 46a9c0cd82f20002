"""Record linkage: laso's ``Clusterer(preset="records")`` beside splink, dedupe and recordlinkage.

data      the tables, divided by entities, and the candidates that all systems share
systems   one function for each system: learn from one half, find the links of the other
run       measures each system in a process of its own: linkage.json
report    linkage.md, from linkage.json alone
"""
