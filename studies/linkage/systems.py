"""The systems: each learns from one half of the entities, and finds the pairs of the other.

All compare the same candidates: laso finds them itself, and the seconds for that are added to the
times of the others. Beside that dedupe is measured with its own blocking. What a system must
choose, such as a threshold, is chosen on the half to learn from.
"""

from __future__ import annotations

import json
import logging
import resource
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from studies.linkage.data import DATASETS, Pair, Record, Records, halves
from studies.measure import Row, peak_mb

OWN = "dedupe, own blocking"
THRESHOLDS = [0.01, 0.02, 0.05, *(n / 20 for n in range(2, 20)), 0.96, 0.98, 0.99, 0.999]
Find = Callable[[Records, list[Pair]], set[Pair]]
"""Returns the pairs of a table, given its candidates."""
Learn = Callable[[Records, list[Pair], int], Find]


class Scores(NamedTuple):
    """Pairwise scores in per cent."""

    precision: float
    recall: float
    f: float


def measure(job: Row) -> Row:
    """Learn, find the pairs of the test half, and return scores, times and memory."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    learn = SYSTEMS[job["system"]].learn
    given = json.loads(Path(job["data"]).read_text(encoding="utf-8"))
    train, test = (Records(*half) for half in given["halves"])
    before, after = ([(a, b) for a, b in pairs] for pairs in given["candidates"])
    import_module(SYSTEMS[job["system"]].package)
    if job["system"] != OWN:  # whatever is slow at the first call only
        learn(train, before, job["seed"])(train, before)
    started, cpu = time.perf_counter(), cpu_seconds()
    find = learn(train, before, job["seed"])
    learned = time.perf_counter()
    found = find(test, after)
    done = time.perf_counter()
    blocking_s = given["seconds"] if SYSTEMS[job["system"]].is_given_candidates else 0.0
    gold = pairs_of(clusters_by(test.ids))
    return {
        "train_s": learned - started,
        "predict_s": done - learned,
        "blocking_s": blocking_s,
        "wall_s": done - started + blocking_s,
        "cpu_s": cpu_seconds() - cpu + blocking_s,
        "peak_mb": peak_mb(),
        "records": len(test.rows),
        "pairs": len(gold),
        "candidates": len(after),
        "candidate_recall": 100 * len(gold & set(after)) / len(gold),
        **scores(gold, found)._asdict(),
    }


def prepare(job: Row) -> Row:
    """Write the halves of a dataset, their candidates, and the seconds to find these."""
    both = halves(DATASETS[job["dataset"]]())
    both[0].candidates()  # what is imported at the first call
    started = time.perf_counter()
    candidates = [half.candidates() for half in both]
    seconds = time.perf_counter() - started
    content = {"halves": both, "candidates": candidates, "seconds": seconds}
    Path(job["data"]).write_text(json.dumps(content), encoding="utf-8")
    return {}


def cpu_seconds() -> float:
    """Return the processor time of this process and of those that it has started."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def scores(gold: set[Pair], found: set[Pair]) -> Scores:
    """Return precision, recall and F of pairs."""
    right = len(gold & found)
    precision, recall = right / max(1, len(found)), right / max(1, len(gold))
    total = precision + recall
    return Scores(100 * precision, 100 * recall, 200 * precision * recall / total if total else 0.0)


def clusters_by(ids: Sequence[Any]) -> list[list[int]]:
    """Return the records of each id."""
    members: dict[Any, list[int]] = {}
    for i, each in enumerate(ids):
        members.setdefault(each, []).append(i)
    return list(members.values())


def pairs_of(clusters: Iterable[Iterable[int]]) -> set[Pair]:
    """Return all pairs within clusters."""
    return {pair for members in clusters for pair in combinations(sorted(members), 2)}


def connected(pairs: Iterable[Pair], n: int) -> set[Pair]:
    """Return all pairs of records that pairs connect."""
    from laso.tasks.clustering.tables import clusters_from_pairs

    return pairs_of(clusters_by(clusters_from_pairs(pairs, n)))


