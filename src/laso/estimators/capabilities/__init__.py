"""What every fitted estimator can tell: one capability a file, for every task."""
