"""Texts whose entities are marked by character offsets, as tokens with IOB labels.

Four forms of JSON objects are known, each with a text and a list of entities:

spaCy         {"text": ..., "ents": [{"start": 0, "end": 5, "label": "PER"}], "tokens": ...}
Prodigy       the same with "spans"
doccano       {"text": ..., "label": [[0, 5, "PER"]]}; older exports of spaCy: "entities"
Label Studio  {"text": ..., "label": [{"start": 0, "end": 5, "labels": ["PER"]}]}, or
              {"data": {"text": ...}, "annotations": [{"result": [{"value": ...}]}]}

An entity that begins or ends within a token gets the whole token.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from laso.data.tokenizer import tokens as split_text
from laso.errors import BadData, quoted

KEYS = ("ents", "spans", "entities", "label", "labels")
OUTSIDE = "O"


def tokens_and_labels(fields: dict[str, Any]) -> tuple[list[str], list[str]] | None:
    """Return the tokens of a text and their labels; None if no entities are marked in it."""
    text, entities, known = _text_of(fields), None, fields.get("tokens", fields.get("words"))
    if isinstance(known, list) and not all(isinstance(t, dict) and "start" in t for t in known):
        return None  # each token has its label
    if isinstance(fields.get("annotations"), list):
        entities = [each for part in fields["annotations"] for each in _results(part)]
    for key in KEYS:
        value = fields.get(key)
        if isinstance(value, list) and not any(isinstance(each, (str, int)) for each in value):
            entities = value if entities is None else entities
    if text is None or entities is None:
        return None
    tokens = list(_located(text, known))
    words = [word for _, word in tokens]
    labels = [OUTSIDE] * len(words)
    for start, end, label in sorted(_entity(each, len(text)) for each in entities):
        within = [
            i for i, (first, word) in enumerate(tokens) if first < end and first + len(word) > start
        ]
        if not within:
            raise BadData(f"found {label} at the characters {start} to {end}, which have no token")
        if any(labels[i] != OUTSIDE for i in within):
            raise BadData(
                f"found {label} at the characters {start} to {end}, where another entity has a "
                "token, expected entities that share none"
            )
        for i in within:
            labels[i] = f"{'B' if i == within[0] else 'I'}-{label}"
    return words, labels


def _text_of(fields: dict[str, Any]) -> str | None:
    data = fields.get("data", fields)
    text = data.get("text") if isinstance(data, dict) else None
    return text if isinstance(text, str) else None


def _results(annotation: Any) -> Iterator[Any]:
    result = annotation.get("result") if isinstance(annotation, dict) else None
    for each in result if isinstance(result, list) else ():
        if isinstance(each, dict) and each.get("type", "labels") == "labels":
            yield each.get("value")


def _located(text: str, tokens: Any) -> Iterator[tuple[int, str]]:
    """Yield the tokens with the characters at which they begin: those of the object, or ours."""
    if isinstance(tokens, list):
        for token in tokens:
            start, end, _ = _entity({"label": "a token", **dict(token)}, len(text))
            if text[start:end].strip():
                yield start, text[start:end]
        return
    at = 0
    for word in split_text(text):
        at = text.index(word, at)
        yield at, word
        at += len(word)


def _entity(given: Any, length: int) -> tuple[int, int, str]:
    """Return start, end and label of an entity."""
    fields = given
    if isinstance(given, (list, tuple)) and len(given) == 3:
        fields = dict(zip(("start", "end", "label"), given, strict=True))
    if isinstance(fields, dict):
        start, end = fields.get("start", -1), fields.get("end", -1)
        label = fields.get("label") or fields.get("labels")
        if isinstance(label, list) and len(label) == 1:
            (label,) = label
        numbers = isinstance(start, int) and isinstance(end, int)
        if isinstance(label, str) and numbers and 0 <= start < end <= length:
            return start, end, label
    raise BadData(
        f"found the entity {quoted(given)}, expected a label and the offsets start and end, from 0 "
        f"to {length}"
    )
