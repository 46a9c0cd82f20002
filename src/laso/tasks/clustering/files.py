"""Documents of items in JSON lines: ``{"items": [...], "clusters": [...]}``."""

from __future__ import annotations

import json
from typing import Any

from laso.data.lines import numbered_lines
from laso.errors import BadData, quoted

ITEMS, CLUSTERS = "items", "clusters"


def read_documents(path: str, *, labelled: bool) -> tuple[list[Any], list[Any] | None]:
    """Return the items of each document, and the ids of items if they are ``labelled``.

    A line is an object with a list of items; beside it may be a list with an id or null for each.
    Where items are objects that have a key "cluster", it is their id.
    """
    documents, ids = [], []
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            raise BadData(
                f'found no JSON ({error}), expected an object with a list of "{ITEMS}"',
                file=path,
                line=number,
            ) from None
        items = value.get(ITEMS) if isinstance(value, dict) else value
        if not isinstance(items, list):
            raise BadData(
                f'found {quoted(value)}, expected an object with a list of "{ITEMS}"',
                file=path,
                line=number,
            )
        documents.append([_item(item) for item in items])
        if not labelled:
            continue
        given = value.get(CLUSTERS) if isinstance(value, dict) else None
        if given is None and all(isinstance(i, dict) and CLUSTER in i for i in items):
            given = [item[CLUSTER] for item in items]
        if not isinstance(given, list) or len(given) != len(items):
            found = "none" if not isinstance(given, list) else str(len(given))
            raise BadData(
                f'found {found} for "{CLUSTERS}", expected an id or null for each of '
                f"{len(items)} items",
                file=path,
                line=number,
            )
        ids.append(given)
    return documents, ids if labelled else None


CLUSTER = "cluster"


def _item(item: Any) -> Any:
    """Return an item without its id; a list is a tuple of fields."""
    if isinstance(item, dict):
        return {name: value for name, value in item.items() if name != CLUSTER}
    return tuple(item) if isinstance(item, list) else item
