"""One file per task: what a user could write."""
