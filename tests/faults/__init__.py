"""Faults on purpose: calls that fail, processes that are killed, forks and threads at bad moments.

``python -m tests.faults`` runs the campaign and writes its figures.
"""
