"""What the documents say is so: their Python runs, their links lead somewhere, names exist."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from laso import (
    Chunker,
    Clusterer,
    Parser,
    SearchEstimator,
    Tagger,
    Task,
    adagrad,
    arow,
    exact,
    with_vectors,
)
from laso.cli import demo
from laso.engine.weights.row_layouts import MANY_LABELS
from laso.examples.segmentation import LINES, Segmentation
from laso.files import container
from laso.tasks.batches import BatchTask
from tools import figures, site_links

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.md")]
)
WITH_PYTHON = [path for path in DOCUMENTS if "```python" in path.read_text(encoding="utf-8")]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ANY_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINKED = sorted(
    {*DOCUMENTS, *(ROOT / "benchmarks").rglob("*.md"), *(ROOT / "experiments").rglob("*.md")}
)


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


def test_the_examples_of_the_readme_are_short_and_complete(tmp_path):
    first, example = BLOCK.findall(text_of(ROOT / "README.md"))
    assert len(first.strip().splitlines()) <= 6
    assert "fit(" in first
    assert len(example.splitlines()) <= 30
    assert "class" in example
    assert "fit(" in example
    assert "assert" in example
    for text, output in ((first, first.rpartition("# ")[2]), (example, "")):
        file = tmp_path / "example.py"
        file.write_text(text, encoding="utf-8")
        run = subprocess.run(
            [sys.executable, str(file)], capture_output=True, text=True, check=False
        )
        assert (run.returncode, run.stderr) == (0, "")
        assert run.stdout == output


def measured(name):
    return json.loads((ROOT / f"benchmarks/results/{name}.json").read_text(encoding="utf-8"))


def peers():
    return measured("peers")


def test_the_tables_of_the_readme_come_from_the_measurements():
    places = list(figures.PLACE.finditer(text_of(ROOT / "README.md")))
    assert [place[2] for place in places] == list(figures.SHORTER)
    for place in places:
        text = figures.SHORTER[place[2]](measured(place[2]))
        assert place[0] == place[1] + text + place[3], "run tools/figures.py"
    shown = figures.short_peers(peers()[:-1])
    assert shown.count("\n| ") == 2 + len(figures.SHORT) - 1  # a row that is not there is left out
    for row in peers():
        if row["system"] != "laso":  # no peer is left out
            assert (row["system"], row["config"]) in figures.SHORT


def test_every_peer_of_a_line_is_in_the_readme():
    rows = measured("speed")
    lines = figures.short_speed(rows).splitlines()[2:]
    assert len(lines) == len(figures.FAST)
    for (key, config), line in zip(figures.FAST, lines, strict=True):
        values = {row["value"] for row in rows if row["key"] == key and row["config"] == config}
        assert values
        for peer in {row["system"] for row in rows if row["key"] == key} - {"laso"}:
            assert peer in figures.PEERS
        assert f"{max(values):,.0f}" in line


def test_what_the_readme_says_of_its_table_holds():
    rows = {(row["system"], row["config"]): row for row in peers()}
    best, ours = rows["python-crfsuite", "lbfgs"], rows["laso", "beam 5"]
    assert all(best["f"] > row["f"] for row in rows.values() if row is not best)
    for (system, _), row in rows.items():
        if system != "laso" and row is not best:
            assert row["f"] < ours["f"]
            assert row["train_s"] > ours["train_s"]
            assert row["tokens_per_s"] < ours["tokens_per_s"]


@pytest.mark.parametrize("path", LINKED, ids=named)
def test_relative_links_resolve(path):
    for target in site_links.links(text_of(path)):
        if not re.match(r"https?:", target):
            name, _, heading = target.partition("#")
            there = (path.parent / name).resolve() if name else path
            assert there.exists(), f"{named(path)} links to {target}"
            assert there.is_relative_to(ROOT), f"{named(path)} links to {target}"
            if heading:
                assert heading in headings(text_of(there)), f"{named(path)} links to {target}"


def headings(text):
    """The anchors of a document, as GitHub makes them: the second of a name ends with -1."""
    titles = re.findall(r"^#+ (.+)$", ANY_BLOCK.sub("", text), re.MULTILINE)
    seen = Counter[str]()
    anchors = set()
    for title in titles:
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        anchors.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return anchors


def test_links_are_found_wherever_they_are():
    text = """
