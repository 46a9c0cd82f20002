"""The format of model files: read by hand as its document says, old files, and damage."""

import contextlib
import hashlib
import json
import random
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laso import BadModel, Tagger, load_model
from laso.files.container import DIGEST, read_file
from laso.files.estimator import packed_model

ROOT = Path(__file__).parents[1]
GOLDEN = Path(__file__).parent / "golden" / "tagger.laso"
X = [["the", "kettle", "boiled"], ["a", "dog", "slept"], ["dogs", "slept"]]
Y = [["D", "N", "V"], ["D", "N", "V"], ["N", "V"]]


def golden():
    """The model of the golden file; ``python -m tests.test_model_format`` writes it."""
    features = ["w[0]", "w.suffix2[0]", "label[-1]"]
    tagger = Tagger(features=features, queue=2, epochs=3, dropout=0.0).fit(X, Y)
    tagger.metadata_["made"] = "for the test of the format"
    return tagger


def by_hand(data):
    """A file read as docs/reference/model-file.md says, with nothing of laso."""
    (size,) = struct.unpack("<Q", data[:8])
    entries = json.loads(data[8 : 8 + size])
    header = json.loads(entries.pop("__metadata__")["laso"])
    assert (8 + size) % 64 == 0
    head = data[: 8 + size].replace(header["digest"].encode(), b"0" * 32, 1)
    assert hashlib.blake2b(head, digest_size=16).hexdigest() == header["digest"]
    arrays = {}
    for name, (kind, n, kept, checksum) in header["arrays"].items():
        first, end = (8 + size + offset for offset in entries[name]["data_offsets"])
        assert zlib.crc32(data[first:end]) == checksum
        if not header["compressed"]:
            assert first % np.dtype(kind).itemsize == 0
            arrays[name] = np.frombuffer(data[first:end], kind)
            assert len(arrays[name]) == n == kept
            continue
        raw = np.frombuffer(zlib.decompress(data[first:end]), "u1")
        item = np.dtype(kind).itemsize
        planes = raw[len(raw) - item * kept :].reshape(item, kept)
        arrays[name] = np.zeros(n, kind)
        places: Any = slice(None)
        if kept < n:
            places = np.flatnonzero(np.unpackbits(raw[: len(raw) - item * kept], count=n))
        arrays[name][places] = planes.T.copy().view(kind).reshape(kept)
    return header, arrays


def strings_by_hand(arrays, name):
    """The strings of a vocabulary."""
    text, ends = arrays[f"{name}.text"].tobytes(), np.cumsum(arrays[f"{name}.lengths"])
    return [
        text[a:b].decode("utf-8", "surrogatepass")
        for a, b in zip([0, *ends[:-1]], ends, strict=True)
    ]


def test_the_golden_file_is_read_by_hand_and_by_laso():
    header, arrays = by_hand(GOLDEN.read_bytes())
    assert header["format"] == 5
    assert header["task"] == "tagging"
    labels = header["learned"]["labels"]
    assert labels == ["D", "N", "V"]
    assert header["labels"] == len(labels)
    assert strings_by_hand(arrays, "task.values.0")[:3] == ["the", "kettle", "boiled"]
    keys = np.cumsum(arrays["keys"])
    weights = {
        (int(key), label): float(weight)
        for key, row in zip(keys, arrays["weights"].reshape(-1, len(labels)), strict=True)
        for label, weight in zip(labels, row, strict=True)
        if weight
    }
    model = load_model(GOLDEN)
    table = model.weights_
    found = {
        (int(np.int64(key).view(np.uint64)), str(model.classes_[label])): float(weight)
        for key, row in table.slots[table.slots[:, 1] != 0]
        for label, weight in enumerate(table.v[row - 1])
        if weight
    }
    assert found == weights
    assert model.predict(X) == Y


def test_the_same_model_is_still_written_the_same():
    """All but the compressed bytes, which another zlib may make otherwise, and the version."""
    header, arrays = by_hand(GOLDEN.read_bytes())
    now, tensors = packed_model(golden(), None, False)
    for name in ("digest", "format", "compressed", "library", "arrays"):
        header.pop(name)
    later = {n: v for n, v in now["parameters"].items() if n not in header["parameters"]}
    defaults = Tagger.default_parameters()
    assert later == {name: defaults[name] for name in later}  # parameters that it may lack
    now["parameters"] = {name: now["parameters"][name] for name in header["parameters"]}
    assert json.loads(json.dumps(now)) == header
    assert {name: t.tolist() for name, t in tensors.items()} == {
        name: a.tolist() for name, a in arrays.items()
    }


