"""Small documents for clustering: items with a field of each kind, templates with each atom."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from hypothesis import strategies as st

from laso.engine.layout import Dataset
from laso.tasks.clustering.comparisons import CATEGORY, KINDS, NUMBER, SET, SPAN, TEXT
from laso.tasks.clustering.encoder import Candidates, ClusteringEncoder
from laso.tasks.clustering.fields import Document
from laso.tasks.clustering.problem import RECORD, RECORDS, USED
from laso.tasks.clustering.templates import OF_PAIRS, OF_VALUES, POSITION, parse_templates

FIELDS = {"c": CATEGORY, "t": TEXT, "n": NUMBER, "s": SET, "p": SPAN, POSITION: NUMBER}
TEMPLATES = (
    "bias",
    *(f"c[{place}{offset or ''}]" for place, offset in OF_VALUES),
    "c[item]|c[last]",
    "c[item]|c[last-1]|c[last-2]",
    "c[first]|c[last]",
    "size[all]",
    "size[all]|c[item]",
    "rank[last]",
    "recent[all]",
    "recent[all]|rank[last]|c[last]",
    "t.edit[any]|n.difference[all]|c[item]",
    "c.equal[most]|t.words[most]",
    "p.gap[first]|p.nested[last]",
    "position.difference[last]|c[first]",
    "s.overlap[earlier]|c[item]",
    *(
        f"{field}.{each}[{place}]"
        for field in "ct"
        for each in KINDS[FIELDS[field]]
        for place in OF_PAIRS
    ),
    *(
        f"{field}.{each}[{place}]"
        for field in "nsp"
        for each in KINDS[FIELDS[field]][-1:]
        for place in OF_PAIRS
    ),
)


class Drawn(NamedTuple):
    """Documents with gold ids, and the encoder that makes arrays of them."""

    encoder: ClusteringEncoder
    documents: list[Document]
    gold: list[list[int | None]]
    dataset: Dataset

    def __repr__(self) -> str:  # arrays say little
        return f"{[d.items for d in self.documents]} {self.gold} {self.encoder.candidates}"


def items(n: int, *, missing: bool = True) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Items with a field of each kind, some of them without a value."""
    absent = [st.none()] if missing else []
    text = st.sampled_from(["ann", "ann lee", "Anna", "bo", "lee ann", ""])
    span = st.tuples(st.integers(0, 6), st.integers(0, 3)).map(lambda s: (s[0], s[0] + s[1]))
    return st.lists(
        st.fixed_dictionaries(
            {
                "c": st.one_of(*absent, st.sampled_from("xyz")),
                "t": st.one_of(*absent, text),
                "n": st.one_of(*absent, st.integers(-2, 40)),
                "s": st.one_of(*absent, st.lists(st.sampled_from("uvw"), max_size=2)),
                "p": st.one_of(*absent, span),
            }
        ),
        min_size=n,
        max_size=n,
    )


@st.composite
def candidates(draw: Any) -> Candidates:
    """A window, keys of blocks, or any earlier items."""
    window = draw(st.sampled_from([1, 2, 3, 9]))
    how = draw(st.sampled_from(["window", "blocks", "chosen", "chosen"]))
    if how == "blocks":
        return Candidates(
            window, draw(st.sampled_from([["c"], ["s", "c"]])), nearest=draw(st.integers(0, 2))
        )
    if how == "chosen":
        seed = draw(st.integers(0, 99))
        return Candidates(choose=lambda items: some_before(len(items), seed))
    return Candidates(window)


def some_before(n: int, seed: int) -> list[list[int]]:
    """Return for each of n items about half of those before it."""
    random = Random(seed)
    return [[j for j in range(i) if random.random() < 0.5] for i in range(n)]


@st.composite
def drawn(
    draw: Any,
    *,
    most: int = 5,
    documents: int = 3,
    partial: bool = True,
    templates: Sequence[str] = (),
) -> Drawn:
    """Draw documents with ids of items, of which some are not known, and a few templates."""
    chosen = templates or draw(st.lists(st.sampled_from(TEMPLATES), min_size=1, max_size=6))
    different = draw(st.sampled_from([None, None, "c"]))
    encoder = ClusteringEncoder(
        FIELDS, parse_templates(["c[item]", *chosen]), draw(candidates()), different=different
    )
    made, gold = [], []
    sizes = st.sampled_from([*range(most), *[most] * most])
    for n in draw(st.lists(sizes, min_size=1, max_size=documents)):
        rows = draw(items(n))
        made.append(Document(rows))
        ids: list[int | None] = []
        for i, row in enumerate(rows):
            taken = {
                ids[j]
                for j in range(i)
                if different and row["c"] is not None and rows[j]["c"] == row["c"]
            }
            free = [k for k in range(most + 2) if k not in taken]
            ids.append(draw(st.sampled_from([*free[:3], None] if partial else free[:3])))
        gold.append(ids)
    return Drawn(encoder, made, gold, encoder.dataset(made, gold))


def clustering_corpora() -> st.SearchStrategy[Dataset]:
    """Draw datasets to compare engines with."""
    return drawn(most=4, documents=2).map(lambda each: each.dataset)


def records_size(state: Sequence[int]) -> int:
    """Return how much of a state is in use."""
    return RECORDS + RECORD * state[USED]
