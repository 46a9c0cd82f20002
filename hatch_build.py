"""Build hook: a wheel carries machine code for the built-in tasks (see tools/machine_code.py).

``LASO_MACHINE_CODE=0`` builds a wheel without it, and ``LASO_MACHINE_CODE=folder`` takes what was
made before. An editable installation has none: its code is compiled when it is first needed.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

INSIDE = "laso/engine/native/code"


class MachineCode(BuildHookInterface):  # type: ignore[misc]
    """Adds the folder of machine code to a wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Makes the code if none is given."""
        given = os.environ.get("LASO_MACHINE_CODE", "")
        if self.target_name != "wheel" or version == "editable" or given == "0":
            return
        folder = Path(given or Path(self.root) / "build" / "machine_code")
        if not given:
            make(Path(self.root), folder)
        if folder.is_dir():  # there is none for processors that no code is made for
            build_data["force_include"][str(folder)] = INSIDE


def make(root: Path, folder: Path) -> None:
    """Runs tools/machine_code.py in a process of its own."""
    paths = [str(root / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]  # pip's own is kept
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, str(root / "tools" / "machine_code.py"), str(folder)]
    subprocess.run(command, env=environment, check=True)