def best_threshold(train: Records, found_at: Callable[[float], set[Pair]]) -> float:
    """Return the threshold of the best F on the half to learn from; of equal ones the middle."""
    gold = pairs_of(clusters_by(train.ids))
    f = [scores(gold, found_at(threshold)).f for threshold in THRESHOLDS]
    best = [t for t, each in zip(THRESHOLDS, f, strict=True) if each == max(f)]
    return best[len(best) // 2]


def labelled(train: Records, candidates: list[Pair]) -> list[bool]:
    """Return whether each candidate is a match."""
    return [train.ids[a] == train.ids[b] for a, b in candidates]


# --------------------------------------------------------------------------- laso


def laso_records(train: Records, candidates: list[Pair], seed: int) -> Find:
    """Train ``Clusterer(preset="records")``, which finds the candidates itself."""
    from laso import Clusterer

    model = Clusterer(preset="records", seed=seed, threads=1).fit([train.table], [train.ids])

    def find(test: Records, candidates: list[Pair]) -> set[Pair]:
        return pairs_of(clusters_by(model.predict([test.table])[0]))

    return find


# --------------------------------------------------------------------------- recordlinkage


def recordlinkage_with(make: Callable[[Any], Any], *, binary: bool = False) -> Learn:
    """Return a system of recordlinkage: a classifier of vectors of similarities."""

    def learn(train: Records, candidates: list[Pair], seed: int) -> Find:
        import recordlinkage

        classifier = make(recordlinkage)
        vectors = _vectors(train, candidates, binary)
        if binary:
            classifier.fit(vectors)
        else:
            gold = labelled(train, candidates)
            classifier.fit(vectors, vectors.index[gold])

        def find(test: Records, candidates: list[Pair]) -> set[Pair]:
            return set(classifier.predict(_vectors(test, candidates, binary)))

        return find

    return learn


def _vectors(records: Records, candidates: list[Pair], binary: bool) -> Any:
    import pandas
    import recordlinkage

    frame = pandas.DataFrame(records.rows)
    compare = recordlinkage.Compare()
    for name in records.fields:
        if frame[name].notna().any():
            compare.string(
                name, name, "jarowinkler", label=name, threshold=0.85 if binary else None
            )
        else:
            compare.exact(name, name, label=name)
    index = pandas.MultiIndex.from_tuples(candidates)
    return compare.compute(index, frame).fillna(0)


# --------------------------------------------------------------------------- splink


def splink_with_labels(train: Records, candidates: list[Pair], seed: int) -> Find:
    """Estimate Fellegi-Sunter weights from the labels of the training half."""
    linker = _splink(train, candidates, seed)
    linker.training.estimate_u_using_random_sampling(max_pairs=1e6, seed=seed)
    linker.training.estimate_m_from_label_column("entity")
    matches = sum(labelled(train, candidates))
    settings = linker.misc.save_model_to_json()
    settings["probability_two_random_records_match"] = matches / len(candidates)
    scored = _splink_scores(train, candidates, settings)
    n = len(train.rows)
    threshold = best_threshold(train, lambda t: _splink_found(train, scored, t, n))

    def find(test: Records, candidates: list[Pair]) -> set[Pair]:
        return _splink_found(
            test, _splink_scores(test, candidates, settings), threshold, len(test.rows)
        )

    return find


def _splink_found(
    records: Records, scored: list[tuple[Pair, float]], threshold: float, n: int
) -> set[Pair]:
    if records.left is None:
        return connected((pair for pair, p in scored if p >= threshold), n)
    found, used = set(), set[int]()
    for pair, p in sorted(scored, key=lambda each: -each[1]):  # the best link of each record
        if p >= threshold and not used & set(pair):
            found.add(pair)
            used |= set(pair)
    return found


def _splink_scores(
    records: Records, candidates: list[Pair], settings: Row
) -> list[tuple[Pair, float]]:
    linker = _splink(records, candidates, 0, settings)
    frame = linker.inference.predict().as_pandas_dataframe()
    ends = zip(frame["unique_id_l"], frame["unique_id_r"], strict=True)
    pairs = [(min(a, b), max(a, b)) for a, b in ends]
    return list(zip(pairs, frame["match_probability"], strict=True))


def _splink(
    records: Records, candidates: list[Pair], seed: int, settings: Row | None = None
) -> Any:
    import pandas
    import splink.comparison_library as cl
    from splink import Linker, SettingsCreator, block_on
    from splink.internals.duckdb.database_api import DuckDBAPI

    frame = pandas.DataFrame(records.rows)
    comparisons = []
    for name in records.fields:
        values = frame[name].dropna().astype(str)
        if len(values) and values.str.isdigit().mean() > 0.9:
            comparison = cl.DamerauLevenshteinAtThresholds(name, [1, 2])
        else:
            comparison = cl.NameComparison(name)
        comparisons.append(comparison.configure(term_frequency_adjustments=True))
    frame["unique_id"] = range(len(frame))
    frame["entity"] = records.ids
    keys: list[list[int]] = [[-1 - i] for i in range(len(frame))]
    for number, pair in enumerate(candidates):
        for i in pair:
            keys[i].append(number)
    frame["pair_keys"] = keys
    if settings is None:
        settings = SettingsCreator(
            link_type="dedupe_only",
            comparisons=comparisons,
            blocking_rules_to_generate_predictions=[
                block_on("pair_keys", arrays_to_explode=["pair_keys"])
            ],
        )
    return Linker(DuckDBAPI().register(frame), settings)


# --------------------------------------------------------------------------- dedupe


def dedupe_with(*, own_blocking: bool) -> Learn:
    """Return dedupe, which gets labelled pairs of the training half in place of a user's answers.

    With ``own_blocking`` it learns which records to compare; otherwise it scores the candidates.
    """

    def learn(train: Records, candidates: list[Pair], seed: int) -> Find:
        import random

        import dedupe
        import numpy as np

        random.seed(seed)
        np.random.seed(seed)  # dedupe draws from this generator
        kind = dedupe.variables.String
        fields = [kind(name, has_missing=True) for name in train.fields]
        model = dedupe.Dedupe(fields, num_cores=1)
        pairs = [(train.rows[a], train.rows[b]) for a, b in candidates]
        matches = labelled(train, candidates)
        marked = {
            "match": [pair for pair, match in zip(pairs, matches, strict=True) if match],
            "distinct": [pair for pair, match in zip(pairs, matches, strict=True) if not match],
        }
        if own_blocking:
            model.prepare_training(_by_number(train), sample_size=1500)
            model.mark_pairs({k: _sample(v, 500) for k, v in marked.items()})
            model.train()
        else:
            examples = marked["match"] + marked["distinct"]
            y = np.array([1] * len(marked["match"]) + [0] * len(marked["distinct"]))
            model.classifier.fit(model.data_model.distances(examples), y)
        scored = _dedupe_scores(model, train, candidates, own_blocking)
        threshold = best_threshold(train, lambda t: _dedupe_found(model, scored, t))

        def find(test: Records, candidates: list[Pair]) -> set[Pair]:
            scored = _dedupe_scores(model, test, candidates, own_blocking)
            return _dedupe_found(model, scored, threshold)

        return find

    return learn


def _by_number(records: Records) -> dict[int, Record]:
    return dict(enumerate(records.rows))


def _sample(pairs: list[Any], most: int) -> list[Any]:
    import random

    return pairs if len(pairs) <= most else random.Random(0).sample(pairs, most)


def _dedupe_scores(model: Any, records: Records, candidates: list[Pair], own: bool) -> Any:
    if own:
        pairs = model.pairs(_by_number(records))
    else:
        pairs = (((a, records.rows[a]), (b, records.rows[b])) for a, b in candidates)
    return model.score(pairs).copy()


def _dedupe_found(model: Any, scored: Any, threshold: float) -> set[Pair]:
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:  # clusters are made of mapped files only
        file = np.memmap(f"{folder}/scores", scored.dtype, "w+", shape=scored.shape)
        file[:] = scored
        found = list(model.cluster(file, threshold))
    return pairs_of([*map(int, members)] for members, _ in found)


class System(NamedTuple):
    """A system, the package that it needs, and whether it is given the candidates.

    ``datasets`` are those on which it is measured; none: all of them.
    """

    learn: Learn
    package: str
    is_given_candidates: bool = True
    is_random: bool = False
    datasets: Sequence[str] = ()


SYSTEMS = {
    "laso": System(laso_records, "laso", is_given_candidates=False, is_random=True),
    "splink": System(splink_with_labels, "splink"),
    "dedupe": System(dedupe_with(own_blocking=False), "dedupe"),
    "recordlinkage, logistic": System(
        recordlinkage_with(lambda r: r.LogisticRegressionClassifier()), "recordlinkage"
    ),
    "recordlinkage, SVM": System(recordlinkage_with(lambda r: r.SVMClassifier()), "recordlinkage"),
    "recordlinkage, ECM": System(
        recordlinkage_with(lambda r: r.ECMClassifier(), binary=True), "recordlinkage"
    ),
    OWN: System(
        dedupe_with(own_blocking=True),
        "dedupe",
        is_given_candidates=False,
        datasets=("febrl1",),
    ),
}
