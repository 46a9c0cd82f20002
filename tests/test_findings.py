"""What the pages say of the figures is so: each statement names a check of the results it rests on.

A statement ends with ``<!-- holds: NAME -->``; the function of that name below must be true of the
JSON files. When results change, this file tells which sentences have to change with them.
"""

import re
from pathlib import Path

import pytest

from studies.measure import load
from studies.paper import additions, ewt, margins, parsing, table1, table2, table3, updates
from studies.paper.joint import BEAMS, SCORES
from studies.peers import growth
from studies.peers import joint as crfsuite
from studies.report import FEWEST, NOT_SHOWN, SHOWN, Contrast, judge, sample
from tests import coreference_findings, tree_findings, vector_findings  # noqa: F401 (registered)
from tests.findings import CHECKS, holds

ROOT = Path(__file__).parents[1]
NAMES = ["joint", "table1", "trees", "speed", "defaults", "coreference", "vectors"]
PAGES = [ROOT / "docs" / "explanation" / f"{name}.md" for name in NAMES]
MARK = re.compile(r"<!-- holds: ([\w-]+) -->")
ALL = ("abbreviations", "clusters", "lexicon", "names", "places", "stop-words")
LISTS = ("abbreviations", "names", "places", "stop-words")
NONE = ()
FAMILIES = ("LaSOp", "LaSOa")
TIME = {"train_s", "test_s", "cpu_s"}
SCORED = {"f", "precision", "recall", *SCORES, "all_acc", "upos_acc", "xpos_acc", "feats_acc"}
SCORED |= {*parsing.MEASURES, "dev", "conll", "score"}


class Results:
    """The results kept, or the same with every score and every time set to one value."""

    def __init__(self, constant=None):
        self.constant = constant

    def _altered(self, value):
        if isinstance(value, list):
            return [self._altered(one) for one in value]
        if not isinstance(value, dict) or self.constant is None:
            return value
        altered = {key: self._altered(one) for key, one in value.items()}
        altered |= dict.fromkeys((SCORED | TIME | {"tokens_per_s"}) & value.keys(), self.constant)
        if "held_out" in value:
            altered["held_out"] = [self.constant for _ in value["held_out"]]
        return altered

    def all(self, experiment, folder="experiments"):
        return self._altered(load(ROOT / folder / "results" / f"{experiment}.json"))

    def of(self, experiment, resources, features="rich"):
        return [
            row
            for row in self.all(experiment)
            if tuple(row["resources"]) == resources and row["features"] == features
        ]

    def resources(self, experiment):
        return {tuple(row["resources"]) for row in self.all(experiment)}

    def held_out(self, experiment, resources, features="rich"):
        """The held-out score of each epoch, by rows."""
        return {
            entry["row"]: entry["held_out"]
            for entry in self._altered(load(ROOT / "experiments/results/chosen.json"))[
                experiment
            ].values()
            if tuple(entry["resources"]) == resources and entry["features"] == features
        }


@holds("growth")
def nothing_grows_faster_than_in_proportion(results):
    rows = growth.exponents(results.all("growth", "benchmarks"))
    ours = [row for row in rows if row["system"] == "laso"]
    with_labels = [
        row[name] for row in ours if row["curve"] == "labels" for name in ("train_s", "decode_s")
    ]
    return all(0.35 < exponent < 0.65 for exponent in with_labels) and all(
        row[name] < 1.0 for row in ours for name in growth.MEASURES
    )


def seeds(rows):
    """How many seeds each row has."""
    return {name: len({r["seed"] for r in rows if r["row"] == name}) for name in names(rows)}


def names(rows):
    return list(dict.fromkeys(row["row"] for row in rows))


def mean(rows, row, measure):
    found = sample(rows, row, measure)
    assert found is not None, f"{row} was not measured"
    return found.mean


def above(rows, one, other, measure):
    """By how much the mean of one row is above that of another."""
    return mean(rows, one, measure) - mean(rows, other, measure)


