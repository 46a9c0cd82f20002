"""The values of columns as tables for compiled code: from bytes to items.

``KnownValues`` has the values of training; threads share it. ``NewValues`` has values that training
did not see: their base features are computed once for each distinct value.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from laso.data.table import Array, Column, Factor
from laso.engine import layout as at
from laso.engine.machine import longer
from laso.engine.native import text_kernels
from laso.engine.text import layout as lt
from laso.engine.text import lexicon as lx
from laso.engine.text.layout import PAD, Lexicon
from laso.engine.weights.hash_table import placed
from laso.features.keys import first_words, mix_arrays, text_keys

if TYPE_CHECKING:
    from laso.features.encoder import ColumnEncoder, View
    from laso.features.vocabulary import Vocabulary

FEW = 1 << 10  # entries for which there is room at first
KEPT = 1 << 17  # entries of new values that are kept for the next batch
KEPT_TEXT = 1 << 23  # their bytes


@dataclass(frozen=True)
class KnownValues:
    """The values of training with the numbers of their base features.

    Parameters
    ----------
    lexicon : Lexicon
        The values of all columns.
    views : list of lists of View
        The views of each input column; the numbers of an entry are in their order.
    targets : array of int64 (input columns, most views)
        The column of the items of each view, -1 for none.
    sizes : tuple of int
        The number of values of each vocabulary.
    spare : list of NewValues
        Those that no thread uses now.
    """

    lexicon: Lexicon
    views: list[list[View]]
    targets: Array
    sizes: tuple[int, ...]
    spare: list[NewValues] = field(default_factory=list)


def known_values(encoder: ColumnEncoder) -> KnownValues:
    """Return the values of training, which the encoder keeps until it learns more."""
    sizes = tuple(map(len, encoder.vocabularies.values()))
    if encoder.lexicon is None or encoder.lexicon.sizes != sizes:
        views = encoder.views.values()
        encoder.lexicon = _made(len(encoder.names), encoder.vocabularies, views)
    kept: KnownValues = encoder.lexicon
    return kept


def no_values(columns: int) -> KnownValues:
    """Return the values before training, when all are new."""
    return _made(columns, {}, ())


def is_numbered(encoder: ColumnEncoder) -> bool:
    """Return whether tokens have columns, and not more than a lexicon can tell apart."""
    return 0 < len(encoder.names) <= lx.MOST_COLUMNS


def _made(n_columns: int, known: dict[int, Vocabulary], all_views: Iterable[View]) -> KnownValues:
    sizes = tuple(map(len, known.values()))
    views: list[list[View]] = [[] for _ in range(n_columns)]
    items: list[list[int]] = [[] for _ in range(n_columns)]
    for i, view in enumerate(all_views):
        views[view.column].append(view)
        items[view.column].append(i)
    width = max(1, *map(len, views))
    targets = np.full((len(views), width), -1, np.int64)
    numbers = np.zeros((sum(sizes), width), np.int32)
    keys, texts, columns, lengths, first = [np.zeros(0, np.int64)], [], [], [], 0
    for n, (column, values) in zip(sizes, known.items(), strict=True):
        targets[column, : len(items[column])] = items[column]
        for j, view in enumerate(views[column]):
            numbers[first : first + n, j] = view.of_value
        text, ends = values.encoded
        value_lengths = np.diff(ends, prepend=0)
        keys.append(_keys(text, value_lengths, column))
        texts.append(text)
        lengths.append(value_lengths)
        columns.append(np.full(n, column))
        first += n
    ends = np.cumsum(np.concatenate([np.zeros(0, np.int64), *lengths]))
    places = np.zeros((first, len(lt.PlaceColumn)), np.int64)
    places[1:, lt.PLACE_START], places[:, lt.PLACE_END] = ends[:-1], ends
    places[:, lt.PLACE_COLUMN] = np.concatenate(columns) if columns else 0
    slots = _placed(np.concatenate(keys), 1 << max(4, (2 * first).bit_length()))
    whole = np.frombuffer(bytearray(b"".join(texts) + bytes(PAD)), np.uint8)
    ints = np.zeros(len(at.TableInt), np.int64)
    ints[at.ROWS] = first
    return KnownValues(Lexicon(slots, ints, places, whole, numbers), views, targets, sizes)


def _keys(text: bytes, lengths: Array, column: int) -> Array:
    """Return the keys of values of a column, as ``value_key`` defines them."""
    hashed = text_keys(text, lengths).view(np.uint64)
    mixed = mix_arrays(hashed, np.full(len(hashed), column, np.uint64))
    keys: Array = mixed.view(np.int64) | lx.LONG
    short = np.flatnonzero(lengths <= lx.SHORT)
    size = lengths[short]
    words = first_words(text)[(np.cumsum(lengths) - lengths)[short]].astype(np.int64)
    words &= (1 << 8 * size) - 1
    keys[short] = words | size << lx.LENGTH_BITS | column << lx.COLUMN_BITS
    return keys


def _placed(keys: Array, capacity: int) -> Array:
    """Return the hash table of entries with these keys, in their order."""
    rows = np.arange(1, len(keys) + 1)
    where = mix_arrays(keys.view(np.uint64), np.zeros(len(keys), np.uint64)).view(np.int64)
    slots = placed(np.stack([where, rows], axis=1), capacity)
    slots[:, at.SLOT_KEY] = np.append(keys, 0)[slots[:, at.SLOT_ROW] - 1]
    return slots


class NewValues:
    """Values that training did not see, with the numbers of their base features.

    One thread at a time may use it. Entries stay for the next batch until there are too many.
    """

    def __init__(self, known: KnownValues) -> None:
        self.known = known
        self.numbered = 0  # entries whose numbers are computed
        self.clear()

    def clear(self) -> None:
        """Remove all entries."""
        self.lexicon, self.numbered = (
            Lexicon(
                np.zeros((4 * FEW, len(at.SlotColumn)), np.int64),
                np.zeros(len(at.TableInt), np.int64),
                np.zeros((FEW, len(lt.PlaceColumn)), np.int64),
                np.zeros(16 * FEW, np.uint8),
                np.zeros((FEW, self.known.targets.shape[1]), np.int32),
            ),
            0,
        )

    def limit(self) -> None:
        """Remove all entries if there are too many to keep."""
        n, places = int(self.lexicon.ints[at.ROWS]), self.lexicon.places
        if n > KEPT or (n and places[n - 1, lt.PLACE_END] > KEPT_TEXT):
            self.clear()

    def make_room(self) -> None:
        """Double the room."""
        old = self.lexicon
        used = old.slots[old.slots[:, at.SLOT_ROW] != 0]
        keys = used[np.argsort(used[:, at.SLOT_ROW]), at.SLOT_KEY]
        self.lexicon = Lexicon(
            _placed(keys, 2 * len(old.slots)),
            old.ints,
            longer(old.places, 2 * len(old.places)),
            longer(old.text, 2 * len(old.text)),
            longer(old.numbers, 2 * len(old.numbers)),
        )

    def items(self, codes: Array) -> Array:
        """Return the items of tokens, given the codes of their cells."""
        self._number()
        known, views = self.known, sum(map(len, self.known.views))
        items = np.zeros((len(codes), max(1, views)), np.int32)
        text_kernels()("gather_numbers", codes, known.lexicon, self.lexicon, known.targets, items)
        return items

    def factors(self, codes: Array) -> list[Column]:
        """Return the columns of tokens, given the codes of their cells; training saw no value."""
        n = int(self.lexicon.ints[at.ROWS])
        of_entry = self.lexicon.places[:n, lt.PLACE_COLUMN]
        numbers = np.zeros(n, np.int32)
        columns: list[Column] = []
        for column in range(codes.shape[1]):
            chosen = np.flatnonzero(of_entry == column)
            numbers[chosen] = np.arange(len(chosen))
            columns.append(Factor(numbers[codes[:, column]], self._strings(chosen)))
        return columns

    def _strings(self, chosen: Array) -> list[str]:
        """Return the strings of some entries."""
        text, places = self.lexicon.text.tobytes(), self.lexicon.places[chosen]
        bounds = zip(
            places[:, lt.PLACE_START].tolist(), places[:, lt.PLACE_END].tolist(), strict=True
        )
        return [text[a:b].decode("utf-8", "surrogatepass") for a, b in bounds]

    def _number(self) -> None:
        """Compute the numbers of the base features of new entries."""
        first, n = self.numbered, int(self.lexicon.ints[at.ROWS])
        if first == n:
            return
        of_entry = self.lexicon.places[first:n, lt.PLACE_COLUMN]
        for column, views in enumerate(self.known.views):
            chosen = first + np.flatnonzero(of_entry == column)
            values = self._strings(chosen)
            for j, view in enumerate(views):
                self.lexicon.numbers[chosen, j] = view.numbers(values)
        self.numbered = n
