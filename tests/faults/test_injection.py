"""A failure at every call of the operations that write: nothing is lost, nothing is left."""

import os
from contextlib import suppress

import numpy as np
import pytest

from tests.faults.injection import failing
from tests.faults.operations import OPERATIONS, survive

CASES = [(operation, kind) for operation in OPERATIONS for kind in operation.kinds]


@pytest.mark.skipif(os.name == "nt", reason="the calls are others there")
@pytest.mark.parametrize(("operation", "kind"), CASES, ids=[f"{o.name}-{k}" for o, k in CASES])
def test_every_fault_is_survived(operation, kind, tmp_path):
    assert survive(operation, tmp_path, kind) > 0


def test_the_harness_finds_an_operation_that_loses_a_file(tmp_path):
    path = tmp_path / "file"
    calls = []
    for n in range(1, 9):
        path.write_text("old")
        with failing(tmp_path, n) as fault, suppress(OSError), path.open("w") as file:
            file.write("new")
            file.flush()
        calls.append((fault.calls, path.read_text()))
        if not fault.happened:
            break
    whole = ["open", "write", "flush"]
    assert calls == [
        (whole[:1], "old"),
        (whole[:2], ""),  # lost
        (whole, "new"),
        (whole, "new"),
    ]


def test_the_harness_counts_allocations_of_the_library_alone(tmp_path):
    from laso.engine.machine import longer

    with failing(tmp_path, 1, "memory") as fault:
        np.zeros(3)
        with pytest.raises(MemoryError):
            longer(np.zeros(3), 5)
    assert fault.calls == ["zeros"]