def test_files_of_older_and_newer_versions(tmp_path):
    path = tmp_path / "model"

    def loaded(change):
        header, _ = read_file(GOLDEN)
        change(header)
        path.write_bytes(with_header(GOLDEN.read_bytes(), header))
        return load_model(path)

    assert loaded(lambda header: header.update(colour="red")).predict(X) == Y
    earlier = loaded(lambda header: header["parameters"].pop("resources"))
    assert (earlier.predict(X), earlier.resources) == (Y, ())
    with pytest.raises(BadModel, match="its parameters are not those of a Tagger"):
        loaded(lambda header: header["parameters"].update(colour="red"))
    with pytest.raises(BadModel, match=r"format 6, expected 5 \(a later version"):
        loaded(lambda header: header.update(format=6))
    with pytest.raises(BadModel, match="found 224 bytes for an array of 136"):
        loaded(lambda header: header.update(compressed=False))
    with pytest.raises(BadModel, match="found format 4, expected 5"):
        loaded(lambda header: header.update(format=4))
    with pytest.raises(BadModel, match="a model for the task 'singing', which is not built in"):
        loaded(lambda header: header.update(task="singing"))


def with_header(data, header):
    """The file with another header, and the digest that belongs to it."""
    (size,) = struct.unpack("<Q", data[:8])
    entries = json.loads(data[8 : 8 + size])
    text = json.dumps({**header, "digest": "0" * 32}, separators=(",", ":"))
    entries["__metadata__"]["laso"] = text
    head = json.dumps(entries, separators=(",", ":")).encode()
    return digested(struct.pack("<Q", len(head)) + head + data[8 + size :])


def digested(data):
    """The file with the digest that belongs to it, if it has a place for one."""
    place = DIGEST.search(data)
    if place is None:
        return data
    zeros = data[: place.start(1)] + b"0" * 32 + data[place.end(1) :]
    zeros = zeros[: 8 + int.from_bytes(data[:8], "little")]
    found = hashlib.blake2b(zeros, digest_size=16).hexdigest().encode()
    return data[: place.start(1)] + found + data[place.end(1) :]


def mutated(data, draw):
    """A file with some bytes changed, cut out, doubled, moved or made up."""
    a, b = sorted(draw.randrange(len(data)) for _ in range(2))
    kind = draw.randrange(7)
    if kind == 0:
        return data[:a]
    if kind == 1:
        return data[:a] + data[b:]
    if kind == 2:
        return data[:b] + data[a:]
    if kind == 3:
        return data[:a] + draw.randbytes(min(8, b - a)) + data[b:]
    if kind == 4:
        return (
            struct.pack("<Q", draw.choice([0, 2**63, len(data), draw.randrange(2**20)])) + data[8:]
        )
    changed = bytearray(data)
    for _ in range(draw.randrange(1, 5)):
        changed[draw.randrange(len(data))] = draw.randrange(256)
    return bytes(changed)


def test_ten_thousand_damaged_files_are_answered_with_one_clear_error(tmp_path):
    data, draw, path = GOLDEN.read_bytes(), random.Random(0), tmp_path / "model"
    for _ in range(8_500):
        changed = mutated(data, draw)
        if changed != data:
            path.write_bytes(changed)
            with pytest.raises(BadModel, match="cannot be loaded: "):
                load_model(path)


NUMBERS = (0, -1, 1, 2**31, 2**63, 10**30, 1e308)
PLAIN: list[Any] = [None, True, "", "x", [], {}, [[]]]
LIKELY: list[Any] = [*NUMBERS, *PLAIN, {"make": "Beam"}, {"value": "beam()"}, {"value": 1}]


def twisted(value, draw):
    """JSON with something in it replaced."""
    if isinstance(value, dict) and value and ("digest" in value or draw.random() < 0.8):
        key = draw.choice(list(value))
        if draw.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: twisted(value[key], draw)}
    if isinstance(value, list) and value and draw.random() < 0.6:
        i = draw.randrange(len(value))
        return [*value[:i], twisted(value[i], draw), *value[i + 1 :]]
    return draw.choice(LIKELY)


def test_files_damaged_by_somebody_who_mends_the_digest(tmp_path):
    """They load, if they still make sense, or are answered with the one error."""
    data, draw, path = GOLDEN.read_bytes(), random.Random(1), tmp_path / "model"
    header, _ = read_file(GOLDEN)
    loaded = 0
    for i in range(1_500):
        changed = (
            with_header(data, dict(twisted(header, draw)))
            if i % 2
            else digested(mutated(data, draw))
        )
        path.write_bytes(changed)
        with contextlib.suppress(BadModel):
            load_model(path)
            loaded += 1
    assert loaded < 900


def test_a_table_larger_than_any_is_not_made(tmp_path):
    header, _ = read_file(GOLDEN)
    header["arrays"]["weights"][1] = header["arrays"]["weights"][2] = 2**40
    path = tmp_path / "model"
    path.write_bytes(with_header(GOLDEN.read_bytes(), header))
    with pytest.raises(BadModel, match="bytes for an array"):
        load_model(path)


def test_a_file_is_not_kept_open(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(GOLDEN.read_bytes())
    model = load_model(path)
    path.write_bytes(b"something else")
    assert model.predict(X) == Y


def test_the_document_names_every_key_of_the_header():
    text = (ROOT / "docs/reference/model-file.md").read_text(encoding="utf-8")
    header, tensors = read_file(GOLDEN)
    for name in (*header, *tensors):
        assert f"`{name}`" in text or name.startswith("task.values."), name


if __name__ == "__main__":
    GOLDEN.parent.mkdir(exist_ok=True)
    golden().save(GOLDEN)