# --------------------------------------------------------------------------- Tables 2 and 3


@holds("resources")
def resources(results):
    both = {ALL, NONE}
    return results.resources("table2") == both and all(
        results.resources(name) == {ALL} for name in ("table3", "updates")
    )


@holds("few-seeds")
def few_seeds(results):
    tables = [results.of("table2", resources) for resources in (ALL, NONE)]
    found = [n for rows in (*tables, results.all("table3")) for n in seeds(rows).values()]
    return set(found) == {FEWEST}


@holds("table2-paper")
def table2_paper(results):
    def reached(rows, row, measure):
        return mean(rows, row, measure) >= getattr(table2.PAPER[row], measure)

    full, bare = results.of("table2", ALL), results.of("table2", NONE)
    large = {measure: measure == "tag_acc" for measure in SCORES}
    return (
        names(full) == list(table2.ROWS)
        and all(reached(full, f"LaSOp_{b}", m) for b in BEAMS for m in SCORES)
        and all(reached(full, f"LaSOa_{b}", m) == large[m] for b in BEAMS for m in SCORES)
        and not any(reached(bare, row, m) for row in names(bare) for m in SCORES)
    )


@holds("table2-updates")
def table2_updates(results):
    differences = [
        above(rows, f"LaSOa_{b}", f"LaSOp_{b}", "joint_acc")
        for rows in (results.of("table2", ALL), results.of("table2", NONE))
        for b in BEAMS
        if f"LaSOa_{b}" in names(rows)
    ]
    return len(differences) == 8 and min(differences) < 0 < max(map(abs, differences)) < 0.3


@holds("table2-chunk-accuracy")
def table2_chunk_accuracy(results):
    rows = results.of("table2", ALL)
    large = {row: printed for row, printed in table2.PAPER.items() if row.startswith("LaSOa")}
    lowest = min(printed.chunk_acc for printed in large.values())
    everything = ("table2", "table3", "updates")
    return (
        all(p.chunk_acc - mean(rows, row, "chunk_acc") > 0.5 for row, p in large.items())
        and all(abs(p.f - mean(rows, row, "f")) < 0.3 for row, p in large.items())
        and all(r["chunk_acc"] < lowest for name in everything for r in results.all(name))
        and lowest == 96.5
    )


def lost(cells, trained, decoded):
    """What weights lose when decoded with another beam."""
    return cells[trained, trained] - cells[trained, decoded]


@holds("table3-diagonal")
def table3_diagonal(results):
    cells = {beams: one.mean for beams, one in table3.grid(results.of("table3", ALL)).items()}
    wide = [b for b in BEAMS if b > 1]
    behind = [max(cells[b, c] for c in BEAMS) - cells[b, b] for b in BEAMS]
    return (
        max(behind) < 0.05
        and 3 < lost(cells, 1, 50) < 4
        and all(0.7 < lost(cells, b, 1) < 1.3 for b in wide)
    )


@holds("table3-readings")
def table3_readings(results):
    caption, text = (
        {(b, c): rows[i][j] for i, b in enumerate(BEAMS) for j, c in enumerate(BEAMS)}
        for rows in table3.READINGS.values()
    )
    cells = {beams: one.mean for beams, one in table3.grid(results.of("table3", ALL)).items()}

    def greedy_loses_more(table):
        return lost(table, 1, 50) > lost(table, 50, 1)

    return greedy_loses_more(cells) and greedy_loses_more(text) and not greedy_loses_more(caption)


@holds("updates-order")
def updates_order(results):
    rows = results.of("updates", ALL)
    (claim,) = updates.CLAIMS
    pairs = [("LaSO", "early update"), ("early update", "standard")]
    paper = [updates.PAPER["LaSO"] - updates.PAPER[row] for row in ("early update", "standard")]
    return (
        all(judge(one, rows).mark == SHOWN for one in claim.contrasts)
        and all(seeds(rows)[row] == 5 for pair in pairs for row in pair)
        and all(above(rows, *pair, "f") < 0.3 for pair in pairs)
        and paper == pytest.approx([1.3, 1.9])
    )


