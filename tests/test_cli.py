"""The command line as users meet it: help, exit codes, the demo, pipes, terminals and Ctrl-C."""

import html
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import typer.main
from typer.testing import CliRunner

import laso
import laso.examples.chunking
from laso import beam
from laso.cli import app, demo, picture
from laso.data import load_bundled
from laso.metrics import Chunk, chunks
from laso.pictures.search import verdict
from tests.commands import without_notice

ROOT = Path(__file__).parents[1]
LASO = [sys.executable, "-c", "from laso.cli import main; main()"]
# The same with a small part of the corpus, where only the manner of the output matters.
SMALL = [
    sys.executable,
    "-c",
    "import laso.data as d; whole = d.load_bundled(); "
    "d.load_bundled = lambda: (whole[0][:10], whole[1][:5]); "
    "from laso.cli import main; main()",
]
# A sentence with two annotations: training never converges, however late Ctrl-C comes. A process
# whose ancestor was started in the background ignores Ctrl-C unless told otherwise.
ENDLESS = [
    *SMALL[:2],
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    + SMALL[2].replace(
        "whole[0][:10]", "whole[0][:10] + [[(w, p, 'O') for w, p, _ in whole[0][0]]]"
    ),
]
PLAIN = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "TTY_COMPATIBLE")}


@pytest.fixture(scope="module", autouse=True)
def _elsewhere(tmp_path_factory):
    """The demo writes its picture to the current folder."""
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("here"))
    yield
    os.chdir(before)


def run(*arguments, command=LASO):
    shown = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, env=PLAIN, timeout=300, check=False
    )
    shown.stderr = without_notice(shown.stderr)
    return shown


def commands():
    group = typer.main.get_command(app)
    return dict(group.commands)  # type: ignore[attr-defined]


# help, version, exit codes


