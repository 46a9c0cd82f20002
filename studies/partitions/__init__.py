"""Coreference in novels: ``Clusterer(preset="coreference")`` on the folds of LitBank.

litbank   the folds, the systems, and the scores of each: litbank.json
report    litbank.md and its picture, from litbank.json alone
"""