@holds("table2-beams")
def table2_beams(results):
    full, bare = results.of("table2", ALL), results.of("table2", NONE)
    claim = table2.CLAIMS[1]
    return (
        all(
            above(rows, f"{x}_{b}", f"{x}_1", "joint_acc") > 0
            for rows in (full, bare)
            for x in FAMILIES
            for b in (5, 10)
        )
        and all(judge(c, rows).mark == SHOWN for rows in (full, bare) for c in claim.contrasts)
        and all(
            above(full, f"{x}_{b}", f"{x}_10", "joint_acc") <= 0 for x in FAMILIES for b in (25, 50)
        )
        and not {f"{x}_{b}" for x in FAMILIES for b in (25, 50)} & set(names(bare))
    )


# --------------------------------------------------------------------------- the rest of joint.md


@holds("crfsuite-product")
def crfsuite_product(results):
    rows = {row["system"]: row for row in results.all("joint", "benchmarks")}
    ours, product = rows[crfsuite.LASO], rows["python-crfsuite, product labels"]
    return (
        product["train_s"] > 4 * ours["train_s"]
        and ours["tokens_per_s"] > 4 * product["tokens_per_s"]
        and all(product[measure] < ours[measure] for measure in SCORES)
    )


@holds("crfsuite-two")
def crfsuite_two(results):
    rows = {row["system"]: row for row in results.all("joint", "benchmarks")}
    ours, two = rows[crfsuite.LASO], rows["python-crfsuite, two taggers"]
    return (
        two["train_s"] < ours["train_s"]
        and two["tokens_per_s"] < ours["tokens_per_s"]
        and all(0 < abs(two[measure] - ours[measure]) < 0.3 for measure in SCORES)
    )


@holds("tagger-for-entities")
def tagger_for_entities(results):
    rows = [row for row in results.all("choices") if row["features"] == "columns"]
    scores = {
        config: means(row for row in rows if row["config"] == config)
        for config in ("default", "Chunker")
    }
    entities = [corpus for corpus in scores["Chunker"] if "chunks" not in corpus]
    return len(entities) == 9 and all(
        scores["default"][corpus] > scores["Chunker"][corpus] for corpus in entities
    )


def means(rows):
    """Return the mean score of each corpus on development data."""
    scores: dict[str, list[float]] = {}
    for row in rows:
        scores.setdefault(row["corpus"], []).append(row["dev"])
    return {corpus: sum(some) / len(some) for corpus, some in scores.items()}


EWT = ("upos_acc", "xpos_acc", "feats_acc", "all_acc")


@holds("ewt-together")
def ewt_together(results):
    rows = results.of("ewt", NONE)
    together, in_turn = "together at beam", "one after the other at beam"
    return (
        set(seeds(rows).values()) == {3}
        and all(0 < above(rows, f"{together} 5", f"{in_turn} 5", m) < 0.2 for m in EWT)
        and all(abs(above(rows, f"{together} 1", f"{in_turn} 1", m)) < 0.105 for m in EWT)
        and all(judge(c, rows).mark == NOT_SHOWN for one in ewt.CLAIMS for c in one.contrasts)
        and all(above(rows, f"{x} 5", f"{x} 1", m) > 0 for x in (together, in_turn) for m in EWT)
    )


@holds("ewt-cost")
def ewt_cost(results):
    rows = results.of("ewt", NONE)
    together, in_turn = "together at beam", "one after the other at beam"
    return (
        all(
            mean(rows, f"{together} {b}", measure) > 4 * mean(rows, f"{in_turn} {b}", measure)
            for b in (1, 5)
            for measure in ("cpu_s", "test_s")
        )
        and all(above(rows, f"{in_turn} 5", f"{together} 1", m) > 0 for m in EWT)
        and 5 * mean(rows, f"{in_turn} 5", "cpu_s") < mean(rows, f"{together} 1", "cpu_s")
    )


