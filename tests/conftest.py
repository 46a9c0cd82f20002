"""Compiled kernels are kept between runs of the tests, apart from the user's own cache."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

os.environ.setdefault("LASO_CACHE", str(ROOT / ".pytest_cache" / "laso-kernels"))


@pytest.fixture
def laso(monkeypatch, capsysbinary):
    """The command line, to be called with its arguments."""
    from tests.commands import Laso  # after the cache is set

    return Laso(monkeypatch, capsysbinary)
