"""The plots: no text covers another, names stay off the points, and numbers are plain."""

import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from laso.pictures.marks import LETTER
from laso.pictures.search import drawn
from studies.measure import load
from studies.paper import parsing, table3

ROOT = Path(__file__).parents[1]
FIGURES = [f"table{n}-{kind}" for n in (1, 2) for kind in ("time", "curves")]
FIGURES += ["table3-heat", "parsing-beams", "peers", "growth"]


@pytest.fixture
def plots():
    pytest.importorskip("matplotlib")
    from studies import plots

    return plots


@pytest.fixture
def texts(plots, monkeypatch):
    """Draws a figure by its name from the results kept, or by a function; boxes of its texts."""
    from matplotlib.text import Text

    boxes: dict[Text, tuple[str, Any]] = {}

    def measured(figure, path):
        plain = Text.draw

        def draw(self, renderer):
            if self.get_visible() and self.get_text():
                boxes[self] = (self.get_text(), Text.get_window_extent(self, renderer))
            plain(self, renderer)

        with monkeypatch.context() as patch:
            patch.setattr(Text, "draw", draw)
            figure.canvas.draw()
        assert figure.get_figwidth() <= plots.WIDTH
        for text, box in boxes.values():
            assert figure.bbox.x0 <= box.x0, text
            assert box.x1 <= figure.bbox.x1 + 1, text
        plots.pyplot.close(figure)
        return path

    monkeypatch.setattr(plots, "save_figure", measured)

    def drawn(draw):
        boxes.clear()
        draw()
        return list(boxes.values())

    return drawn


def drawing(name, plots):
    """What draws a figure that is kept in the repository, from the results beside it."""

    if name in ("peers", "growth"):
        rows = load(ROOT / "benchmarks" / "results" / f"{name}.json")
        return lambda: getattr(plots, name)(rows, Path())
    experiment, kind = name.split("-")
    rows = load(ROOT / "experiments" / "results" / f"{experiment}.json")
    if kind == "beams":
        matched = [row for row in rows if row["train_beam"] == row["decode_beam"]]
        return lambda: plots.over_beams(parsing.by_beam(matched), Path(), "LAS")
    if kind == "heat":
        return lambda: table3.draw(rows, Path())
    return lambda: getattr(plots, {"time": "times", "curves": "curves"}[kind])(rows, Path())


def collisions(boxes, slack=0.5):
    """Pairs of texts that cover each other by more than half a pixel both ways."""
    found = []
    for (one, a), (other, b) in combinations(boxes, 2):
        wide = min(a.x1, b.x1) - max(a.x0, b.x0)
        high = min(a.y1, b.y1) - max(a.y0, b.y0)
        if wide > slack and high > slack:
            found.append((one, other))
    return found


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_covers_another(name, plots, texts):
    boxes = texts(drawing(name, plots))
    assert len(boxes) > 10
    assert collisions(boxes) == []


def test_names_of_points_that_lie_together_keep_apart(plots, texts):
    rows = [
        {"row": f"a long name {i}", "features": "paper", "resources": [], "seed": 0}
        | {"cpu_s": 50.0 + i % 3, "f": 93.0 + i % 4 / 100, "held_out": [1.0]}
        for i in range(12)
    ]
    boxes = texts(lambda: plots.times(rows, Path()))
    assert sum(text.startswith("a long name") for text, _ in boxes) == 12
    assert collisions(boxes) == []


@pytest.mark.parametrize(
    ("limits", "labels"),
    [
        ((0.9, 1200.0), ["1", "10", "100", "1,000"]),
        ((2000.0, 40_000.0), ["3,000", "10,000", "30,000"]),
        ((25.0, 400.0), ["30", "100", "300"]),
        ((60.0, 95.0), ["60", "70", "80", "90"]),
        ((41.0, 45.0), ["41", "42", "43", "44", "45"]),
        ((0.04, 1.3), ["0.1", "0.3", "1"]),
    ],
)
def test_logarithmic_axes_have_plain_numbers(plots, limits, labels):
    figure, axis = plots.pyplot.subplots()
    axis.set(xscale="log", xlim=limits)
    plots.log_ticks(axis.xaxis)
    figure.canvas.draw()
    assert [label.get_text() for label in axis.get_xticklabels()] == labels
    plots.pyplot.close(figure)


def test_the_picture_of_a_search_has_room_for_long_words():
    words = ["internationalisation", "of", "extraordinarily", "Donaudampfschifffahrt"]
    sizes = {1: (5, None), 2: (1, None), 3: (3, None), 4: (2, 2)}
    rounds, n = [], 0
    for covered, (size, rank) in sizes.items():
        cards = []
        for place in range(1, size + 1):
            n += 1
            label, text = "AVERYLONGLABELOFACHUNK", " ".join(words[:covered])
            node = {"node": n, "parent": 0, "label": label, "text": text, "score": -1234.5}
            cards.append({**node, "good": place == rank, "rank": place})
        word = {"title": words[covered - 1], "made": 1234, "hidden": 0, "pruned": []}
        rounds.append({**word, "kept": cards, "gold": rank})
    path = {"predicted": [n - 1], "known": True, "fell": {"round": 2, "rank": 9}}
    svg = drawn({**path, "words": words, "rounds": rounds}, alone=False)
    assert ">dropped here<" in svg
    assert ">inside a step<" in svg
    # The cards of both paths, and those that explain them.
    assert len(re.findall(r'<rect[^>]*class="card (?:gold|predicted)', svg)) == 2 + 3
    found = re.findall(r'<text x="(\d+)" y="(\d+)"([^>]*)>([^<]*)</text>', svg)
    assert len(found) == svg.count("<text")
    places = []
    for x, y, rest, text in found:
        width = len(text) * LETTER
        left = int(x) - width if 'text-anchor="end"' in rest else int(x)
        places.append((int(y), left, left + width, text))
    places.sort()
    (right,) = map(int, re.findall(r'viewBox="0 0 (\d+)', svg))
    for i, (y, _, end, text) in enumerate(places):
        after = [other for other in places[i + 1 :] if other[0] == y]
        assert end <= (after[0][1] if after else right) + 1, text
