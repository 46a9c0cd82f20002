"""The rules of the house that a script can check: sizes, and which module may import which."""

import ast
import doctest
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import laso

ROOT = Path(laso.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
AROUND = sorted(
    path
    for folder in ("studies", "tests", "tools")
    for path in (Path(__file__).parents[1] / folder).rglob("*.py")
)
LONGEST_FILE, LONGEST_BODY = 500, 60
FORBIDDEN = {
    "features": ("laso.tasks", "laso.estimators", "laso.cli"),
    "tasks": ("laso.estimators", "laso.cli"),
}


def module_of(path: Path) -> str:
    parts = ("laso", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function from its first to its last statement, the docstring not counted."""
    body = function.body
    if ast.get_docstring(function, clean=False) is not None:
        body = body[1:]
    if not body:
        return 0
    end = body[-1].end_lineno
    assert end is not None
    return end - body[0].lineno + 1


def long_functions(tree: ast.AST) -> list[tuple[str, int]]:
    return [
        (node.name, body_lines(node))
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and body_lines(node) > LONGEST_BODY
    ]


def imports(tree: ast.AST, module: str, *, is_package: bool) -> Iterator[tuple[str, str]]:
    """Modules that a module imports, and the names from them; "" for a module as a whole."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                up = node.level - is_package
                parts = module.split(".")[: len(module.split(".")) - up]
                source = ".".join([*parts, *filter(None, [source])])
            yield from ((source, alias.name) for alias in node.names)


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def private_uses(tree: ast.AST, module: str, *, is_package: bool) -> list[str]:
    """Private names of other modules of laso that a module imports, or reads off a module."""
    found = []
    modules = {}  # the names that modules of laso have in this one
    for source, name in imports(tree, module, is_package=is_package):
        if source.split(".")[0] == "laso" and source != module:
            parts = [*source.split("."), name]
            found += [f"{source}.{name}"] if any(map(is_private, parts)) else []
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            prefix = "" if isinstance(node, ast.Import) else f"{node.module}."
            for alias in node.names:
                full = f"{prefix}{alias.name}"
                if full in MODULES:
                    modules[alias.asname or alias.name] = full
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in modules
            and is_private(node.attr)
        ):
            found.append(f"{modules[node.value.id]}.{node.attr}")
    return found


MODULES = {module_of(path) for path in FILES}


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_files_and_functions_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE
    assert long_functions(parsed(path)) == []


@pytest.mark.parametrize("path", AROUND, ids=lambda path: path.stem)
def test_files_around_the_package_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_private_name_of_another_module_is_used(path):
    is_package = path.name == "__init__.py"
    assert private_uses(parsed(path), module_of(path), is_package=is_package) == []


@pytest.mark.parametrize("folder", FORBIDDEN)
def test_features_and_tasks_depend_on_nothing_above_them(folder):
    wrong = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        is_package = path.name == "__init__.py"
        for source, name in imports(parsed(path), module_of(path), is_package=is_package):
            for module in (source, f"{source}.{name}"):
                if any(f"{module}.".startswith(f"{other}.") for other in FORBIDDEN[folder]):
                    wrong.append(f"{name_of(path)}: {module}")
    assert wrong == []


WITH_EXAMPLES = [path for path in FILES if "\n    >>> " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=name_of)
def test_examples_in_docstrings(path):
    failed, tried = doctest.testmod(import_module(module_of(path)))
    assert tried
    assert not failed


EXEMPT = {
    "laso": {"Node", "Step", "Dataset", "CompiledProblem", "cost_of", "ArrayTask", "siblings"},
    "laso.data": {"Block", "Sentence", "Token", "cache_folder", "find_corpus"},
    "laso.metrics": {
        *("Chunk", "Tags"),
        *("flat_precision_score", "flat_recall_score", "flat_fbeta_score"),  # as flat_f1_score
    },
    "laso.features": {"Atom"},
    "laso.crfsuite": set(),
}


@pytest.mark.parametrize("name", EXEMPT)
def test_public_names_have_an_example(name):
    """Except for errors, plain records, and what the documents show at length."""
    module = import_module(name)
    without = {
        public
        for public in getattr(module, "__all__", vars(module))
        if callable(value := getattr(module, public))
        and not public.startswith("_")
        and ">>> " not in (value.__doc__ or "")
        and not (isinstance(value, type) and issubclass(value, Exception))
    }
    assert without - {"Any"} == EXEMPT[name]


def test_the_checks_can_fail():
    lines = "\n".join(f"    a{i} = {i}" for i in range(LONGEST_BODY + 1))
    text = (
        f'def short():\n    """{"x" * 10}"""\n    return 1\ndef long():\n    """Text."""\n{lines}\n'
    )
    assert long_functions(ast.parse(text)) == [("long", LONGEST_BODY + 1)]

    def uses(text, module="laso.tasks.base"):
        return private_uses(ast.parse(text), module, is_package=False)

    assert uses("from laso.search import _step") == ["laso.search._step"]
    assert uses("from ..search import _step") == ["laso.search._step"]
    assert uses("from laso import search\nsearch._step()") == ["laso.search._step"]
    assert uses("from laso import __version__\nimport numpy as np\nnp._x") == []
    relative = imports(
        ast.parse("from ..estimators import tagger"), "laso.tasks.x", is_package=False
    )
    assert list(relative) == [("laso.estimators", "tagger")]
