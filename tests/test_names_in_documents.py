"""Names in documents exist: of the reference, the changelog and the page on the architecture."""

import ast
import inspect
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

import laso
from laso import SearchEstimator
from laso.engine.problem import NAMES
from laso.examples.segmentation import LINES, Segmentation

ROOT = Path(__file__).parents[1]


def text_of(path):
    return path.read_text(encoding="utf-8")


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


def test_new_names_in_the_changelog_exist_and_old_ones_do_not():
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", text_of(ROOT / "CHANGELOG.md"), re.MULTILINE)
    assert len(rows) > 15
    for old, new in rows:
        for name in re.findall(r"`(laso(?:\.\w+)+)", new):
            assert resolved(name) is not None
        for name in re.findall(r"`(laso(?:\.\w+)+)", old):
            with pytest.raises((ModuleNotFoundError, AttributeError)):
                resolved(name)
    text = " ".join(new for _, new in rows)
    parameters = re.findall(r"`(Tagger|Chunker|JointTagger)\((\w+)=", text)
    assert len(parameters) == 3
    for name, parameter in parameters:
        assert parameter in inspect.signature(getattr(laso, name).__init__).parameters
    for name in re.findall(r"`model\.(\w+)\(", text):
        assert callable(getattr(SearchEstimator, name))
    for name in re.findall(r"`(\w+)(?:\(|`)", text):
        if not hasattr(laso, name):
            assert name in (*NAMES, "as_html"), name


ARCHITECTURE = ROOT / "docs" / "explanation" / "architecture.md"
LAYERS = [  # as in the picture, the lowest first; a folder imports only from those before it
    {"the paper", "data", "pictures"},
    {"engine"},
    {"features", "encoders"},
    {"tasks"},
    {"estimators"},
    {"crfsuite"},
    {"cli"},
    {"serve"},
]
BESIDE = {
    *("examples", "files", "__init__", "__main__"),
}


def resolved(name):
    """The object of a dotted name."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            thing = import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[n:]:
            thing = getattr(thing, attribute)
        return thing
    raise ModuleNotFoundError(name)


def dotted(text):
    return re.findall(r"`(laso(?:\.\w+)+)`", text)


@pytest.mark.parametrize("name", sorted(set(dotted(text_of(ARCHITECTURE)))))
def test_names_in_the_architecture_exist(name):
    assert resolved(name) is not None


def test_paths_in_the_architecture_exist():
    paths = re.findall(r"`(src/[\w/.]+)`", text_of(ARCHITECTURE))
    assert len(paths) > 20
    for name in paths:
        assert (ROOT / name).exists(), name


def test_files_and_folders_in_the_picture_of_the_architecture_exist():
    picture = ARCHITECTURE.with_suffix(".svg").read_text(encoding="utf-8")
    boxes = re.findall(r'class="name">(.+?)</text>(.+?)(?:<rect|<path)', picture, re.DOTALL)
    assert {name for name, _ in boxes} >= {"engine/", "tasks/", "estimators/"}
    for title, lines in boxes:
        folder = ROOT / "src" / "laso" / (title if title.endswith("/") else "")
        assert folder.is_dir(), title
        for name in re.findall(r"\w+(?:\.py|/)", lines):
            if title != "tasks/" or name not in ("problem.py", "encoder.py", "task.py"):
                assert (folder / name).exists(), f"{title}{name}"
    for task, name in [
        (t, n) for t in ("tagging", "chunking", "joint") for n in ("problem", "task")
    ]:
        assert (ROOT / "src" / "laso" / "tasks" / task / f"{name}.py").exists()


def layer_of(part):
    name = part if any(part in layer for layer in LAYERS) else "the paper"
    return next(i for i, layer in enumerate(LAYERS) if name in layer)


def test_no_folder_imports_from_one_above_it():
    package = ROOT / "src" / "laso"
    folders = {folder for layer in LAYERS for folder in layer}
    found = 0
    for path in package.rglob("*.py"):
        own = path.relative_to(package).with_suffix("").parts[0]
        if own in BESIDE:
            continue
        for node in ast.parse(text_of(path)).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("laso."):
                other = (node.module or "").split(".")[1]
                if other in folders and other != own:
                    found += 1
                    assert layer_of(other) < layer_of(own), f"{path}: {node.module}"
    assert found > 100


def flow(heading):
    """The names in the first column of the table below a heading of the architecture."""
    section = text_of(ARCHITECTURE).partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([\w.]+)` \|", section, re.MULTILINE)


@pytest.mark.parametrize(
    ("heading", "run"),
    [
        ("What happens in fit", lambda model, X, y: model.fit(X, y)),
        ("What happens in predict", lambda model, X, y: model.predict(X)),
    ],
)
def test_the_flows_of_the_architecture_are_the_real_calls(heading, run):
    X, y = [line.replace(" ", "") for line in LINES], [line.split() for line in LINES]
    model = SearchEstimator(Segmentation(), queue=2, epochs=1).fit(X, y)
    calls = []

    def note(frame, event, _):
        if event == "call":
            calls.append(frame.f_code)

    sys.setprofile(note)
    try:
        run(model, X, y)
    finally:
        sys.setprofile(None)
    names = flow(heading)
    assert len(names) >= 8
    seen = iter(calls)
    for name in names:  # kernels are machine code, and compiled code is found once a process
        if ".kernels." not in name and ".native." not in name:
            code = inspect.unwrap(resolved(name)).__code__
            assert any(each is code for each in seen), f"{name} is not called, or not there"
