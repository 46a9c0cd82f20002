"""Compiled kernels are kept between runs of the tests, apart from the user's own cache."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# With several workers, what takes long must not come last, when the others have nothing left to do.
LONG = (
    *("test_clusters", "test_documents", "test_engine_equality", "test_engine_lattice"),
    "test_engine_likelihood",
)
SHORT = (
    *("test_learn", "test_queues", "test_updates", "test_vectors", "test_values", "test_metrics"),
    *("test_formats", "test_data", "test_findings", "test_plots", "test_house"),
)

os.environ.setdefault("LASO_CACHE", str(ROOT / ".pytest_cache" / "laso-kernels"))


@pytest.fixture
def laso(monkeypatch, capsysbinary):
    """The command line, to be called with its arguments."""
    from tests.commands import Laso  # after the cache is set

    return Laso(monkeypatch, capsysbinary)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with a few sentences to train and to test on."""
    from laso.data import load_bundled, write_columns  # after the cache is set

    train, test = load_bundled()
    monkeypatch.chdir(tmp_path)
    write_columns("train.txt", train[:60])
    write_columns("test.txt", test[:20])
    return tmp_path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest files first and the shortest last (see --no-loadscope-reorder)."""
    items.sort(key=lambda item: _turn(item.path.stem))


def _turn(file: str) -> int:
    if file in LONG:
        return LONG.index(file) - len(LONG)
    return 1 + SHORT.index(file) if file in SHORT else 0