# --------------------------------------------------------------------------- Table 1


def main_rows(results):
    return results.of("table1", LISTS, "paper")


@holds("table1-closer")
def table1_closer(results):
    rows = main_rows(results)
    fs = {row: mean(rows, row, "f") for row in table1.ROWS}
    printed = {row: table1.PAPER[row].f for row in table1.ROWS}
    low = {row for row, f in printed.items() if f < 94}

    def width(scores):
        return max(scores.values()) - min(scores.values())

    return (
        low == {"SemiCRF", "Perceptron", "LaSOp_1", "LaSOp_5", "LaSOa_1"}
        and {row for row, f in fs.items() if f > printed[row]} == low
        and width(fs) < 0.7 < 2 < width(printed)
        and all(max(fs.values()) - fs[f"{x}_1"] < 0.2 for x in FAMILIES)
    )


@holds("table1-beam")
def table1_beam(results):
    rows = main_rows(results)
    marks = [judge(one, rows).mark for one in table1.CLAIMS[1].contrasts]
    return marks == [NOT_SHOWN, SHOWN] and all(
        above(rows, f"{x}_25", f"{x}_1", "f") < 0.2
        and table1.PAPER[f"{x}_25"].f - table1.PAPER[f"{x}_1"].f > 1
        for x in FAMILIES
    )


@holds("table1-margin")
def table1_margin(results):
    rows = main_rows(results)
    marks = {
        beam: judge(one, rows).mark
        for beam, one in zip(table1.WIDTHS, table1.CLAIMS[0].contrasts, strict=True)
    }
    shown = {beam for beam, mark in marks.items() if mark == SHOWN}
    return shown == {"5", "inf"} and all(
        above(rows, f"LaSOa_{beam}", f"LaSOp_{beam}", "f") < 0.2 for beam in table1.WIDTHS
    )


@holds("table1-semicrf")
def table1_semicrf(results):
    rows = main_rows(results)
    return all(judge(one, rows).mark == SHOWN for one in table1.CLAIMS[3].contrasts) and all(
        0.4 < above(rows, row, "SemiCRF", "f") < 0.7 for row in table1.LASO
    )


@holds("table1-cost")
def table1_cost(results):
    rows = main_rows(results)
    shown = {
        row
        for row, one in zip(table1.LASO, table1.CLAIMS[4].contrasts, strict=True)
        if judge(one, rows).mark == SHOWN
    }
    semi, exact = (mean(rows, row, "cpu_s") for row in ("SemiCRF", "Perceptron"))
    return (
        shown == {"LaSOp_1", "LaSOa_1", "LaSOp_5", "LaSOa_5"}
        and all(mean(rows, f"{x}_1", "cpu_s") < 0.5 * semi for x in FAMILIES)
        and all(0.7 < mean(rows, f"{x}_5", "cpu_s") / semi < 0.8 for x in FAMILIES)
        and all(mean(rows, f"{x}_25", "cpu_s") > max(exact, semi) for x in FAMILIES)
        and table1.seconds(table1.PAPER["SemiCRF"].train or "0:0") > 2 * 24 * 3600
    )


@holds("table1-features")
def table1_features(results):
    rows = main_rows(results)
    rich = results.of("table1", NONE)
    full = results.of("table1", tuple(sorted((*LISTS, "clusters"))))
    by_beam = max(
        above(rows, f"{x}_{b}", f"{x}_1", "f") for x in FAMILIES for b in table1.WIDTHS[1:]
    )
    first = [mean(rich, f"{x}_5", "f") - mean(rows, f"{x}_5", "f") for x in FAMILIES]
    second = [mean(full, f"{x}_5", "f") - mean(rich, f"{x}_5", "f") for x in FAMILIES]
    return (
        {*seeds(rich).values(), *seeds(full).values()} == {3}
        and min(first) > by_beam
        and all(b >= a for a, b in zip(first, second, strict=True))
    )


