"""``python -m laso``: the command line, where the script ``laso`` is not on the path."""

from laso.cli import main

if __name__ == "__main__":
    main()
