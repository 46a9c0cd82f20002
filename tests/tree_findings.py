"""Checks of what docs/explanation/trees.md says of the strategies, updates and beams."""

from __future__ import annotations

from studies.paper import parsing, table3
from studies.report import sample
from tests.findings import holds


@holds("parsing-diagonal")
def parsing_diagonal(results):
    rows = [row for row in results.all("parsing") if row["row"] in parsing.GRID]
    las = {beams: one.mean for beams, one in table3.grid(rows, "las").items()}
    best = {b: max(parsing.DECODED, key=lambda c: las[b, c]) for b in parsing.TRAINED}
    greedy = [las[1, c] for c in parsing.DECODED]
    return all(b == c for b, c in best.items()) and greedy == sorted(greedy, reverse=True)


def matched_las(results):
    """LAS of each row of the parsers, decoded with the beam that it learned with."""
    matched = [r for r in results.all("parsing") if r["train_beam"] == r["decode_beam"]]
    return {name: sample(matched, name, "las") for name in parsing.ROWS}


@holds("parsing-strategies")
def laso_is_above_early_update(results):
    las = matched_las(results)
    gains = {
        b: las[f"LaSO at beam {b}"].mean - las[f"early update at beam {b}"].mean
        for b in parsing.BEAMS
    }
    same = [
        abs(las[f"LaSO at beam {b}"].mean - las[f"delayed LaSO at beam {b}"].mean) < 0.2
        for b in parsing.BEAMS[1:]
    ]
    return min(gains.values()) > 0 and max(gains, key=lambda b: gains[b]) == 4 and all(same)


@holds("parsing-standard")
def standard_updates_do_not_learn(results):
    las = matched_las(results)
    return all(
        las[f"standard at beam {b}"].mean < 0.5 * las[f"early update at beam {b}"].mean
        for b in parsing.BEAMS
    )


@holds("parsing-updates")
def updates_differ_greedily_only(results):
    las = matched_las(results)
    names = ("LaSO", *parsing.UPDATES)
    wide = [las[f"{name} at beam 8"] for name in names]
    spread = max(one.spread for one in wide)
    greedy = las["passive-aggressive at beam 1"].mean - las["LaSO at beam 1"].mean
    return greedy > 0.5 and max(o.mean for o in wide) - min(o.mean for o in wide) < 2 * spread


def parser_las(results, tags, corpus="ud_ewt"):
    """The mean LAS of a system's configuration on the test data."""
    every = results.all("parsing", "benchmarks")
    rows = [row for row in every if (row["corpus"], row["tags"]) == (corpus, tags)]

    def las(system, config):
        found = [
            row["las"]
            for row in rows
            if (row["system"], row["config"].partition(", seed")[0]) == (system, config)
        ]
        return sum(found) / len(found)

    return las


@holds("parsers-defaults")
def suffixes_and_features_gain_with_gold_tags(results):
    def gain(corpus):
        las = parser_las(results, "gold", corpus)
        return las("laso", "defaults") - las("laso", "beam 8")

    return 0 < gain("ud_ewt") < 1 and gain("ud_tr_imst") > 6


@holds("parsers-predicted")
def suffixes_averages_and_clusters_gain_with_predicted_tags(results):
    las = parser_las(results, "predicted")
    plain, suffixes = las("laso", "beam 8"), las("laso", "beam 8, suffixes")
    averaged = las("laso", "beam 8, suffixes, average of 3")
    with_clusters = las("laso", "beam 8, suffixes, clusters, average of 3")
    spacy, udpipe = las("spacy", "cnn, 12 epochs"), las("udpipe", "10 iterations")
    about_one = 0.9 < averaged - spacy < 1.1 and with_clusters - spacy > 1.1
    return plain < suffixes < averaged and about_one and plain - udpipe > 2


@holds("parsers-averages")
def averages_gain_with_a_beam_only(results):
    las = parser_las(results, "gold")

    def gain(config):
        return las("laso", f"{config}, average of 3") - las("laso", config)

    return gain("beam 8, clusters") > 0.1 and abs(gain("beam 1")) < 0.05
