"""laso against other programs on the same data."""
