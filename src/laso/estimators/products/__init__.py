"""The estimators of the built-in tasks: short lists of parameters."""
