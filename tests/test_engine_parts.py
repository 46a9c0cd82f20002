"""How kernels are compiled: parts that are linked once, and kernels that problems share."""

from __future__ import annotations

from typing import Any

import numba
import pytest

from laso.engine.hashing import mix, teach_numba
from laso.engine.native import jit, parts
from laso.engine.native.common import Common
from laso.engine.native.sources import PLAIN, fingerprint, source_fingerprint
from laso.engine.problem import CompiledProblem, is_capped
from laso.tasks.chunking.problem import Chunking
from laso.tasks.joint.problem import Joint
from laso.tasks.parsing.transitions import Transitions
from laso.tasks.tagging.problem import Tagging


def engine(problem: type[CompiledProblem]) -> dict[str, Any]:
    """Return the kernels of a problem, by name; nothing is compiled yet."""
    made = jit.Engine(problem, PLAIN, fingerprint(problem))
    space: dict[str, Any] = made.entries["learn_many"].py_func.__globals__
    return space


def test_numba_links_parts_that_were_made_before():
    teach_numba()

    def inner(a):
        return mix(a, 3)

    part = numba.njit(inner)
    with parts.only_parts():
        part.compile((numba.int64,))

    def outer(a):
        return part(a) + 1

    assert numba.njit(outer)(5) == mix(5, 3) + 1


def test_afterwards_numba_makes_no_parts():
    with pytest.raises(ValueError, match="inside"), parts.only_parts():
        raise ValueError("inside")
    assert numba.njit(lambda a: a + 1)(2) == 3


def test_problems_share_the_kernels_that_call_no_method():
    one, other = engine(Tagging), engine(Joint)
    assert one["add_delta"] is other["add_delta"]
    assert one["find_rows"] is other["find_rows"]
    assert one["apply_update"] is not other["apply_update"]  # Joint has bounds on weights
    assert one["sum_block"] is not other["sum_block"]
    assert one["apply_update"] is engine(Tagging)["apply_update"]
    assert one["sum_block"] is not engine(Tagging)["sum_block"]


FLAG = False


def leaf(a):
    return a.method if FLAG else a


def middle(a):
    return leaf(a)


def top(a):
    return method(middle(a))  # type: ignore[name-defined]  # noqa: F821


def common(flag: bool) -> Common:
    functions = {"leaf": leaf, "middle": middle, "top": top}
    space = {**functions, "FLAG": flag, "method": None, "__name__": "kernels"}
    return Common(functions, space, constants=["FLAG"], own=["method"])


def test_a_kernel_is_made_once_for_each_of_its_constants():
    made: list[str] = []

    def make(name: str, function: Any) -> Any:
        made.append(name)
        return function

    one, other = common(False), common(True)
    assert [one.is_common(name) for name in ("leaf", "middle", "top")] == [True, True, False]
    kernel = one.made("middle", ("test",), make)
    assert kernel is common(False).made("middle", ("test",), make)
    assert kernel is not other.made("middle", ("test",), make)
    assert made == ["leaf", "middle"] * 2
    assert kernel.__globals__["leaf"] is one.made("leaf", ("test",), make)
    assert kernel(7) == 7


@pytest.mark.parametrize(
    ("problem", "expected"),
    [(Tagging, False), (Joint, True), (Transitions, False), (Chunking, True)],
)
def test_only_some_problems_have_bounds_on_weights(problem, expected):
    assert is_capped(problem) == expected
    assert engine(problem)["CAPPED"] == expected


def test_the_hash_knows_that_states_are_partial():
    class Partial(Tagging):
        partial_states = True

    class Whole(Tagging):
        pass

    assert fingerprint(Partial) != fingerprint(Whole)
    Whole.__qualname__ = Partial.__qualname__
    assert source_fingerprint(Partial) != source_fingerprint(Whole)