@holds("table1-held-out")
def table1_held_out(results):
    return all(max(row["held_out"]) > row["f"] for row in results.all("table1"))


@holds("additions")
def additions_overlap(results):
    curves = results.held_out("additions", NONE)
    best = {row: max(curve) for row, curve in curves.items()}
    rich = best.pop(additions.RICH)
    paper = best.pop(additions.PAPER)
    return (
        0.3 < rich - paper < 0.6 and len(best) == 7 and all(rich - f < 0.1 for f in best.values())
    )


def variants(results):
    """Best held-out F of each variant, and the first epoch's."""
    curves = results.held_out("margins", LISTS, "paper")
    assert set(curves) == set(margins.ROWS)
    return {row: max(curve) for row, curve in curves.items()}, curves


@holds("margins-alma")
def margins_alma(results):
    best, curves = variants(results)
    return (
        all(curves["ALMA"][epoch] < curves["perceptron"][epoch] for epoch in range(12))
        and 0 < best["perceptron"] - best["ALMA"] < 0.2
    )


@holds("margins-variants")
def margins_variants(results):
    best, curves = variants(results)
    small = [row for row in best if row.startswith(("ALMA: B", "ALMA: alpha"))]
    return (
        all(best[row] < best["ALMA"] - 0.1 for row in best if row.startswith("ALMA: C"))
        and len(small) == 5
        and all(abs(best[row] - best["ALMA"]) < 0.15 for row in small)
        and curves["ALMA: always normalised"] == pytest.approx(curves["ALMA"], abs=0.05)
        and all(best[f"{x}: all nodes"] < best[x] for x in ("ALMA", "perceptron"))
        and all(best[f"perceptron: margin {m}"] < best["perceptron"] for m in (1.0, 3.0))
    )


@holds("seeds-differ")
def seeds_differ(results):
    rows = main_rows(results)
    fs = {
        row: [r["f"] for r in rows if r["row"] == row] for row, n in seeds(rows).items() if n == 5
    }
    return len(fs) == 5 and 0.1 < max(max(f) - min(f) for f in fs.values()) < 0.2


@holds("averages-gain")
def averages_gain(results):
    four_above_one = Contrast("four models above one", {"4": 1, "1": -1})
    gains = []
    for resources in results.resources("average1"):
        rows = results.of("average1", resources)
        by_size = [row | {"row": str(row["models"])} for row in rows]
        gains.append(above(by_size, "4", "1", "f"))
        if judge(four_above_one, by_size).mark != SHOWN:
            return False
    return len(gains) == 2 and all(0.05 < gain < 0.15 for gain in gains)


# --------------------------------------------------------------------------- the tests


def marked():
    return {name for page in PAGES for name in MARK.findall(page.read_text(encoding="utf-8"))}


def test_every_statement_has_its_check_and_every_check_its_statement():
    assert marked() == set(CHECKS)


@pytest.mark.parametrize("name", CHECKS)
def test_what_a_page_says_follows_from_the_results(name):
    assert CHECKS[name](Results()), f"results do not bear out what is marked {name}"


# These are about which results there are, not about their values.
COUNTS = {"resources", "few-seeds"}


@pytest.mark.parametrize("name", [name for name in CHECKS if name not in COUNTS])
def test_every_check_can_fail(name):
    assert not all(CHECKS[name](Results(constant)) for constant in (0.01, 100.0))


@pytest.mark.parametrize("page", PAGES[:2], ids=lambda page: page.name)
def test_every_point_on_what_the_figures_show_is_checked(page):
    _, _, rest = page.read_text(encoding="utf-8").partition("## What the figures show\n")
    section = rest.partition("\n## ")[0]
    points = re.split(r"^- ", section, flags=re.MULTILINE)[1:]
    assert len(points) >= 5
    for point in points:
        assert MARK.search(point), point
