"""Scores of partitions: coreference and clustering, as the reference scorer of CoNLL counts them.

A partition divides the items of a document (mentions of a text, records of a file) into clusters.
Each measure has a precision, a recall and an F, in per cent. Their numerators and denominators are
sums over all documents. Recall is defined here; precision is recall with gold and predicted
clusters exchanged.

muc       Vilain et al. (1995). A cluster of n mentions needs n - 1 links. Of these, one is missing
          for each further predicted cluster, or mention in none, that the gold cluster falls into.
b_cubed   Bagga & Baldwin (1998). For each gold mention, the share of its gold cluster that is in
          its predicted cluster; 0 for a mention in none.
ceaf_m    Luo (2005), with phi 3. Gold and predicted clusters are aligned one to one so that aligned
          clusters share as many mentions as possible; these mentions, as a share of all.
ceaf_e    The same with phi 4: aligned clusters g and p add 2 |g & p| / (|g| + |p|) to a sum, which
          is divided by the number of clusters.
lea       Moosavi & Strube (2016). For each gold cluster, the share of its links that are links of a
          predicted cluster, weighted by its size. A cluster of one mention has one link, of the
          mention to itself, which only the same cluster of one mention has, too.
blanc     Luo et al. (2014). The mean of the scores of coreference links, the pairs within a
          cluster, and of non-coreference links, the pairs between clusters; of F, too. If the gold
          partitions have no link of one kind, the scores are those of the other kind, as in the
          reference scorer. So exchanging gold and predicted clusters may change F.
pairwise  The scores of coreference links alone.

A ratio of 0 / 0 is 0, as the reference scorer prints it: all of them without mentions, MUC and
pairwise where no cluster has two mentions, BLANC where no document has two gold mentions. So of
identical partitions, too, some scores may be 0.

The reference scorer is that of Pradhan et al. (2014), version 8.01, and for LEA ``coval`` by the
authors of LEA. Both count clusters of one mention, called singletons.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from laso.errors import BadData, counted, quoted

Partition = Iterable[Hashable]
"""The cluster of each item of a document; None of an item in no cluster."""
Clusters = Iterable[Iterable[Hashable]]
"""The clusters of a document, each with its mentions."""

NAMES = {
    "mentions": "mentions",
    "muc": "MUC",
    "b_cubed": "B-cubed",
    "ceaf_e": "CEAF-e",
    "ceaf_m": "CEAF-m",
    "lea": "LEA",
    "blanc": "BLANC",
    "pairwise": "pairwise",
}


class Ratios(NamedTuple):
    """Precision, recall and F of a measure, in per cent.

    Examples
    --------
    >>> partition_scores([["x", "x", "x"]], [["y", "y", "z"]]).muc
    Ratios(precision=100.0, recall=50.0, f=66.66666666666667)
    """

    precision: float
    recall: float
    f: float


@dataclass(frozen=True)
class PartitionScores:
    """The scores of partitions, in per cent; ``str`` gives a table.

    Attributes
    ----------
    documents : int
        The number of documents.
    mentions : Ratios
        How many mentions are in clusters of both partitions; ``singletons=False`` leaves out those
        of singletons here, too.
    muc, b_cubed, ceaf_e, ceaf_m, lea, blanc, pairwise : Ratios
        The measures that the module defines.

    Examples
    --------
    >>> scores = partition_scores([["x", "x", "y", "y"]], [["x", "x", "x", "y"]])
    >>> round(scores.conll, 2), scores.score == scores.conll, scores.lea.precision
    (64.64, True, 25.0)
    """

    documents: int
    mentions: Ratios
    muc: Ratios
    b_cubed: Ratios
    ceaf_e: Ratios
    ceaf_m: Ratios
    lea: Ratios
    blanc: Ratios
    pairwise: Ratios

    @property
    def conll(self) -> float:
        """The CoNLL average: the mean F of MUC, B-cubed and CEAF-e."""
        return (self.muc.f + self.b_cubed.f + self.ceaf_e.f) / 3

    @property
    def score(self) -> float:
        """The main measure: the CoNLL average."""
        return self.conll

    def as_json(self) -> dict[str, Any]:
        """Return the scores as JSON."""
        ratios = {name: getattr(self, name)._asdict() for name in NAMES}
        return {"documents": self.documents, "conll": self.conll, **ratios}

    def __str__(self) -> str:
        lines = [
            f"{counted(self.documents, 'document')}; CoNLL average {self.conll:.2f}",
            f"  {'':8}  precision  recall       F",
        ]
        for name, shown in NAMES.items():
            n = getattr(self, name)
            lines.append(f"  {shown:8}  {n.precision:9.2f}  {n.recall:6.2f}  {n.f:6.2f}")
        return "\n".join(lines)


def clusters(partition: Partition) -> list[list[int]]:
    """Return the clusters of one document, each with the indices of its items.

    Parameters
    ----------
    partition : iterable of hashables
        The cluster of each item; None of an item in no cluster.

    Returns
    -------
    list of lists of int
        The clusters, in the order of their first items.

    Examples
    --------
    >>> clusters(["x", "y", "x", None])
    [[0, 2], [1]]
    """
    members: dict[Hashable, list[int]] = {}
    for item, cluster in enumerate(partition):
        if cluster is not None:
            members.setdefault(cluster, []).append(item)
    return list(members.values())


def partition_scores(
    gold: Iterable[Partition], predicted: Iterable[Partition], *, singletons: bool = True
) -> PartitionScores:
    """Compare predicted with gold partitions of the same items.

    Parameters
    ----------
    gold, predicted : iterables of iterables of hashables
        For each document the cluster of each item; None of an item in no cluster.
    singletons : bool, default=True
        Whether clusters of one item count, as they do for the reference scorer. With False they are
        removed from both partitions first.

    Returns
    -------
    PartitionScores
        MUC, B-cubed, CEAF, LEA, BLANC, pairwise scores and the CoNLL average.

    Examples
    --------
    >>> gold = [["A", "A", "A", "B", "B", "B", "B", None, None]]
    >>> predicted = [[1, 1, 2, 2, None, 3, 3, 3, 3]]
    >>> print(partition_scores(gold, predicted))
    1 document; CoNLL average 45.82
                precision  recall       F
      mentions      75.00   85.71   80.00
      MUC           40.00   40.00   40.00
      B-cubed       50.00   41.67   45.45
      CEAF-e        43.33   65.00   52.00
      CEAF-m        50.00   57.14   53.33
      LEA           33.33   23.81   27.78
      BLANC         32.50   44.44   36.76
      pairwise      25.00   22.22   23.53
    """
    pairs = list(_pairs(gold, predicted))
    for number, both in enumerate(pairs, start=1):
        n_gold, n_predicted = map(len, both)
        if n_gold != n_predicted:
            raise BadData(
                f"document {number}: found {n_predicted} predicted items, expected {n_gold} as in "
                "gold"
            )
    return cluster_scores(
        [_clusters_of(ids, number) for number, (ids, _) in enumerate(pairs, start=1)],
        [_clusters_of(ids, number) for number, (_, ids) in enumerate(pairs, start=1)],
        singletons=singletons,
    )


def cluster_scores(
    gold: Iterable[Clusters], predicted: Iterable[Clusters], *, singletons: bool = True
) -> PartitionScores:
    """Compare predicted with gold clusters, whose mentions may differ.

    Parameters
    ----------
    gold, predicted : iterables of clusters
        For each document its clusters, as iterables of hashable mentions such as ``(start, end)``.
        A predicted mention that is repeated counts where it is first, as for the reference scorer;
        a gold mention may not be repeated. Empty clusters do not count.
    singletons : bool, default=True
        Whether clusters of one mention count, as they do for the reference scorer. With False they
        are removed from both sides first.

    Returns
    -------
    PartitionScores
        MUC, B-cubed, CEAF, LEA, BLANC, pairwise scores and the CoNLL average.

    Examples
    --------
    >>> gold = [[["Ann", "she", "her"], ["Bob", "he"]]]
    >>> predicted = [[["Ann", "she"], ["Bob", "he", "it"]]]
    >>> scores = cluster_scores(gold, predicted)
    >>> round(scores.b_cubed.recall, 2), round(scores.ceaf_e.f, 2)
    (66.67, 80.0)
    """
    shortest = 1 if singletons else 2
    tables = []
    for number, (g, p) in enumerate(_pairs(gold, predicted), start=1):
        rows, columns = _disjoint(g, number, is_gold=True), _disjoint(p, number, is_gold=False)
        tables.append(
            _table(
                [cluster for cluster in rows if len(cluster) >= shortest],
                [cluster for cluster in columns if len(cluster) >= shortest],
            )
        )
    both = tables, [table.transposed() for table in tables]
    return PartitionScores(
        documents=len(tables),
        mentions=_ratios(both, _mentions),
        muc=_ratios(both, _muc),
        b_cubed=_ratios(both, _b_cubed),
        ceaf_e=_ratios(both, _ceaf_e),
        ceaf_m=_ratios(both, _ceaf_m),
        lea=_ratios(both, _lea),
        blanc=_blanc(both),
        pairwise=_ratios(both, _links),
    )


# --------------------------------------------------------------------------- input


def _pairs(gold: Iterable[Any], predicted: Iterable[Any]) -> Iterable[tuple[list[Any], list[Any]]]:
    sides = [_documents(gold), _documents(predicted)]
    n_gold, n_predicted = map(len, sides)
    if n_gold != n_predicted:
        raise BadData(f"found {n_predicted} predicted documents, expected {n_gold} as in gold")
    return zip(*sides, strict=True)


def _documents(side: Iterable[Any]) -> list[list[Any]]:
    documents = []
    for number, document in enumerate(side, start=1):
        if isinstance(document, str) or not isinstance(document, Iterable):
            raise BadData(f"document {number}: found {quoted(document)}, expected a list")
        documents.append(list(document))
    return documents


def _clusters_of(ids: list[Any], number: int) -> list[list[int]]:
    try:
        return clusters(ids)
    except TypeError as error:
        raise BadData(f"document {number}: found an {error}, expected hashable clusters") from None


def _disjoint(document: list[Any], number: int, *, is_gold: bool) -> list[list[Hashable]]:
    """Return the clusters that are not empty; of a repeated mention the first remains."""
    seen: set[Hashable] = set()
    result = []
    for cluster in document:
        if isinstance(cluster, str) or not isinstance(cluster, Iterable):
            raise BadData(
                f"document {number}: found {quoted(cluster)}, expected a cluster as a list of "
                "mentions"
            )
        mentions = []
        for mention in cluster:
            try:
                is_new = mention not in seen
            except TypeError as error:
                raise BadData(
                    f"document {number}: found an {error}, expected hashable mentions such as "
                    "(start, end)"
                ) from None
            if is_new:
                seen.add(mention)
                mentions.append(mention)
            elif is_gold:
                raise BadData(
                    f"document {number}: found the gold mention {quoted(mention)} twice, expected "
                    "it in one cluster"
                )
        if mentions:
            result.append(mentions)
    return result


# --------------------------------------------------------------------------- measures

Cell = tuple[int, int]


@dataclass(frozen=True)
class _Table:
    """The contingency table of a document: sizes of rows and columns, and of cells that share."""

    rows: Sequence[int]
    columns: Sequence[int]
    cells: dict[Cell, int]

    def transposed(self) -> _Table:
        return _Table(self.columns, self.rows, {(j, i): n for (i, j), n in self.cells.items()})


Measure = Callable[[_Table], tuple[float, float]]
"""Numerator and denominator of a recall; the rows are the gold clusters."""
Both = tuple[list[_Table], list[_Table]]
"""The tables of all documents for recall, and those for precision."""


def _table(gold: list[list[Hashable]], predicted: list[list[Hashable]]) -> _Table:
    column_of = {mention: j for j, cluster in enumerate(predicted) for mention in cluster}
    cells = Counter(
        (i, column_of[mention])
        for i, cluster in enumerate(gold)
        for mention in cluster
        if mention in column_of
    )
    return _Table([len(c) for c in gold], [len(c) for c in predicted], dict(cells))


def _ratios(tables: Both, measure: Measure) -> Ratios:
    recall, precision = (_percent(list(map(measure, side))) for side in tables)
    total = precision + recall
    return Ratios(precision, recall, 2 * precision * recall / total if total else 0.0)


def _percent(counts: list[tuple[float, float]]) -> float:
    part, whole = sum(n for n, _ in counts), sum(n for _, n in counts)
    return 100 * part / whole if whole else 0.0


def _mentions(table: _Table) -> tuple[float, float]:
    return sum(table.cells.values()), sum(table.rows)


def _muc(table: _Table) -> tuple[float, float]:
    """|g| - |p(g)|: the n mentions of a cell keep n - 1 of the links."""
    return sum(n - 1 for n in table.cells.values()), sum(n - 1 for n in table.rows)


def _b_cubed(table: _Table) -> tuple[float, float]:
    return sum(n * n / table.rows[i] for (i, _), n in table.cells.items()), sum(table.rows)


def _ceaf_m(table: _Table) -> tuple[float, float]:
    return _best_alignment(table.cells), sum(table.rows)


def _ceaf_e(table: _Table) -> tuple[float, float]:
    phi = {(i, j): 2 * n / (table.rows[i] + table.columns[j]) for (i, j), n in table.cells.items()}
    return _best_alignment(phi), len(table.rows)


def _lea(table: _Table) -> tuple[float, float]:
    resolved = 0.0
    for (i, j), n in table.cells.items():
        size = table.rows[i]
        # Of a cluster's pairs, n (n - 1) / (size (size - 1)); times its size, which is its weight.
        resolved += n * (n - 1) / (size - 1) if size > 1 else table.columns[j] == 1
    return resolved, sum(table.rows)


def _links(table: _Table) -> tuple[float, float]:
    return sum(map(_choose_2, table.cells.values())), sum(map(_choose_2, table.rows))


def _non_links(table: _Table) -> tuple[float, float]:
    """Pairs of different rows; right are those of different columns, too."""
    in_rows, in_columns = Counter[int](), Counter[int]()
    for (i, j), n in table.cells.items():
        in_rows[i] += n
        in_columns[j] += n
    right = (
        _choose_2(sum(table.cells.values()))
        - sum(map(_choose_2, in_rows.values()))
        - sum(map(_choose_2, in_columns.values()))
        + sum(map(_choose_2, table.cells.values()))
    )
    return right, _choose_2(sum(table.rows)) - sum(map(_choose_2, table.rows))


def _blanc(tables: Both) -> Ratios:
    kinds = [
        _ratios(tables, measure)
        for measure in (_links, _non_links)
        if any(measure(table)[1] for table in tables[0])
    ]
    if not kinds:
        return Ratios(0.0, 0.0, 0.0)
    return Ratios(*(sum(values) / len(kinds) for values in zip(*kinds, strict=True)))


def _choose_2(n: int) -> int:
    return n * (n - 1) // 2


def _best_alignment(similarities: Mapping[Cell, float]) -> float:
    """Return the largest sum over cells, of which no two share a row or a column."""
    in_row, in_column = Counter(i for i, _ in similarities), Counter(j for _, j in similarities)
    crowded = {(i, j): s for (i, j), s in similarities.items() if in_row[i] > 1 or in_column[j] > 1}
    total = sum(s for cell, s in similarities.items() if cell not in crowded)
    return total + _best_of_crowded(crowded) if crowded else total


def _best_of_crowded(similarities: Mapping[Cell, float]) -> float:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    rows = _numbered(i for i, _ in similarities)
    columns = _numbered(j for _, j in similarities)
    by_number = {(rows[i], columns[j]): s for (i, j), s in similarities.items()}
    # Beside its cells, each row has a column of its own and of similarity 0, to be left alone.
    cells = [*by_number, *((i, len(columns) + i) for i in range(len(rows)))]
    worst = max(similarities.values()) + 1  # all costs are positive, for a zero is no cell
    costs = [worst - by_number.get(cell, 0) for cell in cells]
    matrix = csr_array((costs, tuple(zip(*cells, strict=True))), dtype=float)
    i, j = min_weight_full_bipartite_matching(matrix)
    return sum(by_number.get(cell, 0) for cell in zip(i.tolist(), j.tolist(), strict=True))


def _numbered(keys: Iterable[int]) -> dict[int, int]:
    return {key: number for number, key in enumerate(dict.fromkeys(keys))}