[over two
lines](a.md) and [titled](b.md "a title"), ![picture](c.svg), [![badge](d.svg)](e.md#f)
`[no](code.md)`
```text
[no](block.md)
```
[brackets [in] text](g.md)
"""
    assert list(site_links.links(text)) == ["a.md", "b.md", "c.svg", "d.svg", "e.md#f", "g.md"]
    assert list(site_links.links(site_links.relinked(text, str.upper))) == [
        *("A.MD", "B.MD", "C.SVG", "D.SVG", "E.MD#F", "G.MD")
    ]
    assert "`[no](code.md)`\n```text\n[no](block.md)" in site_links.relinked(text, str.upper)
    assert headings("# A b\n## C, d\n# A b\n") == {"a-b", "c-d", "a-b-1"}


def test_links_out_of_the_site_lead_to_the_repository_and_pictures_come_along():
    page = ROOT / "docs" / "explanation" / "table1.md"
    source = site_links.repository()
    for target, expected in {
        "exact.md#x": "exact.md#x",
        "#x": "#x",
        "https://example.org/a": "https://example.org/a",
        "../../CHANGELOG.md#x": f"{source}/blob/main/CHANGELOG.md#x",
        "../../src/laso": f"{source}/tree/main/src/laso",
        "../../benchmarks/results/peers.svg": "../benchmarks/results/peers.svg",
        "../../nonesuch.md": "../../nonesuch.md",  # mkdocs complains of it
        "../../../outside": "../../../outside",
    }.items():
        assert site_links.site_target(target, page) == expected


def test_no_link_of_the_site_leaves_it_but_by_an_address():
    for path in (ROOT / "docs").rglob("*.md"):
        for target in site_links.links(text_of(path)):
            there = site_links.site_target(target, path)
            if not re.match(r"https?:", there):
                name = there.partition("#")[0]
                on_site = (path.parent / name).resolve() if name else path
                assert on_site.is_relative_to(ROOT / "docs"), f"{named(path)}: {target}"


def test_the_site_is_strict_with_all_links():
    text = text_of(ROOT / "mkdocs.yml")
    block = text[text.index("\nvalidation:") : text.index("\nnav:\n  - index.md")]
    assert re.findall(r"(\w+): (?!warn)(\w+)", block) == []
    for name in ("not_found", "anchors", "absolute_links", "unrecognized_links", "omitted_files"):
        assert f"{name}: warn" in block
    # With --quiet, mkdocs counts no warnings, and strict has no effect.
    assert re.findall(r"mkdocs build.*", text_of(ROOT / "Makefile")) == ["mkdocs build --strict"]


def test_one_place_says_where_the_project_is_published():
    text = text_of(ROOT / "pyproject.toml")
    urls = tomllib.loads(text)["project"]["urls"]
    assert set(urls) == {"Documentation", "Source", "Changelog", "Issues"}
    source = site_links.repository()
    for url in urls.values():
        rest = url.removeprefix(source)
        assert rest != url
        found = re.fullmatch(r"/(?:tree|blob)/main/(.+)", rest)
        assert rest in ("", "/issues") or (found and (ROOT / found[1]).exists()), url
    for path in [ROOT / "mkdocs.yml", *LINKED, *(ROOT / "tools").glob("*.py")]:
        assert source not in text_of(path), named(path)


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_no_path_of_one_machine_is_in_a_document(path):
    places = r"(?<![\w.:/])/(?:work|home|root|tmp|Users|mnt|usr|opt|var)/|[A-Z]:\\"
    assert not re.search(places, text_of(path))
    assert str(ROOT) not in text_of(path)
    assert str(Path.home()) + "/" not in text_of(path)


def test_the_index_leads_to_every_page():
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / target).resolve() for target in site_links.links(text_of(index))}
    assert linked >= {path for path in (ROOT / "docs").rglob("*.md") if path != index}


def test_the_site_has_every_page():
    text = text_of(ROOT / "mkdocs.yml")
    for path in (ROOT / "docs").rglob("*.md"):
        assert f"- {path.relative_to(ROOT / 'docs').as_posix()}\n" in text


def test_make_targets_in_documents_exist():
    makefile = text_of(ROOT / "Makefile")
    for path in DOCUMENTS:
        for target in re.findall(r"(?:`|^ +|\$ |<!-- )make (\w+)", text_of(path), re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{named(path)}: {target}"


def test_files_that_contributing_names_exist():
    for name in re.findall(r"`((?:src|tests)/[\w/.]+)`", text_of(ROOT / "CONTRIBUTING.md")):
        assert (ROOT / name).exists(), name


def test_the_page_on_tasks_has_every_part_of_a_task():
    page = text_of(ROOT / "docs/reference/tasks.md")
    own = {**vars(BatchTask), **vars(Task)}
    parts = {name for name in own if not name.startswith("_")} | {"problem"}
    assert {name for name in parts if not re.search(rf"`{name}[`(]", page)} == set()
    methods = set(re.findall(r"`(\w+)\([^`]*\)`", page))
    assert methods - parts - {"beam", "perceptron", "predict_confidence"} == set()


def class_sources(text):
    """The classes of a program as trees, without docstrings."""
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef):
            node.body = node.body[ast.get_docstring(node) is not None :]
            found[node.name] = ast.dump(node)
    return found


def test_the_tutorial_on_tasks_is_the_example_of_the_package():
    example = text_of(ROOT / "src/laso/examples/segmentation.py")
    tutorial = class_sources(
        "\n".join(BLOCK.findall(text_of(ROOT / "docs/tutorial/your-own-task.md")))
    )
    for name, source in class_sources(example).items():
        assert tutorial[name] == source
    classes = example[example.index("class Words") : example.index("LINES =")]
    assert sum(bool(line.strip()) for line in classes.splitlines()) < 80


def first_columns(page, heading, level="##"):
    """The names in the first column of the tables below a heading, up to the next heading."""
    section = page.partition(f"{level} {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.+?) \|", section, re.MULTILINE)
    return [re.findall(r"`([^`]+)`", row) for row in rows]


def test_the_page_on_model_files_names_what_a_file_has(tmp_path):
    page = text_of(ROOT / "docs/reference/model-file.md")
    named_keys = {name for row in first_columns(page, "The header") for name in row}
    named_tensors = set()
    for heading in ("The tensors", "Files without compression"):
        for first, *more in first_columns(page, heading):
            stem = first.rpartition(".")[0]
            named_tensors |= {first, *(stem + name if name[0] == "." else name for name in more)}
    X, y = [line.replace(" ", "") for line in LINES], [line.split() for line in LINES]
    own = SearchEstimator(Segmentation(), queue=exact(), update=adagrad(), epochs=1).fit(X, y)
    chunker = Chunker(epochs=1).fit([[("The", "B-NP"), ("dog", "I-NP")]])
    dicts = Tagger(epochs=1, update=arow()).fit([[{"word": "a"}, {"word": "b"}]], [["A", "B"]])
    words = tmp_path / "words.txt"
    words.write_text("dog\n", encoding="utf-8")
    listed = [f'w.list("{words}")[0]', "w[0]", "pos[0]"]
    plain = Tagger(epochs=1, features=listed).fit([[("The", "DT", "A"), ("dog", "NN", "B")]])
    many = [[str(i) for i in range(MANY_LABELS)]]
    sparse = Tagger(epochs=1, features=["w.lower[0]", "w[0]"], queue=1).fit(many, many)
    tagged, trees = [[("Dogs", "N"), ("bark", "V")]] * 2, [[(2, "nsubj"), (0, "root")]] * 2
    dense = Tagger(epochs=1).fit([with_vectors(["a", "b"], np.eye(2))], [["A", "B"]])
    keys: set[str] = set()
    tensors: set[str] = set()
    cases: list[tuple[Any, dict[str, Any]]] = [
        (own, {"training": True}),
        (dense, {}),
        (chunker, {"precision": "float16"}),
        (dicts, {"training": True}),
        (plain, {}),
        (sparse, {"compress": False, "training": True}),
        (Parser(epochs=1, tagger=Tagger(epochs=1), folds=2).fit(tagged, trees), {}),
        (Clusterer(epochs=1, features=["0[item]", "1[last]"]).fit([[("a", "b")]], [[0]]), {}),
    ]
    for model, options in cases:
        model.save(tmp_path / "model", **options)
        header, arrays = container.read_file(tmp_path / "model")
        keys |= header.keys() | header["learned"].keys()
        tensors |= arrays.keys()
    assert named_keys == keys
    assert named_tensors == tensors


def test_the_page_on_model_files_has_the_present_format():
    page = text_of(ROOT / "docs/reference/model-file.md")
    assert re.findall(r"^\| `format` \| (\d+)", page, re.MULTILINE) == [str(container.FORMAT)]


PRIVATE = re.compile(
    r"\bmade over\b|\bso many\b|\blaso\.(?:dial|mixed|explanation)\b|\blaso mix\b|\bmixed\("
    r"|\bdial\b|\b(?:facts|notes|encoder)_\b|\btemplates=|\bbetween=|\bwanted\b"
    r"|finds the rest out"
)
OTHERS = {  # the changelog lists old names
    "CHANGELOG.md",
    "docs/reference/command-line.md",
    "docs/how-to/use-the-command-line.md",
}


@pytest.mark.parametrize("path", [p for p in DOCUMENTS if named(p) not in OTHERS], ids=named)
def test_documents_use_the_words_of_the_field(path):
    text = re.sub(r"<!-- (?:figures|make) .*?<!-- end -->", "", text_of(path), flags=re.DOTALL)
    assert PRIVATE.findall(text) == []


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


def test_contributing_lists_the_second_tier():
    from tests.conftest import SLOW

    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([^`]+)` \| ([^|]+) \|$", text, re.MULTILINE)
    assert dict(listed[: len(SLOW)]) == SLOW
