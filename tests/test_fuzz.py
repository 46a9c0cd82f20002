"""The corpus of the fuzzer gives results or clear errors, and a short campaign finds nothing."""

import json
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.fuzz.late_problems import CODES, OF_BLOCK
from tests.fuzz.targets import CORPUS, TARGETS, outcome

ROOT = Path(__file__).parents[1]
# A call of each kind of problem that breaks its promises late; each takes seconds to be compiled.
LATE = {
    "blocks": "learn",
    "sub-blocks": "exact n-best",
    "chains": "decode exactly",
    "factors": "learn",
    "choices": "decode",
    "values": "learn exactly",
    "segments": "decode",
}
BLOCK_BELOW_0 = (16 * OF_BLOCK + 2, 16 * OF_BLOCK + 3)
ALWAYS = {"segments": BLOCK_BELOW_0}  # codes that once were answered in two ways


def of_corpus():
    for target in TARGETS.values():
        for path in sorted(CORPUS.rglob("*")):
            if path.name.endswith(target.ends):
                yield pytest.param(target, path, id=path.name)


@pytest.mark.parametrize(("target", "path"), list(of_corpus()))
def test_every_file_of_the_corpus_is_answered(target, path, tmp_path):
    kind, text = outcome(target, path.read_bytes(), tmp_path)
    assert kind in ("ok", "error"), text
    if target.name == "model" and path.parent == CORPUS:  # not a finding
        assert kind == "ok", text


@pytest.mark.skipif(sys.platform != "linux", reason="it limits processes as Linux does")
def test_a_short_campaign_finds_nothing(tmp_path):
    command = [sys.executable, "-m", "tests.fuzz", "--seconds", "25", "--seed", "3"]
    command += ["--keep", str(tmp_path / "kept"), "--json", str(tmp_path / "figures.json")]
    run = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    figures = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))
    assert figures["findings"] == []
    for target in figures["targets"].values():
        assert target["mutants"] >= 50
        assert target["error"] > 0
        assert target["lines"] > 50


@pytest.mark.skipif(sys.platform != "linux", reason="it limits processes as Linux does")
@pytest.mark.parametrize(("kind", "call"), LATE.items())
def test_a_late_campaign_finds_nothing(kind, call):
    codes = [*dict.fromkeys((*ALWAYS.get(kind, ()), *Random(0).sample(CODES, 40)))]
    trials = f"campaign([{kind!r}], {codes}, {call!r})"
    code = f"from tests.fuzz.late import campaign; print(*{trials}, sep='\\n')"
    found = printed("-W", "ignore", "-c", code)
    assert len(found) == len(codes)
    assert [line for line in found if "'ok')" not in line and "error: " not in line] == []


@pytest.mark.skipif(sys.platform != "linux", reason="it limits processes as Linux does")
def test_a_semantic_campaign_finds_nothing():
    *findings, counts = printed("-m", "tests.fuzz.semantic", "--seconds", "15", "--seed", "1")
    assert findings == []
    assert "'ok'" in counts
    assert "'error'" in counts


def printed(*arguments: str) -> list[str]:
    """The lines that a program of this folder prints."""
    run = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return run.stdout.splitlines()


def test_a_finding_is_counted_and_kept(tmp_path, monkeypatch, capsys):
    """The fuzzer itself: what must not be is told apart."""
    from tests.fuzz import __main__ as fuzz
    from tests.fuzz.targets import Target

    def run(data, folder):
        if data == b"crash":
            import os

            os.kill(os.getpid(), 9)
        if data == b"hang":
            while True:
                pass
        if data == b"foreign":
            raise KeyError(data)

    kinds = [b"ok", b"foreign", b"crash", b"hang", b"ok"]

    def mutant(data: bytes, draw: Any) -> bytes:
        return kinds[int(draw.seeded)]

    class Numbered(Random):
        def __init__(self, text):
            super().__init__(text)
            self.seeded = str(text).rpartition("/")[2]

    monkeypatch.setattr(fuzz, "Random", Numbered)
    monkeypatch.setattr(fuzz, "SECONDS", 0.5)
    target = Target("odd", (".odd",), mutant, run)
    monkeypatch.setitem(TARGETS, "odd", target)
    monkeypatch.setattr(Target, "seeds", lambda self: [b"seed"])
    code = fuzz.main(["--targets", "odd", "--mutants", "5", "--keep", str(tmp_path)])
    assert code == 1
    counts = json.loads(capsys.readouterr().out)["targets"]["odd"]
    found = {kind: counts[kind] for kind in ("ok", "foreign", "crash", "hang")}
    assert found == {"ok": 2, "foreign": 1, "crash": 1, "hang": 1}
    assert {path.name.partition("-")[0] for path in tmp_path.iterdir()} == {
        "foreign",
        "crash",
        "hang",
    }
