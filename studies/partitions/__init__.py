"""Coreference in novels: ``Clusterer(preset="coreference")`` on the folds of LitBank.

litbank   the folds, the systems, and the scores of each: litbank.json
report    litbank.md, from litbank.json alone
picture   a short story with the clusters that are found in it
"""
