"""README's first command, in a virtual environment with nothing of ours on any path."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def copy_of_the_tree(folder: Path) -> Path:
    """Return a copy of the files that git tracks."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).exists():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
    return folder


def snippet_of_readme() -> str:
    found = re.search(r"```python\n(from laso import Tagger\n.*?)```", README, re.DOTALL)
    assert found
    return found[1]


README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs a clone, to copy what git tracks")
def test_pip_install_and_the_five_lines_of_readme_in_an_empty_environment(tmp_path):
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "LASO_", "VIRTUAL_ENV", "COV_"))
    }
    environment["LASO_CACHE"] = str(tmp_path / "cache")
    tree, home = copy_of_the_tree(tmp_path / "tree"), tmp_path / "empty"

    def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            list(map(str, command)), env=environment, cwd=home, capture_output=True, text=True
        )

    home.mkdir()
    assert run(sys.executable, "-m", "venv", "venv").returncode == 0
    python = home / "venv" / "bin" / "python"
    reachable = run(python, "-m", "pip", "download", "--no-deps", "--dest", "wheels", "hatchling")
    if reachable.returncode:
        pytest.skip("no package index is reachable")
    installed = run(python, "-m", "pip", "install", tree)
    assert installed.returncode == 0, installed.stdout + installed.stderr
    (home / "five_lines.py").write_text(snippet_of_readme(), encoding="utf-8")
    predicted = run(python, "five_lines.py")
    assert predicted.stdout == "[['DET', 'NOUN', 'VERB']]\n", predicted.stdout + predicted.stderr