def test_help_names_the_commands_and_has_an_example():
    shown = run("--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "Example: laso " in shown.stdout
    for name in commands():
        assert re.search(rf"^  {name} ", shown.stdout, re.MULTILINE)


def test_every_command_has_help_with_an_example_that_parses():
    for name, command in commands().items():
        shown = CliRunner().invoke(app, [name, "--help"])
        assert shown.exit_code == 0
        example = re.search(rf"Example: laso {name} (.*)", shown.output)
        assert example
        command.make_context(name, example[1].split())


def test_the_version_is_that_of_the_package():
    shown = run("--version")
    assert (shown.returncode, shown.stdout) == (0, f"laso {laso.__version__}\n")


@pytest.mark.parametrize(
    "arguments",
    [["--unknown"], ["demo", "--unknown"], ["unknown"], ["demo", "unknown"], ["demo", "--seed=no"]],
)
def test_wrong_usage_exits_with_2_and_says_what_is_wrong(arguments):
    shown = run(*arguments)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert arguments[-1].partition("=")[0] in shown.stderr


@pytest.mark.parametrize("option", ["--beam", "--epochs"])
def test_numbers_below_1_exit_with_2(option):
    shown = CliRunner().invoke(app, ["demo", option, "0"])
    assert shown.exit_code == 2
    assert option in shown.stderr


def test_an_error_of_the_data_is_one_line_and_exits_with_3():
    broken = (
        "import laso.data as d; from laso import BadData\n"
        "def load(): raise BadData('train.txt:3: found nothing')\n"
        "d.load_bundled = load\n"
        "from laso.cli import main; main()"
    )
    shown = run("demo", command=[sys.executable, "-c", broken])
    assert (shown.returncode, shown.stdout) == (3, "")
    assert shown.stderr == "laso: train.txt:3: found nothing\n"


@pytest.mark.parametrize("start", ["import laso", "from laso.cli import main; main()"])
def test_nothing_heavy_is_imported_at_the_start(start):
    code = (
        "import atexit, sys; sys.argv = ['laso', '--help']\n"
        "heavy = ('numpy', 'numba', 'sklearn', 'scipy', 'laso.examples', 'laso.engine')\n"
        "atexit.register(lambda: print('heavy:', [m for m in heavy if m in sys.modules]))\n" + start
    )
    shown = run(command=[sys.executable, "-c", code])
    assert shown.stdout.splitlines()[-1] == "heavy: []"


def test_the_reference_lists_the_options_of_every_command():
    text = (ROOT / "docs/reference/command-line.md").read_text(encoding="utf-8")
    head, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    assert set(re.findall(r"^\| `(--[\w-]+)`", head, re.MULTILINE)) == {"--version", "--help"}
    for name, command in commands().items():
        (section,) = [s for s in sections if s.startswith(f"laso {name}\n")]
        documented = re.findall(r"^\| `(--[\w-]+)`", section, re.MULTILINE)
        opts = [option for parameter in command.params for option in parameter.opts]
        options = {option for option in opts if option.startswith("-")}  # the rest are arguments
        assert sorted(documented) == sorted({*options, "--help"})


# the demo on the whole corpus


@pytest.fixture(scope="module")
def result():
    shown = run("demo", "--json", "--epochs", "1", "--beam", "2")
    assert shown.returncode == 0, shown.stderr
    return json.loads(shown.stdout)


def test_the_demo_learns_far_more_than_the_baseline(result):
    train, test = load_bundled()
    assert result["training"]["sentences"] == len(train)
    assert result["test"]["sentences"] == len(test)
    f, baseline = result["test"]["laso"]["f"], result["test"]["baseline"]["f"]
    assert f >= 85
    assert baseline <= f - 10


def test_the_json_says_how_it_was_trained(result):
    assert result["settings"] == {"epochs": 1, "beam": 2, "seed": 0, "held_out": False}
    (epoch,) = result["training"]["epochs"]
    assert epoch["epoch"] == 1
    assert 0 < epoch["error_rate"] <= 1
    assert epoch["updates"] == result["training"]["updates"] > 0
    assert result["training"]["interrupted"] is False


def test_two_test_sentences_are_tagged(result):
    _, test = load_bundled()
    assert len(result["tagged"]) == 2
    for sentence, shown in zip(test, result["tagged"], strict=False):
        assert shown["words"] == [word for word, _, _ in sentence]
        gold = [Chunk(start, end, label) for label, start, end in shown["gold"] if label != "O"]
        assert gold == chunks([tag for _, _, tag in sentence])
        assert [start for _, start, _ in shown["predicted"]] == [
            0,
            *(end for _, _, end in shown["predicted"][:-1]),
        ]
        assert shown["predicted"][-1][2] == len(sentence)


def chunks_to(node, nodes):
    """The chunks of a hypothesis that ends with this card."""
    before = nodes.get(node["parent"])
    chunk = [node["label"], *node["items"]]
    return [chunk] if before is None else [*chunks_to(before, nodes), chunk]


def test_the_search_shows_the_beam_and_the_rank_of_the_gold_path(result):
    search = result["search"]
    words, rounds = search["words"], search["rounds"]
    gold = search["sentence"]["gold"]
    nodes = {node["node"]: node for row in rounds for node in row["kept"]}
    assert any(row["gold"] not in (1, None) or search["fell"] for row in rounds)
    assert [row["title"] for row in rounds] == words
    for covered, row in enumerate(rounds, start=1):
        kept = row["kept"]
        assert 1 <= len(kept) <= 2
        assert row["hidden"] == 0
        scores = [node["score"] for node in (*kept, *row["pruned"])]
        assert scores == sorted(scores, reverse=True)
        assert all(node["items"][1] == covered for node in (*kept, *row["pruned"]))
        assert row["made"] >= len(scores)
        assert [node["rank"] for node in kept] == list(range(1, len(kept) + 1))
        paths = [chunks_to(node, nodes) for node in kept]
        right = [i for i, path in enumerate(paths, 1) if path == gold[: len(path)]]
        assert row["gold"] == (right[0] if right else None)
        assert [i for i, node in enumerate(kept, 1) if node["good"]] == right
    assert chunks_to(rounds[-1]["kept"][0], nodes) == search["sentence"]["predicted"]
    assert search["predicted"][0] == rounds[-1]["kept"][0]["node"]


def test_what_fell_off_the_beam_is_flagged_where_it_did(result):
    search = result["search"]
    fell, rounds = search["fell"], search["rounds"]
    if search["right"] or fell is None:
        assert "gold path has" in search["verdict"]
        return
    lost = rounds[fell["round"]]
    assert lost["gold"] is None
    (good,) = [node for node in lost["pruned"] if node["good"]]
    assert fell["rank"] == good["rank"] > len(lost["kept"])
    assert fell["behind"] == lost["kept"][-1]["score"] - good["score"] >= 0
    assert all(row["gold"] is None for row in rounds[fell["round"] :])
    assert f"After “{lost['title']}”" in search["verdict"]


def test_the_sentence_drawn_is_the_shortest_with_an_error_else_the_shortest():
    sentences = [[("w", "X", tag)] * n for n, tag in ((4, "O"), (3, "I-NP"), (2, "O"))]

    class Model:
        def __init__(self, tag):
            self.tag = tag

        def predict(self, X):
            return [[self.tag] * len(x) for x in X]

    assert len(demo.interesting(Model("O"), sentences)) == 3  # type: ignore[arg-type]
    assert len(demo.interesting(Model("I-NP"), sentences)) == 2  # type: ignore[arg-type]
    assert len(demo.interesting(Model("O"), sentences[::2])) == 2  # type: ignore[arg-type]


def test_held_out_sentences_are_a_tenth_of_the_training_part():
    train, test = load_bundled()
    rest, held_out = demo.parts(held_out=True)
    assert len(held_out) == len(train) // 10
    assert sorted(rest + held_out) == sorted(train)
    assert not any(sentence in test for sentence in held_out)
    assert demo.parts() == (train, test)


# the manner of the output


def node_of(number, parent, label, items, *, good):
    words = " ".join(["Go", "<&>"][slice(*items)])
    told = {"operator": [1, 0], "added": 1.0, "goal": items[1] == 2, "text": words}
    return {
        "node": number,
        "parent": parent,
        "label": label,
        "items": items,
        "score": 1.25,
        **told,
        "good": good,
        "rank": number,
    }


def search_with(rank):
    """A search over two words, at whose end the gold path has this rank."""
    first = node_of(1, 0, "NP", [0, 1], good=True)
    ends = [node_of(n, 1, "<b>", [1, 2], good=n - 1 == rank) for n in (2, 3)]
    lost = [] if rank else [node_of(4, 1, "VP", [1, 2], good=True)]
    rounds = [
        {"title": "Go", "made": 3, "kept": [first], "hidden": 0, "pruned": [], "gold": 1},
        {"title": "<&>", "made": 3, "kept": ends, "hidden": 0, "pruned": lost, "gold": rank},
    ]
    fell = None if rank else {"round": 1, "rank": 4, "behind": 0.0}
    path = {"words": ["Go", "<&>"], "rounds": rounds, "predicted": [2, 1], "known": True}
    return {**path, "right": rank == 1, "score": 1.25, "fell": fell}


@pytest.mark.parametrize(
    ("rank", "expected"),
    [
        (1, "The gold path has the best score wherever one of its steps ends."),
        (2, "has only the 2nd best score. At the end it is 2nd best, so the prediction is wrong"),
        (None, "After “<&>” the gold path is no longer in the queue. It cannot come back"),
    ],
)
def test_the_picture_says_how_the_gold_path_fared(rank, expected):
    search = search_with(rank)
    told = verdict(search) or ""
    assert expected in told
    sentence = {"words": ["Go", "<&>"], "predicted": [], "gold": []}
    page = picture.search_page({**search, "verdict": told}, sentence)
    assert html.escape(told) in page
    (svg,) = re.findall("<svg.*</svg>", page, re.DOTALL)
    root = ElementTree.fromstring(svg)
    texts = [element.text for element in root.iter() if element.tag.endswith("}text")]
    assert {"Go", "<&>", "<b>", "start"} <= set(texts)
    assert ("dropped here" in texts) == (rank is None)


def test_the_page_needs_nothing_else(result):
    page = Path(result["picture"]).read_text(encoding="utf-8")
    assert Path(result["picture"]).name == "laso-search.html"
    assert page == picture.search_page(result["search"], result["search"]["sentence"])
    links = re.findall(r"""(?:src|href|url|import)\b[=("' ]+([^"')]+)""", page)
    assert links == []
    assert re.findall(r"https?://[^\s\"]+", page) == ["http://www.w3.org/2000/svg"]


def test_bracketed_shows_chunks_and_leaves_words_outside_alone():
    shown = [("NP", 0, 2), ("VP", 2, 3), ("O", 3, 4)]
    assert picture.bracketed(["The", "cat", "sat", "."], shown) == "[NP The cat] [VP sat] ."


def test_piped_output_is_plain_lines():
    shown = run("demo", "--epochs", "2", "--beam", "2", command=SMALL)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert not re.search(r"[^\n\x20-\x7e]", shown.stdout)
    assert len(re.findall(r"^  epoch \d of 2: ", shown.stdout, re.MULTILINE)) == 2
    baseline, ours = re.findall(r"^  .*?((?: +\d+\.\d){3})$", shown.stdout, re.MULTILINE)
    assert len(baseline.split()) == len(ours.split()) == 3
    assert shown.stdout.endswith("One search as a picture, for a browser: laso-search.html\n")
    assert len(shown.stdout.splitlines()) <= 15


def test_the_same_seed_gives_the_same_output():
    shown = [run("demo", "--epochs", "1", "--beam", "1", command=SMALL).stdout for _ in range(2)]
    other = run("demo", "--epochs", "1", "--beam", "1", "--seed", "1", command=SMALL).stdout
    assert shown[0] == shown[1]
    assert [line for line in other.splitlines() if line not in shown[0].splitlines()]


def test_with_json_stdout_is_json_and_progress_goes_to_stderr():
    shown = run("demo", "--epochs", "2", "--beam", "1", "--json", command=SMALL)
    assert json.loads(shown.stdout)["settings"]["beam"] == 1
    assert [line.split(":")[0] for line in shown.stderr.splitlines()] == [
        "  epoch 1 of 2",
        "  epoch 2 of 2",
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_gets_colours_and_a_progress_bar():
    import pty

    leader, follower = pty.openpty()
    environment = {k: v for k, v in PLAIN.items() if k != "NO_COLOR"} | {"TERM": "xterm-256color"}
    process = subprocess.Popen(
        [*SMALL, "demo", "--epochs", "2", "--beam", "1"],
        stdout=follower,
        stderr=follower,
        env=environment,
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:  # Linux: the other end was closed
            break
        if not piece:
            break
        shown += piece
    os.close(leader)
    assert process.wait(timeout=60) == 0
    text = shown.decode()
    assert "\x1b[1m" in text
    assert re.search(r"epoch 2 of 2, errors \d+\.\d %", text)
    assert "\u2501" in text  # a piece of the bar


# Ctrl-C


def interrupted(when, *arguments):
    """Run the demo and press Ctrl-C as soon as ``when`` is seen on stderr."""
    command = ["demo", "--json", "--beam", "2", "--epochs", "10000", "--seed", "3", *arguments]
    with subprocess.Popen(
        [*ENDLESS, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=PLAIN,
    ) as process:
        assert process.stderr is not None
        before = ""
        while when not in before:
            line = process.stderr.readline()
            assert line, before
            before += line
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return process.returncode, out, before + err


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent in another way there")
def test_ctrl_c_keeps_what_was_learned_and_goes_on_to_the_evaluation():
    code, out, err = interrupted("epoch 1 of")
    result = json.loads(out)
    assert code == 0
    assert result["training"]["interrupted"] is True
    assert 1 <= len(result["training"]["epochs"]) < 10000
    assert f"what {result['training']['updates']} updates taught is kept" in err
    assert result["test"]["laso"]["f"] > 0


def test_ctrl_c_before_anything_was_learned_exits_with_130(monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("laso.Chunker.fit", interrupt)
    shown = CliRunner().invoke(app, ["demo"])
    assert shown.exit_code == 130
    assert shown.output.endswith("  interrupted before anything was learned\n")


def test_training_that_converges_is_not_called_interrupted(monkeypatch):
    train, test = load_bundled()
    monkeypatch.setattr("laso.data.load_bundled", lambda: (train[:3], test[:3]))
    shown = CliRunner().invoke(app, ["demo", "--json", "--epochs", "200"])
    training = json.loads(shown.stdout)["training"]
    assert len(training["epochs"]) < 200
    assert training["epochs"][-1]["error_rate"] == 0
    assert training["interrupted"] is False


def test_the_demo_uses_the_queue_asked_for(monkeypatch):
    widths = []

    def noted(width, **options):
        widths.append(width)
        return beam(width, **options)

    train, test = load_bundled()
    monkeypatch.setattr("laso.data.load_bundled", lambda: (train[:3], test[:3]))
    monkeypatch.setattr("laso.beam", noted)
    assert CliRunner().invoke(app, ["demo", "--beam", "7", "--epochs", "1"]).exit_code == 0
    assert widths == [7]
