"""Speed where users feel it, where it is spent, and more workers."""
