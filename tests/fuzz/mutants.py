"""Mutants of files: bytes changed, and model files changed inside, with their digests mended."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np

from laso.files.container import file_bytes, read_bytes
from tests.test_model_format import LIKELY, digested, mutated, twisted

ODD = [
    *LIKELY,
    {"value": "beam(-1)"},
    {"value": "beam(1000000000)"},
    {"value": "exact()"},
    {"value": "lbfgs(memory=1000000)"},
    {"table": [["O", 1e300]]},
    'w.list("/dev/zero")[0]',
    'w.test("^(a+)+$")[0]',
    r'w.match("(a+)+\b")[0]',
    "w[-500..500]|w[-500..500]",
    "x" * 100_000,
    "left x",
    "reduce",
    "/etc/passwd",
    1e-320,
    1e300,
    10**6,
    float("nan"),
]
TEXTS = [
    b"w[0]", b"|", b"..", b"[-1", b"label", b"500", b'test("(a|a)*$")', b"\x00", b"\xff", b"\t",
    b"\n\n", b"\r", b"#", b"%x[-1,0]", b"U", b"{", b'"tokens":', b"[[[[", b"1e999", b"\xef\xbb\xbf",
    b"1-2", b"_", b"x" * 5000, b"\t999999999999\t", b"\t-1\t", b"\t2\t", b"\t0\t", b"^", b"1e3",
    b"[s0]", b".l1", b"b99", b"distance[s0,", b"label[", b'"\\',
]  # fmt: skip


def text_mutant(data: bytes, draw: Random) -> bytes:
    """Return a text with some of it changed, or with something likely put in."""
    for _ in range(draw.randrange(1, 4)):
        if data and draw.random() < 0.5:
            data = mutated(data, draw)
        else:
            at = draw.randrange(len(data) + 1)
            data = data[:at] + draw.choice(TEXTS) + data[at:]
    return data


def model_mutant(data: bytes, draw: Random) -> bytes:
    """Return a model file with bytes, its header or its tensors changed, and a valid digest."""
    if draw.random() < 0.2:
        return bytes(digested(mutated(data, draw)))
    try:
        header, tensors = read_bytes(data, limit=1e9)
    except Exception:  # the data are a mutant that is no model file any more
        return bytes(digested(mutated(data, draw)))
    compress = bool(header["compressed"])
    for name in ("digest", "compressed", "library", "arrays", "format"):
        header.pop(name, None)
    for _ in range(draw.randrange(1, 3)):
        if draw.random() < 0.5:
            header = _odd(header, draw)
        else:
            name = draw.choice(sorted(tensors))
            tensors[name] = _changed(tensors[name], draw)
    try:
        return file_bytes(header, tensors, compress=compress)
    except Exception:  # what cannot be written cannot be read
        return bytes(digested(mutated(data, draw)))


def _odd(header: Any, draw: Random) -> Any:
    part = draw.choice(["parameters", "learned", "metadata", "history", "", ""])
    if part and isinstance(header.get(part), dict) and header[part]:
        key = draw.choice(sorted(header[part]))
        old = header[part][key]
        new = twisted(old, draw) if draw.random() < 0.5 else draw.choice(ODD)
        if isinstance(old, list) and old and draw.random() < 0.5:
            new = [*old]
            new[draw.randrange(len(old))] = draw.choice(ODD)
        return {**header, part: {**header[part], key: new}}
    made = twisted({"digest": "", **header}, draw)
    return {k: v for k, v in made.items() if k != "digest"} if isinstance(made, dict) else header


def _changed(array: Any, draw: Random) -> Any:
    array = array.copy()
    kind = draw.randrange(6)
    if array.dtype == np.uint8 and array[:1].tobytes() == b"[" and kind < 4:
        return np.frombuffer(_strings(array.tobytes(), draw), np.uint8)
    if kind == 0:
        return array[: draw.randrange(len(array) + 1)]
    if kind == 1:
        return np.repeat(array, draw.choice([2, 50]))
    if kind == 2:
        with np.errstate(all="ignore"):
            return array.astype(draw.choice(["|u1", "<u4", "<u8", "<i8", "<f4", "<f8"]))
    if kind == 3 and len(array):
        array[:] = array[draw.randrange(len(array))]
    elif len(array):
        odd = [0, 1, 2**7, 2**31, 2**63 - 1, 1e30, 1e308, float("inf"), float("nan"), -1]
        with np.errstate(all="ignore"):
            value = np.array(draw.choice(odd)).astype(array.dtype)
        array[draw.randrange(len(array))] = value
    return array


def _strings(data: bytes, draw: Random) -> bytes:
    try:
        strings = json.loads(data)
    except ValueError:
        return data
    return json.dumps(twisted(strings, draw)).encode("ascii")
