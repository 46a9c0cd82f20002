"""Compiled code without Numba: loading, arguments, files, and processors."""

from __future__ import annotations

import gc
import json
import math
import os
import platform
import struct
import subprocess
import sys
import threading
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from laso import alma, beam
from laso.engine import native
from laso.engine.layout import STEPS, Limit
from laso.engine.machine import Machine, all_of, new_table
from laso.engine.native import Kernels, cache, calls, compiled, dispatch, load
from laso.engine.options import options_for
from laso.engine.problem import CompiledProblem
from tests.engine_inputs import FREE, INSIDE, Segmenting, corpus_of

# Loading: small objects made by LLVM.

START = "define i32 @start(i8* %result, i8** %failure, double* %n) {\n"
OUTSIDE = """
declare double @NAME(double)
@kept = common global double 0.0
@factor = internal constant double 3.0
@here = internal constant double* @factor
@count = internal global i64 0
define double @scaled(double %x) noinline {
  %where = load volatile double*, double** @here
  %by = load volatile double, double* %where
  %y = fmul double %x, %by
  ret double %y
}
START
  %from = getelementptr double, double* %n, i64 8
  %x = load double, double* %from
  %y = call double @NAME(double %x)
  %before = load double, double* @kept
  %sum = fadd double %y, %before
  store double %sum, double* @kept
  %z = call double @scaled(double %sum)
  %to = getelementptr double, double* %n, i64 1
  store double %z, double* %to
  %one = bitcast double* %n to i64*
  store i64 1, i64* %one
  ret i32 0
}
"""
WAIT = """
START
  %at = bitcast double* %n to i64**
  %place = getelementptr i64*, i64** %at, i64 8
  %flag = load i64*, i64** %place
  br label %again
again:
  %i = phi i64 [ 0, %0 ], [ %next, %again ]
  %next = add i64 %i, 1
  %set = load volatile i64, i64* %flag
  %open = icmp eq i64 %set, 0
  %more = icmp slt i64 %i, 20000000000
  %both = and i1 %open, %more
  br i1 %both, label %again, label %end
end:
  %to = bitcast double* %n to i64*
  %first = getelementptr i64, i64* %to, i64 1
  store i64 1, i64* %to
  store i64 %set, i64* %first
  ret i32 0
}
"""


def object_of(source: str, **names: str) -> bytes:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    for name, value in {"START": START, **names}.items():
        source = source.replace(name, value)
    triple = binding.get_default_triple()
    machine = binding.Target.from_triple(triple).create_target_machine(jit=True, opt=2)
    module = binding.parse_assembly(f'target triple = "{triple}"\n{source}')
    code: bytes = machine.emit_object(module)
    return code


def bits(x: float) -> int:
    (number,) = struct.unpack("<q", struct.pack("<d", x))
    return int(number)


@pytest.mark.parametrize("name", ["exp", "log1p", "cos"])
def test_code_data_and_functions_outside_are_linked(name):
    function = load.loaded("start", object_of(OUTSIDE, NAME=name))
    first, second = getattr(math, name)(0.5), getattr(math, name)(0.25)
    assert function([0] * 8 + [bits(0.5)]) == (bits(3.0 * first),)
    assert function([0] * 8 + [bits(0.25)]) == (bits(3.0 * (second + first)),)
    again = load.loaded("start", object_of(OUTSIDE, NAME=name))  # with data of its own
    assert again([0] * 8 + [bits(0.5)]) == (bits(3.0 * first),)


def test_threads_run_beside_a_call():
    function = load.loaded("start", object_of(WAIT))
    flag = np.zeros(1, np.int64)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(function([0] * 8 + [flag.ctypes.data])))
    thread.start()
    flag[0] = 7  # not before the call ends, if it kept the interpreter's lock
    thread.join()
    assert found == [(7,)]


def test_what_cannot_be_loaded_is_refused():
    code = object_of(OUTSIDE, NAME="exp")
    load.loaded("start", code)
    refused = {
        "nothing": b"",
        "no object": b"no object" * 100,
        "cut short": code[:-100],
        "needed": object_of(OUTSIDE, NAME="no_such_function"),
    }
    for bad in refused.values():
        with pytest.raises(load.Unsupported, match=r"LLVM cannot load the object code: \w"):
            load.loaded("start", bad)
    with pytest.raises(load.Unsupported):
        load.loaded("another", code)


def test_a_system_without_the_jit(monkeypatch):
    from llvmlite import binding

    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError("no executable memory")

    monkeypatch.setattr(binding, "create_lljit_compiler", refuse)
    load._linker.cache_clear()
    with pytest.raises(load.Unsupported, match="no executable memory"):
        load.loaded("start", object_of(OUTSIDE, NAME="exp"))
    monkeypatch.undo()
    load.loaded("start", object_of(OUTSIDE, NAME="exp"))


