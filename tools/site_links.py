"""Hooks of mkdocs: links from the pages to other files of the repository work on the site too.

A picture outside docs/ becomes a file of the site. Any other file is linked where the repository is
published, by the address in ``[project.urls]``. A file that does not exist is left to mkdocs, which
then fails.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PICTURES = ("experiments/results/*.svg", "benchmarks/results/*.svg")
BRANCH = "main"
CODE = r"^(?:```|~~~).*?^(?:```|~~~)\s*?$|`[^`\n]*`"
TEXT = r"(?:[^\[\]]|!?\[[^\[\]]*\](?:\([^()\s]*\))?)*"
LINK = re.compile(
    rf'(?P<code>{CODE})|(?P<before>\[{TEXT}\]\()(?P<target>[^()\s]+)(?P<after>(?:\s+"[^"]*")?\))',
    re.MULTILINE | re.DOTALL,
)

INNER = re.compile(r"\]\(([^()\s]+)\)")  # a picture as the text of a link


def repository() -> str:
    """The address of the repository."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["urls"]["Source"])


def links(markdown: str) -> Iterator[str]:
    """The targets of all links and pictures outside code."""
    for found in LINK.finditer(markdown):
        if found["code"] is None:
            yield from INNER.findall(found["before"])
            yield found["target"]


def relinked(markdown: str, change: Callable[[str], str]) -> str:
    """The page with each target of a link changed."""

    def replaced(found: re.Match[str]) -> str:
        if found["code"] is not None:
            return found[0]
        before = INNER.sub(lambda inner: f"]({change(inner[1])})", found["before"])
        return before + change(found["target"]) + found["after"]

    return LINK.sub(replaced, markdown)


def site_target(target: str, page: Path) -> str:
    """Where a link of a page in docs/ leads on the site."""
    name, mark, anchor = target.partition("#")
    if not name or re.match(r"[a-z][a-z+.-]*:|/", name):
        return target
    file = Path(os.path.normpath(page.parent / name))
    if file.is_relative_to(DOCS) or not file.exists() or not file.is_relative_to(ROOT):
        return target
    path = file.relative_to(ROOT)
    if any(path.match(pattern) for pattern in PICTURES):
        return Path(os.path.relpath(DOCS / path, page.parent)).as_posix() + mark + anchor
    kind = "tree" if file.is_dir() else "blob"
    return f"{repository()}/{kind}/{BRANCH}/{path.as_posix()}{mark}{anchor}"


def on_files(files: Any, *, config: Any) -> Any:
    """Add the pictures of the results to the site."""
    from mkdocs.structure.files import File

    for pattern in PICTURES:
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Redirect the links of a page that lead out of docs/."""
    return relinked(markdown, lambda target: site_target(target, Path(page.file.abs_src_path)))
