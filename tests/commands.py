"""The command line, run in this process."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass

import pytest

from laso.cli import main
from laso.cli.progress import COMPILING


@dataclass
class Shown:
    code: int
    out: str
    err: str


class Laso:
    """Runs ``laso`` with arguments and standard input; what it wrote and its exit code."""

    def __init__(self, monkeypatch, capsysbinary):
        self.monkeypatch, self.captured = monkeypatch, capsysbinary

    def __call__(self, *arguments, stdin=""):
        data = stdin if isinstance(stdin, bytes) else stdin.encode()
        self.monkeypatch.setattr(sys, "argv", ["laso", *map(str, arguments)])
        self.monkeypatch.setattr(
            sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data)), "utf-8")
        )
        self.captured.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        seen = self.captured.readouterr()
        code = ended.value.code
        assert code is None or isinstance(code, int)
        return Shown(code or 0, seen.out.decode(), without_notice(seen.err.decode()))


def without_notice(err):
    """What was written to stderr, but for the notice that depends on the cache."""
    return err.replace(f"{COMPILING}\n", "")
