"""What the documents say is so: their Python runs, their links lead somewhere, names exist."""

import re
import subprocess
import sys
from importlib import import_module
from io import StringIO
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console

import laso
from laso.cli import demo

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.md")]
)
WITH_PYTHON = [path for path in DOCUMENTS if "```python" in path.read_text(encoding="utf-8")]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ANY_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")


def named(path):
    return str(path.relative_to(ROOT))


def text_of(path):
    return path.read_text(encoding="utf-8")


def test_the_documents_are_there():
    names = {named(path) for path in DOCUMENTS}
    assert {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/index.md"} <= names
    for folder in ("tutorial", "how-to", "reference", "explanation"):
        assert any(name.startswith(f"docs/{folder}/") for name in names)


@pytest.mark.parametrize("path", WITH_PYTHON, ids=named)
def test_python_in_documents_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = text_of(path)
    # A module like that of a file, where classes and functions find where they come from.
    module = ModuleType("document")
    monkeypatch.setitem(sys.modules, "document", module)
    for block in BLOCK.finditer(text):
        # Empty lines before it, so that a traceback tells the line of the document.
        lines_before = text[: block.start(1)].count("\n")
        code = compile("\n" * lines_before + block[1], str(path), "exec")
        exec(code, vars(module))


def test_no_python_is_overlooked():
    for path in WITH_PYTHON:
        assert len(BLOCK.findall(text_of(path))) == text_of(path).count("```python")


def test_the_example_of_the_readme_is_short_and_complete(tmp_path):
    (example,) = BLOCK.findall(text_of(ROOT / "README.md"))
    assert len(example.splitlines()) <= 30
    assert "class" in example
    assert "fit(" in example
    assert "assert" in example
    file = tmp_path / "example.py"
    file.write_text(example, encoding="utf-8")
    run = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_relative_links_resolve(path):
    for target in LINK.findall(ANY_BLOCK.sub("", text_of(path))):
        if not re.match(r"https?:", target):
            name, _, heading = target.partition("#")
            there = (path.parent / name).resolve() if name else path
            assert there.exists(), f"{named(path)} links to {target}"
            if heading:
                assert heading in headings(text_of(there)), f"{named(path)} links to {target}"


def headings(text):
    """The anchors of a document, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", ANY_BLOCK.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_no_path_of_one_machine_is_in_a_document(path):
    places = r"(?<![\w.:/])/(?:work|home|root|tmp|Users|mnt|usr|opt|var)/|[A-Z]:\\"
    assert not re.search(places, text_of(path))
    assert str(ROOT) not in text_of(path)
    assert str(Path.home()) + "/" not in text_of(path)


def test_the_index_leads_to_every_page():
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / target).resolve() for target in LINK.findall(text_of(index))}
    assert linked >= {path for path in (ROOT / "docs").rglob("*.md") if path != index}


def test_the_site_has_every_page():
    text = text_of(ROOT / "mkdocs.yml")
    for path in (ROOT / "docs").rglob("*.md"):
        assert f"- {path.relative_to(ROOT / 'docs').as_posix()}\n" in text


def listed():
    """The names in the first columns of the tables of the reference."""
    return re.findall(r"^\| `([\w.]+)` \|", text_of(ROOT / "docs/reference/api.md"), re.MULTILINE)


def test_the_reference_lists_every_public_name_once():
    names = [name for name in listed() if "." not in name]
    assert sorted(names) == sorted(laso.__all__)


@pytest.mark.parametrize("name", [name for name in listed() if "." in name])
def test_names_of_modules_in_the_reference_exist(name):
    module, _, attribute = name.rpartition(".")
    if module == "laso":
        import_module(name)
    else:
        assert getattr(import_module(module), attribute).__doc__


def test_make_targets_in_documents_exist():
    makefile = text_of(ROOT / "Makefile")
    for path in DOCUMENTS:
        for target in re.findall(r"(?:`|^ +|\$ |<!-- )make (\w+)", text_of(path), re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{named(path)}: {target}"


def test_files_that_contributing_names_exist():
    for name in re.findall(r"`((?:src|tests)/[\w/.]+)`", text_of(ROOT / "CONTRIBUTING.md")):
        assert (ROOT / name).exists(), name


def output_of(command):
    block = rf"<!-- {command} -->\n```text\n\$ {command}\n(.*?)\n```\n<!-- end -->"
    found = re.search(block, text_of(ROOT / "README.md"), re.DOTALL)
    assert found, f"README.md has no output of {command}: run make readme"
    return found[1]


def test_the_demo_in_the_readme_is_that_of_the_present_corpus_and_settings():
    shown = output_of("make demo")
    console = Console(file=StringIO(), soft_wrap=True, highlight=False)
    demo.say_plan(console, demo.Settings(), *demo.parts())
    assert isinstance(console.file, StringIO)
    plan = console.file.getvalue()
    assert shown.startswith(plan), "run make readme"
    assert len(re.findall(r"^  epoch ", shown, re.MULTILINE)) == demo.Settings().epochs
    assert "\x1b" not in shown
