"""Run the commands that README.md shows and put their output between its markers.

A marker names the command: ``<!-- make demo -->``, up to ``<!-- end -->``. Of the tests only the
summary is shown, without the time they took.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"(<!-- (make \w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def shown(command: str) -> str:
    """The output of a command as a block; a command that fails ends this one too."""
    environment = os.environ | {"NO_COLOR": "1"}
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "MAKEFLAGS", "MAKELEVEL"):
        environment.pop(name, None)
    run = subprocess.run(
        command.split(), cwd=README.parent, env=environment, capture_output=True, text=True
    )
    if run.returncode:
        sys.exit(f"{command} failed, README.md is left as it was:\n{run.stdout}{run.stderr}")
    lines = [line.rstrip() for line in run.stdout.strip().splitlines()]
    if command == "make test":
        lines = [re.sub(r" in [\d.]+s.*", "", lines[-1])]
    return "\n".join(["```text", f"$ {command}", *lines, "```", ""])


if __name__ == "__main__":
    before = README.read_text(encoding="utf-8")
    after = BLOCK.sub(lambda m: m[1] + shown(m[2]) + m[3], before)
    README.write_text(after, encoding="utf-8")
