"""Checks of what docs/explanation/vectors.md says of vectors beside sparse features."""

from __future__ import annotations

import statistics

from tests.findings import holds


def mean(results, task, row):
    """The mean score of a system on a task."""
    rows = [r for r in results.all("encoder") if (r["task"], r["row"]) == (task, row)]
    return statistics.mean(r["score"] for r in rows)


def words_per_second(results, task, row):
    """The speed of the fastest run of a system on a task."""
    rows = [r for r in results.all("encoder") if (r["task"], r["row"]) == (task, row)]
    return max(r["test_words"] / r["test_s"] for r in rows)


def gain(results, task, row="frozen", other="sparse"):
    """How far a system is above another."""
    return mean(results, task, row) - mean(results, task, other)


@holds("vectors-bring")
def frozen_vectors_bring_a_point_on_chunks_and_more_on_tags_and_entities(results):
    entities = mean(results, "entities", "frozen") / mean(results, "entities", "sparse")
    return 0.8 < gain(results, "chunks") < 1.5 and gain(results, "tags") > 1.4 and entities > 2


@holds("vectors-trees")
def trees_gain_about_four_points(results):
    return 3.5 < gain(results, "trees") < 4.5


@holds("vectors-crfsuite")
def crfsuite_learns_less_from_the_same_vectors(results):
    rows = [row for row in results.all("encoder") if row["task"] == "chunks"]
    seconds = {row["row"]: row["train_s"] for row in rows}
    slower = seconds["CRFsuite"] > 1.5 * seconds["frozen"]
    return slower and gain(results, "chunks", "frozen", "CRFsuite") > 0.3


@holds("vectors-alone")
def a_softmax_over_the_same_vectors_stays_behind(results):
    tasks = ("chunks", "entities", "tags")
    return all(gain(results, task, "frozen", "softmax") > 0 for task in tasks)


@holds("vectors-cost")
def encoding_takes_most_of_the_time(results):
    tasks = ("chunks", "tags")
    return all(
        words_per_second(results, task, "sparse") > 10 * words_per_second(results, task, "frozen")
        for task in tasks
    )
