"""The parameters that all estimators have, and what they may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from laso.engine.parallel.shards import MIXINGS, MOST_SHARDS
from laso.estimators.learning.class_weights import ClassWeight, is_class_weight
from laso.estimators.learning.dropout_rates import is_rate
from laso.features.dense import is_encoder, is_scale
from laso.params import check_parameters, is_n_jobs, is_whole
from laso.queues import MakeQueue
from laso.training import Rule, Strategy

if TYPE_CHECKING:
    from laso.estimators.search import SearchEstimator

MOST = 1 << 31
MOST_THREADS = 1024


class CommonParameters(TypedDict, total=False):
    """The parameters with one default in all estimators; ``SearchEstimator`` documents them."""

    queue: int | MakeQueue | None
    update: Rule | None
    strategy: Strategy
    seed: int | None
    held_out: float | None
    patience: int | None
    average: bool | None
    class_weight: ClassWeight
    dropout: float | None
    hash_bits: int
    threads: int | None
    dtype: str
    shards: int | None
    mixing: str
    n_jobs: int | None
    encoder: Any
    vector_scale: float | None


class SearchParameters(CommonParameters, total=False):
    """All parameters of ``SearchEstimator`` but its task."""

    epochs: int


def check(model: SearchEstimator) -> None:
    """Raise ValueError if a parameter makes no sense."""
    weights = "None, 'balanced', or a table of weights above 0, from 1e-6 to 1e6"
    patience, threads = model.patience, model.threads
    fraction = model.held_out is None or 0 < model.held_out < 1
    check_parameters(
        model,
        [
            ("epochs", is_whole(model.epochs, 1, MOST), "a whole number from 1 to 2 ** 31"),
            ("patience", patience is None or is_whole(patience, 1), "None or from 1 up"),
            (
                "threads",
                threads is None or is_whole(threads, 1, MOST_THREADS),
                f"None or from 1 to {MOST_THREADS}",
            ),
            ("seed", model.seed is None or is_whole(model.seed, -MOST, MOST), "None or whole"),
            ("average", model.average in (None, True, False), "None, True or False"),
            ("held_out", fraction, "None or a fraction between 0 and 1"),
            ("class_weight", is_class_weight(model.class_weight), weights),
            ("dropout", is_rate(model.dropout), "None or a fraction from 0 to below 1"),
            ("hash_bits", is_whole(model.hash_bits, 0) and model.hash_bits <= 62, "0 to 62"),
            ("dtype", str(model.dtype) in ("float32", "float64"), "'float32' or 'float64'"),
            (
                "shards",
                model.shards is None or is_whole(model.shards, 1, MOST_SHARDS),
                f"None or from 1 to {MOST_SHARDS}",
            ),
            ("mixing", str(model.mixing) in MIXINGS, " or ".join(map(repr, MIXINGS))),
            ("n_jobs", is_n_jobs(model.n_jobs), "None, -1, or from 1 up"),
            ("encoder", is_encoder(model.encoder), "None, 'minilm', or an object with encode"),
            ("vector_scale", is_scale(model.vector_scale), "None or a number above 0, to 100"),
        ],
    )
