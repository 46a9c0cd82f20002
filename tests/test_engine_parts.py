"""How kernels are compiled: parts that are linked once, and an engine that problems share."""

from __future__ import annotations

import numba
import pytest

from laso.engine import kernels
from laso.engine.hashing import mix, teach_numba
from laso.engine.layout import PARTIAL_STATES
from laso.engine.native import PLAIN, dispatch, fingerprint, lowering, parts
from laso.engine.problem import FLAGS, NAMES, is_capped, is_shared
from laso.tasks.chunking.problem import Chunking
from laso.tasks.joint.problem import Joint
from laso.tasks.parsing.transitions import Transitions
from laso.tasks.tagging.problem import Tagging


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


def test_problems_share_the_lowered_engine():
    one = lowering.engine(kernels, checked=False)
    assert one is lowering.engine(kernels, checked=False)
    assert one is not lowering.engine(kernels, checked=True)
    assert {*NAMES, *FLAGS} <= {*one}


@pytest.mark.parametrize(
    ("problem", "expected"),
    [(Tagging, False), (Joint, True), (Transitions, False), (Chunking, True)],
)
def test_only_some_problems_have_bounds_on_weights(problem, expected):
    assert is_capped(problem) == expected
    engine = dispatch.plain_engine(problem, PLAIN)
    assert engine["has_bounds"]() == expected
    assert engine["shares_blocks"]() == is_shared(problem)


def test_the_hash_knows_that_states_are_partial():
    class Partial(Tagging):
        @staticmethod
        def limits(x, out):
            Tagging.limits(x, out)
            out[PARTIAL_STATES] = 1

    class Whole(Tagging):
        pass

    marks = {fingerprint(problem, PLAIN, "decode_many") for problem in (Partial, Whole)}
    assert len(marks) == 2
