"""Run the commands that README.md shows and put their output between its markers.

A marker names the command: ``<!-- make demo -->``, up to ``<!-- end -->``. Of the tests only the
summary is shown, without the time they took. ``python tools/readme.py "make demo"`` runs only that.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
COMMANDS = ("make demo", "make test")  # in this order: the tests look at the demo


def shown(command: str) -> str:
    """The output of a command as a block; a command that fails ends this one too."""
    environment = os.environ | {"NO_COLOR": "1"}
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "MAKEFLAGS", "MAKELEVEL"):
        environment.pop(name, None)
    run = subprocess.run(
        command.split(), cwd=README.parent, env=environment, capture_output=True, text=True
    )
    if run.returncode:
        sys.exit(f"{command} failed, README.md keeps its old output:\n{run.stdout}{run.stderr}")
    lines = [line.rstrip() for line in run.stdout.strip().splitlines()]
    if command == "make test":
        lines = [re.sub(r" in [\d.]+s.*", "", lines[-1])]
    return "\n".join(["```text", f"$ {command}", *lines, "```", ""])


def main() -> None:
    """Write each block as soon as its command has run."""
    for command in sys.argv[1:] or COMMANDS:
        output = shown(command)
        before, marker, rest = README.read_text(encoding="utf-8").partition(f"<!-- {command} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        if not (marker and end):
            sys.exit(f"README.md has no place for the output of {command}")
        README.write_text(before + marker + output + end + after, encoding="utf-8")


if __name__ == "__main__":
    main()
