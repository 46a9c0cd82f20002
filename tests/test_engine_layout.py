"""The columns of the engine's arrays: every enumeration counts from 0 and is bound by name."""

from __future__ import annotations

import inspect
from enum import IntEnum

import numpy as np
import pytest

from laso.engine import layout
from laso.engine.lattice import layout as lattice_layout
from laso.engine.layout import Method, plain
from laso.engine.problem import NAMES

ENUMERATIONS = [
    (module, kind)
    for module in (layout, lattice_layout)
    for kind in vars(module).values()
    if inspect.isclass(kind) and issubclass(kind, IntEnum) and kind.__module__ == module.__name__
]


@pytest.mark.parametrize(("module", "kind"), ENUMERATIONS)
def test_members_count_from_0_and_have_their_names(module, kind):
    assert [int(member) for member in kind] == list(range(len(kind)))
    for member in kind:
        name = f"IN_{member.name}" if kind is Method else member.name
        assert getattr(module, name) is member


def test_there_are_many_and_no_name_has_two_meanings():
    names = [member.name for _, kind in ENUMERATIONS if kind is not Method for member in kind]
    assert len(ENUMERATIONS) > 25
    assert len(names) == len(set(names))


def test_checked_methods_are_methods_of_a_problem():
    assert {member.name.lower() for member in Method} <= set(NAMES)


def test_the_compiler_sees_integers():
    array = np.zeros(2)
    given = {"GOOD": layout.GOOD, "DONE": layout.DONE, "flag": True, "array": array, "size": 3}
    found = plain(given)
    assert found == {**given, "GOOD": 3, "DONE": 0}
    assert {type(found[name]) for name in ("GOOD", "DONE", "size")} == {int}
    assert found["flag"] is True
    assert found["array"] is array
