"""Checks of what docs/explanation/coreference.md says of strategies, beams and features."""

from __future__ import annotations

import statistics

from studies.partitions.litbank import TYPES, WORDS
from studies.partitions.report import by_fold
from tests.findings import holds


def conll(results, system, features=TYPES):
    """The CoNLL average of a system on each fold."""
    rows = [row for row in results.all("litbank") if row["features"] == features]
    return by_fold(rows, system, "conll")


def ahead(results, system, other):
    """How far a system is above another, and in how many folds it is."""
    one, two = conll(results, system), conll(results, other)
    gain = statistics.mean(one.values()) - statistics.mean(two.values())
    return gain, sum(one[fold] > two[fold] for fold in one)


@holds("coreference-heads")
def learned_search_is_above_matching_heads(results):
    gain, folds = ahead(results, "delayed 5", "head match")
    return gain > 8 and folds == 10


@holds("coreference-types")
def types_of_entities_bring_about_a_point(results):
    means = [statistics.mean(conll(results, "delayed 5", f).values()) for f in (TYPES, WORDS)]
    return 0.5 < means[0] - means[1] < 1.5


@holds("coreference-beam")
def a_beam_adds_little_to_the_local_model_with_either_strategy(results):
    gains = [ahead(results, f"{name} 5", "greedy")[0] for name in ("delayed", "LaSO")]
    return all(0 < gain < 0.5 for gain in gains) and abs(gains[0] - gains[1]) < 0.3
