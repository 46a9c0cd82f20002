"""The build backend: hatchling, with the project's own requirements for wheels.

A wheel carries machine code, which the project itself makes (see hatch_build.py). An editable
installation carries none and asks for no more than hatchling.
"""

import os
import tomllib
from pathlib import Path
from typing import Any

from hatchling import build
from hatchling.build import (  # noqa: F401  (part of the interface of a backend)
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
)


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Returns what making machine code needs, unless none is made."""
    found: list[str] = build.get_requires_for_build_wheel(config_settings)
    if os.environ.get("LASO_MACHINE_CODE"):
        return found
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [*found, *project["dependencies"]]
