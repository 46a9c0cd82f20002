"""Dry runs of a user's own problem, uncompiled, in arrays that notice every mistake."""
