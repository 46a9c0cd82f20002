"""Compiled kernels are kept between runs of the tests, apart from the user's own cache."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

os.environ.setdefault("LASO_CACHE", str(ROOT / ".pytest_cache" / "laso-kernels"))
