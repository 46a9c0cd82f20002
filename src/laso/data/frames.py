"""Sentences from a table with one row a token, such as a DataFrame of pandas or polars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from laso.errors import BadData, listed, quoted


def from_frame(
    frame: Any, *, sentence: str, inputs: Sequence[str], label: str | None = None
) -> tuple[list[list[Any]], list[list[str]] | None]:
    """Return the sentences of a table with one row a token, and their labels.

    Parameters
    ----------
    frame : DataFrame, or mapping of names to columns
        The table. Rows of a sentence follow each other.
    sentence : str
        The column that has the same value in all rows of a sentence.
    inputs : sequence of str
        The input columns: the word, and what else the model should see.
    label : str, default=None
        The column of the labels, if there is one.

    Returns
    -------
    X, y
        Lists of sentences and of their labels, as ``fit`` takes them; y is None without a label.

    Examples
    --------
    >>> frame = {"id": [1, 1, 2], "word": ["the", "cat", "dogs"], "tag": ["D", "N", "N"]}
    >>> from_frame(frame, sentence="id", inputs=["word"], label="tag")
    ([['the', 'cat'], ['dogs']], [['D', 'N'], ['N']])
    """
    names = [sentence, *inputs, *([label] if label is not None else [])]
    for name in names:
        if name not in frame:
            known = list(getattr(frame, "columns", frame))
            raise BadData(f"found no column {quoted(name)}, expected one of {listed(known)}")
    if not inputs:
        raise BadData("found no input column, expected at least one")
    groups, *columns = ([*frame[name]] for name in names)
    starts = [i for i, group in enumerate(groups) if i == 0 or group != groups[i - 1]]
    ids = Counter(groups[i] for i in starts)
    if len(ids) < len(starts):
        [(repeated, _)] = ids.most_common(1)
        raise BadData(
            f"found the sentence {quoted(repeated)} in two places, expected its rows together"
        )
    ends = [*starts[1:], len(groups)]
    cells = columns[: len(inputs)]
    tokens = cells[0] if len(cells) == 1 else list(zip(*cells, strict=True))
    X = [tokens[first:end] for first, end in zip(starts, ends, strict=True)]
    if label is None:
        return X, None
    return X, [columns[-1][first:end] for first, end in zip(starts, ends, strict=True)]
