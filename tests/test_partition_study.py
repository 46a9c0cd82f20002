"""The study of coreference: its baseline, its report, and its picture."""

import json

import pytest

from laso.data.coreference import Text
from studies.partitions import picture, report
from studies.partitions.litbank import MEASURES, SYSTEMS, TYPES, head_matches


def rows_of(system, score, *, seeds=(0,), folds=(0, 1)):
    fixed = {"features": TYPES, "documents": 10, "train_s": 20.0, "test_s": 0.4}
    fixed |= {"versions": {"laso": "0"}, "machine": {"cpu": "x", "cores": 2, "memory_gb": 24}}
    scores = ("conll", "conll_without_singletons", *MEASURES)
    return [
        {"system": system, "fold": fold, "seed": seed, **fixed}
        | dict.fromkeys(scores, score + fold + seed)
        for seed in seeds
        for fold in folds
    ]


def test_the_baseline_joins_equal_heads_and_equal_pronouns():
    sentences = [["the", "old", "king", "met", "a", "king"], ["he", "saw", "him", "and", "her"]]
    text = Text.of({"sentences": sentences, "mentions": []})
    mentions = [(0, 0, 2), (0, 4, 5), (1, 0, 0), (1, 2, 2), (1, 4, 4)]
    text.mentions = [text.checked(mention) for mention in mentions]
    ids = head_matches(text)
    assert ids[0] == ids[1] != ids[2] == ids[3] != ids[4]


def test_means_are_over_folds_and_deviations_over_seeds():
    rows = [*rows_of("delayed 5", 80.0, seeds=(0, 1, 2)), *rows_of("LaSO 5", 79.0)]
    assert report.cell(rows, "delayed 5", "conll") == "81.50 ± 1.00"
    assert report.cell(rows, "LaSO 5", "conll") == "79.50"
    assert report.cell(rows, "greedy", "conll") == ""
    assert report.by_fold(rows, "delayed 5", "conll") == {0: 81.0, 1: 82.0}
    assert report.times(rows, "LaSO 5") == ("20.0", "40")


def test_the_report_counts_the_folds_in_which_delayed_updates_are_ahead(tmp_path):
    rows = [*rows_of("delayed 5", 80.0, seeds=(0, 1)), *rows_of("LaSO 5", 80.9)]
    path = tmp_path / "litbank.json"
    assert report.write(path) == []
    path.write_text(json.dumps(rows), encoding="utf-8")
    [written] = report.write(path)
    text = written.read_text(encoding="utf-8")
    assert "| delayed LaSO | 81.00 ± 0.71 |" in text  # no column for beams that are not measured
    assert "0 of 2" in text  # 80.5 and 81.5 against 80.9 and 81.9
    assert all(name in report.MAIN or name.split()[1].isdecimal() for name in SYSTEMS)


def test_the_picture_marks_mentions_in_other_clusters_than_the_gold_one(tmp_path):
    _, gold = picture.parsed(picture.STORY)
    right = picture.drawn([int(entity) for entity in gold])
    assert "stroke-dasharray" not in right
    wrong = picture.drawn([7, *(int(entity) for entity in gold[1:])])
    assert wrong.count("stroke-dasharray") == 1
    path = tmp_path / "story.json"
    assert picture.write(path) == []
    path.write_text(json.dumps({"clusters": [int(entity) for entity in gold]}), encoding="utf-8")
    assert picture.write(path)[0].read_text(encoding="utf-8") == right


def test_the_story_is_in_brackets():
    text, entities = picture.parsed(picture.STORY)
    assert len(text.mentions) == len(entities) == picture.STORY.count("[")
    with pytest.raises(IndexError):
        picture.parsed("one ]")
