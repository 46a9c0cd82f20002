"""Entities as character offsets: exports of annotation tools as inputs everywhere."""

import json

import pytest

from laso import BadData, Tagger
from laso.data import read

TEXT = "Ada Lovelace met Mr. Babbage in London."
WORDS = ["Ada", "Lovelace", "met", "Mr.", "Babbage", "in", "London", "."]
LABELS = ["B-PER", "I-PER", "O", "O", "B-PER", "O", "B-LOC", "O"]
SPANS = [(0, 12, "PER"), (21, 28, "PER"), (32, 38, "LOC")]
DICTS = [{"start": s, "end": e, "label": label} for s, e, label in SPANS]
LISTED = [{"start": s, "end": e, "text": "", "labels": [label]} for s, e, label in SPANS]
TOKENS = [
    {"id": i, "start": TEXT.index(word), "end": TEXT.index(word) + len(word)}
    for i, word in enumerate(WORDS)
]
EXPORTS = {
    "spaCy, Doc.to_json": {"text": TEXT, "ents": DICTS, "tokens": TOKENS},
    "spaCy, older": {"text": TEXT, "entities": SPANS},
    "Prodigy": {"text": TEXT, "spans": DICTS, "tokens": TOKENS, "answer": "accept"},
    "doccano": {"id": 7, "text": TEXT, "label": SPANS},
    "Label Studio, small": {"text": TEXT, "id": 1, "label": LISTED},
    "Label Studio": {
        "data": {"text": TEXT},
        "annotations": [
            {"result": [{"value": each, "type": "labels"} for each in LISTED]},
        ],
    },
}


def written(path, records):
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)
def test_every_export_has_the_same_tokens_and_labels(export, tmp_path):
    (block,) = read(written(tmp_path / "e.jsonl", [export]), format="jsonl")
    assert block.names == ("tokens", "labels")
    assert block.tokens == list(zip(WORDS, LABELS, strict=True))


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)
def test_they_can_be_learned_from_tagged_and_evaluated(export, tmp_path, laso, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path / "e.jsonl", [export] * 4)
    model = Tagger(epochs=3, queue=1).fit(path)
    assert model.predict([WORDS]) == [LABELS]
    assert model.predict(written(tmp_path / "t.jsonl", [{"text": TEXT}])) == [LABELS]
    assert laso("train", path, "--epochs", "3", "--model", "m.laso").code == 0
    assert '"f": 100.0' in laso("eval", "m.laso", path, "--json").out
    tagged = json.loads(laso("tag", "m.laso", path).out.splitlines()[0])
    assert tagged["labels"] == LABELS


def test_an_entity_gets_whole_tokens():
    import io

    def labels(text, *entities):
        line = json.dumps({"text": text, "ents": entities})
        return [
            token[1] for block in read(io.StringIO(line), format="jsonl") for token in block.tokens
        ]

    assert labels("a b c") == ["O", "O", "O"]
    inside = {"start": 3, "end": 7, "label": "X"}
    assert labels("sand other", inside) == ["B-X", "I-X"]


@pytest.mark.parametrize(
    ("entity", "message"),
    [
        (
            [0, 3],
            "found the entity .*, expected a label and the offsets start and end, from 0 to 6",
        ),
        ([0, 7, "A"], "from 0 to 6"),
        ([3, 3, "A"], "from 0 to 6"),
        (["0", 3, "A"], "from 0 to 6"),
        ({"start": 0, "end": 3, "labels": ["A", "B"]}, "from 0 to 6"),
        ([2, 3, "A"], "A at the characters 2 to 3, which have no token"),
        ([1, 4, "B"], "B at the characters 1 to 4, where another entity has a token"),
    ],
)
def test_wrong_offsets_are_told_with_file_and_line(entity, message, tmp_path):
    good = {"text": "ab cde", "entities": []}
    bad = {"text": "ab cde", "entities": [[0, 2, "A"], entity]}
    path = written(tmp_path / "e.jsonl", [good, bad])
    with pytest.raises(BadData, match=rf"e\.jsonl:2: .*{message}"):
        Tagger(epochs=1).fit(path)


def test_an_array_is_told_how_to_become_lines(tmp_path):
    for text in ("[\n{}\n]\n", '[{"text": "a"}]\n'):
        (tmp_path / "e.json").write_text(text, encoding="utf-8")
        with pytest.raises(BadData, match=r"e\.json:1: .* a JSON object on each line: jq -c"):
            Tagger(epochs=1).fit(str(tmp_path / "e.json"))


def test_labels_of_tokens_stay_what_they_are(tmp_path):
    layers = {"text": "a b", "tokens": ["a", "b"], "labels": [["X", "Y"], ["X", "Z"]]}
    (block,) = read(written(tmp_path / "l.jsonl", [layers]), format="jsonl")
    assert block.tokens == [("a", ("X", "Y")), ("b", ("X", "Z"))]