def test_functions_of_the_c_library_do_not_depend_on_the_process():
    found = load._c_functions()
    assert {"exp", "expf", "log", "log1p", "pow", "memset", "memcpy", "memmove"} <= {*found}
    assert all(found.values())


def test_a_function_keeps_its_code_in_memory():
    functions = [load.loaded("start", object_of(OUTSIDE, NAME="exp")) for _ in range(20)]
    del functions[:-1]
    gc.collect()
    assert functions[0]([0] * 8 + [bits(0.5)]) == (bits(3.0 * math.exp(0.5)),)


# Arguments.


class Inner(NamedTuple):
    a: Any
    number: int
    b: Any


class Outer(NamedTuple):
    real: float
    inner: Inner
    flag: bool


def weigh(outer, c, x):
    """Depends on every element and where it is."""
    a, b = outer.inner.a, outer.inner.b
    total = 0.0
    for i in range(a.shape[0]):
        total = 0.5 * total + a[i]
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            total = 0.5 * total + b[i, j]
            b[i, j] = i - j
    if outer.flag:
        total += outer.real * outer.inner.number
    for i in range(c.shape[0]):
        total += c[i] * x
    return int(1e6 * total), a.shape[0], b.shape[0] * b.shape[1]


def matrices() -> st.SearchStrategy[Any]:
    """Of rows, of columns, and parts of larger ones."""
    shapes = arrays.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=4)
    numbers = arrays.arrays(np.float64, shapes, elements=st.integers(-9, 9))
    ways = [lambda a: a, np.asfortranarray, lambda a: np.repeat(a, 2, axis=1)[:, ::2]]
    return st.builds(lambda a, way: way(a), numbers, st.sampled_from(ways))


_weigh: dict[str, Any] = {}


def code_of(function: Any, arguments: tuple[Any, ...]) -> tuple[str, bytes]:
    import numba

    from laso.engine.native import linking, lowering

    entry = numba.njit(function, inline="always", **lowering.options_for(checked=False))
    symbol, code = lowering.lowered(entry, arguments)
    return symbol, linking.object_code(linking.linked(code, symbol, None))


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    st.lists(st.integers(-9, 9), max_size=5),
    matrices(),
    st.sampled_from([(np.float32, False), (np.float64, True)]),
    st.integers(-(2**40), 2**40),
    st.booleans(),
    st.integers(-40, 40).map(lambda n: n / 8.0),
)
def test_arguments_of_all_kinds_arrive(items, b, kind, number, flag, x):
    dtype, read_only = kind
    a, c = np.array(items, np.int32), np.array(items, dtype)
    a.flags.writeable = not read_only
    arguments = (Outer(0.25, Inner(a, number, b), flag), c, x)
    signature, numbers = calls.described(arguments)
    if signature not in _weigh:
        _weigh[signature] = load.loaded(*code_of(weigh, arguments))
    other = b.copy()
    wanted = weigh(Outer(0.25, Inner(a, number, other), flag), c, x)
    assert _weigh[signature](numbers) == wanted
    assert np.array_equal(b, other)


# Files.


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.binary(max_size=40), st.data())
def test_a_torn_or_changed_file_is_not_read(tmp_path_factory, code, data):
    file = tmp_path_factory.mktemp("files") / "entry.native"
    assert cache.read(file) is None
    cache.save(file, "start", code)
    assert cache.read(file) == ("start", code)
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    whole = file.read_bytes()
    cut = data.draw(st.integers(0, len(whole) - 1))
    file.write_bytes(whole[:cut])
    assert cache.read(file) is None
    file.write_bytes(whole[:cut] + bytes([whole[cut] ^ 1]) + whole[cut + 1 :])
    assert cache.read(file) is None
    file.write_bytes(whole + b"\0")
    assert cache.read(file) is None


# Problems.

TEXTS = ([[[1], [2], [1], [3]], [[2], [3]], [[1], [2], [2], [3], [1], [3]], [[3]]],)
OUTPUTS = [[0, INSIDE, 1, FREE], [1, 0], [FREE, 1, INSIDE, 0, 0, INSIDE], [1]]
CORPUS = corpus_of(*TEXTS, OUTPUTS, [0])


def limits_of(kernels: Kernels) -> int:
    most = np.zeros(len(Limit), np.int64)
    kernels("largest", CORPUS, np.array([0]), most, np.zeros(len(Limit), np.int64))
    return int(most[STEPS])


def fresh(problem: type[CompiledProblem] = Segmenting) -> Kernels:
    """Kernels that have loaded nothing yet."""
    return Kernels(problem, native.PLAIN)


LARGEST = "kernels/Segmenting.largest-*/*.native"


def test_a_damaged_file_is_compiled_again(tmp_path, monkeypatch):
    monkeypatch.setenv("LASO_CACHE", str(tmp_path))
    assert limits_of(fresh()) == 4
    (file,) = tmp_path.glob(LARGEST)
    file.write_bytes(file.read_bytes()[:-1])
    assert cache.read(file) is None
    assert limits_of(fresh()) == 4
    assert cache.read(file)


