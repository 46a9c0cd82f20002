"""Killed trainings resume with the same result; a short soak. ``tests.faults`` runs longer ones."""

import os

import pytest

from tests.faults import kills, soak

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes end otherwise there")


def test_a_killed_training_resumes_with_the_same_result():
    found = kills.run(3, seed=1)
    assert found.pop("runs") >= 1
    assert found == {"kills": 3, "models lost": 0, "other results": 0, "left behind": 0}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forks with threads
def test_everything_at_once():
    found = soak.run(3.0)
    assert (found["failed"], found["stuck"]) == (0, 0), found
    for what in ("predictions", "files", "pickles", "forks", "trainings"):
        assert found[what] > 0
