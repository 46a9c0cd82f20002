"""Machine code that comes with the package: found, verified, equal to code compiled on the spot."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laso import alma, beam
from laso.engine import native
from laso.engine.machine import Machine, all_of, new_table
from laso.engine.native import Kernels, calls, compiled, dispatch, load, shipped, sources
from laso.engine.options import options_for
from laso.tasks.tagging.problem import Tagging
from tests.engine_inputs import Segmenting
from tests.test_engine_native import CORPUS

ROOT = Path(__file__).resolve().parent.parent
NAMES = [level.name for level in shipped.supported()]

pytestmark = pytest.mark.skipif(not NAMES, reason="processors that code is shipped for")


def limits_of(kernels: Kernels) -> None:
    most = np.zeros(6, np.int64)
    kernels("largest", CORPUS, np.zeros(0, np.int64), most, most.copy())


def refuse(*_: Any, **__: Any) -> None:
    raise AssertionError("nothing was found")


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Shipped code with one entry point, made as for a wheel; and an empty cache."""
    from laso.engine.native import jit

    monkeypatch.setenv("LASO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "code")
    kernels = Kernels(Tagging, native.PLAIN)
    most = np.zeros(6, np.int64)
    arguments = (CORPUS, np.zeros(0, np.int64), most, most)
    with kernels._numba(cached=False) as engine:
        symbol, codes = jit.object_codes(engine.entries["largest"], arguments, NAMES)
    signature, _ = calls.described(arguments)
    for level, code in zip(shipped.supported(), codes, strict=True):
        file = shipped.file_for(level, Tagging, native.PLAIN, "largest", signature)
        shipped.save(file, symbol, code)
    made: Path = tmp_path / "code"
    return made


def test_shipped_code_is_found_and_nothing_is_compiled_or_cached(folder, monkeypatch):
    monkeypatch.setattr(Kernels, "_compile", refuse)
    limits_of(Kernels(Tagging, native.PLAIN))
    assert not (folder.parent / "cache").exists()
    best = shipped.folder_of(shipped.supported()[0])
    for file in best.rglob("*.native"):
        file.unlink()
    limits_of(Kernels(Tagging, native.PLAIN))  # the next level fits too, where there is one


def test_what_does_not_fit_is_compiled(folder, monkeypatch):
    monkeypatch.setattr(Kernels, "_compile", refuse)
    for name, value in [
        ("source_fingerprint", lambda *_: "0" * 16),  # of other sources
        ("supported", lambda: ()),  # for other processors
        ("FOLDER", folder / "none"),  # an editable installation
    ]:
        with monkeypatch.context() as patch:
            patch.setattr(shipped, name, value)
            with pytest.raises(AssertionError, match="nothing was found"):
                limits_of(Kernels(Tagging, native.PLAIN))
    for file in folder.rglob("*.native"):
        file.write_bytes(file.read_bytes()[:-10])  # damaged
    with pytest.raises(AssertionError, match="nothing was found"):
        limits_of(Kernels(Tagging, native.PLAIN))
    with pytest.raises(AssertionError, match="nothing was found"):
        limits_of(Kernels(Segmenting, native.PLAIN))  # nothing is shipped for a user's problem


def test_code_for_features_that_a_processor_lacks_is_not_chosen(monkeypatch):
    from llvmlite import binding

    have = {name: True for level in shipped.LEVELS for name in level.features}
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    for lacking, levels in [
        (None, ["x86-64-v3", "x86-64-v2"]),
        ("avx2", ["x86-64-v2"]),
        ("sse4.2", []),
    ]:
        found = {**have, **({lacking: False} if lacking else {})}
        monkeypatch.setattr(binding, "get_host_cpu_features", lambda found=found: found)
        assert [level.name for level in shipped.supported.__wrapped__()] == levels


def test_an_edit_of_any_source_is_noticed(monkeypatch):
    before = sources.source_fingerprint(Tagging)
    files = {Path(str(f)) for f in sources._engine_files(native.PLAIN)} | {
        ROOT / "src/laso/tasks/tagging/problem.py"
    }
    read = Path.read_bytes
    for edited in files:
        monkeypatch.setattr(
            Path, "read_bytes", lambda p, edited=edited: read(p) + b" " * (p == edited)
        )
        assert sources.source_fingerprint(Tagging) != before, edited
    monkeypatch.setattr(Path, "read_bytes", read)
    assert sources.source_fingerprint(Tagging) == before
    assert sources.source_fingerprint(Tagging, native.PLAIN._replace(full=True)) != before


def test_what_a_wheel_carries_is_of_these_sources():
    """An installed package, or a developer's folder, has no code that nothing finds."""
    from laso.engine.chains import AnyProblem
    from laso.tasks.chunking.problem import Chunking
    from laso.tasks.joint.problem import Joint

    if not shipped.FOLDER.is_dir():
        pytest.skip("an installation without machine code")
    variants = [native.Variant(f, e, False) for f in (False, True) for e in (False, True)]
    current = {
        f"{problem.__name__}-{sources.source_fingerprint(problem, variant)}"
        for problem in (AnyProblem, Tagging, Chunking, Joint)
        for variant in variants
    }
    found = {path.name for level in shipped.LEVELS for path in shipped.folder_of(level).glob("*")}
    assert found <= current


def sum_of_products(a, b, c, out):
    """A fused multiplication and addition would round once."""
    for i in range(a.shape[0]):
        out[i] = a[i] * b[i] + c[i]


def test_products_are_rounded_before_they_are_added():
    import numba

    from laso.engine.native import jit

    a = 1.0 + np.arange(1, 65) * 2.0**-30
    c = -(a * a)
    entry = numba.njit(sum_of_products, **jit.INNER, _nrt=False)
    out = np.ones(64)
    symbol, codes = jit.object_codes(entry, (a, a, c, out), NAMES)
    for code in codes:
        out.fill(1.0)
        load.loaded(symbol, code)(calls.described((a, a, c, out))[1])
        assert not out.any()


def results() -> list[bytes]:
    machine = Machine(Segmenting, options_for(Segmenting, beam(2), alma(alpha=0.8)))
    order = np.tile(all_of(CORPUS), 5)
    table = new_table(2, margin=machine.options.margin)
    table, _, wrong = machine.learn(CORPUS, order, table, machine.new_run(CORPUS, order, table))
    assert wrong
    return [array.tobytes() for array in table]


def test_all_levels_learn_the_same_weights(monkeypatch):
    from laso.engine.native import jit

    gold = results()
    kernels = compiled(Segmenting)
    made: dict[str, Any] = {}

    class ForLevel(Kernels):
        name = ""

        def _load(self, name: str, signature: str, arguments: Any) -> Any:
            if name not in made:
                with kernels._numba(cached=False) as engine:
                    made[name] = jit.object_codes(engine.entries[name], arguments, NAMES)
            symbol, codes = made[name]
            self._loaded[name, signature] = load.loaded(symbol, codes[NAMES.index(self.name)])
            return self._loaded[name, signature]

    for level in NAMES:
        monkeypatch.setattr(ForLevel, "name", level)
        monkeypatch.setitem(
            dispatch._compiled, (Segmenting, native.PLAIN), ForLevel(Segmenting, native.PLAIN)
        )
        assert results() == gold


# The build hook.


def hook() -> Any:
    specification = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert specification
    module = importlib.util.module_from_spec(specification)
    assert specification.loader
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("target", "version", "given", "added"),
    [
        ("wheel", "standard", "", "build/machine_code"),
        ("wheel", "standard", "given", "given"),
        ("wheel", "standard", "0", None),
        ("wheel", "editable", "", None),
        ("sdist", "standard", "", None),
    ],
)
def test_the_hook_adds_machine_code_to_wheels(tmp_path, monkeypatch, target, version, given, added):
    pytest.importorskip("hatchling")
    module = hook()
    if given == "given":
        (tmp_path / "given").mkdir()
        given = str(tmp_path / "given")
    monkeypatch.setenv("LASO_MACHINE_CODE", given)
    ran: list[Any] = []

    def run(command: list[str], *, env: Any, check: bool) -> None:
        ran.append(command)
        Path(command[-1]).mkdir(parents=True)

    monkeypatch.setattr(subprocess, "run", run)
    data: dict[str, Any] = {"force_include": {}}
    made = module.MachineCode(str(tmp_path), {}, None, None, str(tmp_path), target)
    made.initialize(version, data)
    expected = {str(tmp_path / added): module.INSIDE} if added else {}
    assert data["force_include"] == expected
    assert bool(ran) == (added == "build/machine_code")
    assert all(command[0] == sys.executable for command in ran)