def test_a_cache_that_can_only_be_read(tmp_path, monkeypatch):
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError

    monkeypatch.setenv("LASO_CACHE", str(tmp_path))
    assert limits_of(fresh()) == 4
    for owner, name in [(Path, "touch"), (Path, "mkdir"), (Kernels, "_compile")]:
        monkeypatch.setattr(owner, name, refuse)
    assert limits_of(fresh()) == 4


def test_a_file_that_cannot_be_loaded_is_compiled_again(tmp_path, monkeypatch):
    monkeypatch.setenv("LASO_CACHE", str(tmp_path))
    assert limits_of(fresh()) == 4
    (file,) = tmp_path.glob(LARGEST)
    code = cache.read(file)
    assert code is not None
    cache.save(file, code[0], code[1][:-100])
    with pytest.raises(load.Unsupported, match="LLVM cannot load the object code"):
        load.loaded(code[0], code[1][:-100])
    assert limits_of(fresh()) == 4


@pytest.mark.parametrize("tested", [((0, 1), (0, 2)), ((99, 0), (99, 1))])
def test_a_version_of_numba_that_is_not_tested_is_named(tmp_path, monkeypatch, tested):
    import numba

    from laso.engine.native import lowering

    monkeypatch.setenv("LASO_CACHE", str(tmp_path))
    monkeypatch.setattr(lowering, "TESTED", tested)
    with pytest.raises(load.Unsupported, match=f"found Numba {numba.__version__}, expected"):
        limits_of(fresh())


def test_the_project_requires_the_versions_that_were_tested():
    from laso.engine.native import lowering

    (low, high) = (".".join(map(str, version)) for version in lowering.TESTED)
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
    assert f"numba>={low},<{high}" in project["project"]["dependencies"]


def test_an_engine_that_is_there_takes_no_lock(monkeypatch):
    class Locked:
        def __enter__(self) -> None:
            raise AssertionError("locked")

        def __exit__(self, *_: Any) -> None: ...

    assert limits_of(compiled(Segmenting)) == 4
    monkeypatch.setattr(dispatch, "_lock", Locked())
    assert limits_of(compiled(Segmenting)) == 4
    with pytest.raises(AssertionError, match="locked"):
        compiled(type("Another", (Segmenting,), {}))


def test_many_threads_load_at_once():
    kernels = fresh()
    with ThreadPoolExecutor(8) as pool:
        assert {*pool.map(lambda _: limits_of(kernels), range(64))} == {4}
    assert len(kernels._loaded) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="systems with fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_calls_and_loads():
    kernels = fresh()
    limits_of(kernels)
    child = os.fork()
    if child == 0:  # pragma: no cover
        os._exit(0 if limits_of(kernels) == limits_of(fresh()) == 4 else 1)
    assert os.waitpid(child, 0)[1] == 0


class Raising(Segmenting):
    @staticmethod
    def limits(x, out):
        if x.items.shape[0] > 3:
            raise ValueError("too long")
        out[STEPS] = 3


def test_an_exception_of_a_problem_is_raised():
    kernels = fresh(Raising)
    with pytest.raises(ValueError, match=r"^too long$"):
        limits_of(kernels)


RUN = """
import json, sys
from tests import test_engine_native as tests
print(json.dumps([tests.results(), sorted({"numba", "llvmlite"} & set(sys.modules))]))
"""


def results() -> list[Any]:
    """Learn and decode; bytes of all that was found."""
    machine = Machine(Segmenting, options_for(Segmenting, beam(2), alma(alpha=0.8)))
    order = np.tile(all_of(CORPUS), 5)
    table = new_table(2, margin=machine.options.margin)
    table, _, wrong = machine.learn(CORPUS, order, table, machine.new_run(CORPUS, order, table))
    found = machine.decode(CORPUS, order, table)
    threaded = machine.decode(CORPUS, order, table, threads=3)
    assert all(np.array_equal(a, b) for a, b in zip(found, threaded, strict=True))
    return [wrong, *(array.tobytes().hex() for array in (*table, *found))]


def run_again(**environment: str) -> Any:
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", RUN],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


def test_a_second_process_needs_no_numba():
    gold = results()
    assert gold[0] > 0
    assert run_again() == [gold, ["llvmlite"]]


# Processors.


def sum_of_products(a, b, c, out):
    """A fused multiplication and addition would round once."""
    for i in range(a.shape[0]):
        out[i] = a[i] * b[i] + c[i]


def test_products_are_rounded_before_they_are_added():
    a = 1.0 + np.arange(1, 65) * 2.0**-30
    arguments = (a, a, -(a * a), np.ones(64))
    load.loaded(*code_of(sum_of_products, arguments))(calls.described(arguments)[1])
    assert not arguments[-1].any()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names of processors")
def test_all_processors_learn_the_same_weights():
    assert run_again(NUMBA_CPU_NAME="x86-64", NUMBA_CPU_FEATURES="")[0] == results()
