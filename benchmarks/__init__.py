"""Measure laso against its peers on CoNLL-2000: ``python -m benchmarks --help``."""
