"""Experiments that compare variants on held-out data, and the commands behind what is published."""

import os
import subprocess
from pathlib import Path

import pytest

import studies
from laso.tasks.chunking import feature_sets
from studies import training
from studies.paper import additions, margins, table1
from studies.runner import experiment

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", studies.NAMES)
def test_rows_can_be_named_one_by_one(name):
    assert not [row for row in experiment(name).rows if "," in row or row != row.strip()]


def test_every_variant_of_the_margins_is_one_that_the_estimator_takes():
    for config in margins.ROWS.values():
        table1.chunker()(**training.parameters({**config.settings, "epochs": 1})).validate()
    both = [margins.ROWS[name].settings for name in ("ALMA", "perceptron")]
    for row, settings in zip(("LaSOa_5", "LaSOp_5"), both, strict=True):
        assert settings == table1.ROWS[row].settings


def test_the_report_on_margins_has_a_line_for_each_variant(tmp_path):
    entry = {
        "row": "ALMA: B times 3",
        "features": "paper",
        "resources": [],
        "corpus": "conll2000",
        "settings": {"epochs": 2},
        "f": 94.2,
        "held_out": [93.0, 94.2, 94.1],
        "trials": [{"train_s": 61.4}],
    }
    unfinished = {"row": "ALMA", "features": "paper", "resources": [], "trials": []}
    (file,) = margins.EXPERIMENT.report([], {"a": entry, "b": unfinished}, tmp_path)
    text = file.read_text()
    assert "## Features paper, no resources" in text
    assert "| ALMA: B times 3 | 93.00 | 94.10 | 94.20 | 2 | 61 |" in text
    assert "\n| ALMA |" not in text
    (file,) = margins.EXPERIMENT.report([], {}, tmp_path)
    assert "Nothing was measured yet." in file.read_text()


def test_each_addition_is_left_out_by_one_variant():
    rich = additions.templates(additions.RICH, ["clusters"])
    kinds = feature_sets.additions(additions.NAMES)
    assert list(additions.ROWS) == ["paper", "rich", *(f"rich without {kind}" for kind in kinds)]
    missing = [
        [one for one in rich if one not in additions.templates(row, ["clusters"])]
        for row in additions.ROWS
    ]
    assert missing[1:] == [[], *kinds.values()]
    assert sorted(missing[0]) == sorted(one for kind in missing[2:] for one in kind)
    for row, config in additions.ROWS.items():
        given = training.parameters({**config.settings, "epochs": 1})
        model = additions.make_estimator(**given, features="rich", resources=())
        assert model.features == additions.templates(row, ())
        model.validate()


def test_what_is_published_is_made_by_commands_that_exist(tmp_path):
    (tmp_path / "python").write_text('#!/bin/sh\nprintf "%s|" "$@" >> "$CALLS"; echo >> "$CALLS"\n')
    (tmp_path / "python").chmod(0o755)
    calls = tmp_path / "calls"
    script = ROOT / "tools" / "experiments.sh"
    environment = {**os.environ, "BIN": str(tmp_path), "CALLS": str(calls)}
    subprocess.run(["sh", str(script), "--jobs", "2"], check=True, env=environment)
    named = set()
    for line in calls.read_text().splitlines():
        module, package, name, *options, jobs, two, _ = line.split("|")
        assert (module, package, jobs, two) == ("-m", "studies", "--jobs", "2")
        given = dict(zip(options[::2], options[1::2], strict=True))
        assert given.keys() <= {"--rows", "--features", "--resources", "--seeds"}
        found = experiment(name)
        assert set(given.get("--rows", "").split(",")) <= {"", *found.rows}
        assert given.get("--features", found.features[0]) in found.features
        named.add(name)
    assert named == set(studies.NAMES)
