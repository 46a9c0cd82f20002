"""Small problems, one file each: examples to read, and run with python -m laso.examples.NAME."""
