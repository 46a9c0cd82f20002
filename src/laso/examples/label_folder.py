"""Label a folder of files on a cluster, each file by one task: with a Dask bag, or with Ray Data.

Model and folders must be where all workers see them. A worker loads the model once.
"""

from collections.abc import Iterable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from laso import SearchEstimator, load_model


@lru_cache(maxsize=1)
def loaded(model: str) -> SearchEstimator:
    return load_model(model)


def label_file(path: str, *, model: str, out: str) -> str:
    """Write the labels of a file to one of the same name, a line for each token."""
    target = Path(out, Path(path).name)
    with target.open("w", encoding="utf-8") as file:
        for labels in loaded(model).predict(path):
            file.write("\n".join(labels) + "\n\n")
    return str(target)


def with_dask(paths: Iterable[str], *, model: str, out: str) -> list[str]:
    """Use the workers of the present ``dask.distributed.Client``."""
    import dask.bag

    bag: Any = dask.bag.from_sequence(paths, partition_size=1)  # type: ignore[no-untyped-call]
    return list(bag.map(partial(label_file, model=model, out=out)).compute())


def with_ray(paths: Iterable[str], *, model: str, out: str) -> list[str]:
    """Use the workers of the present ``ray.init``."""
    import ray.data

    def label(row: dict[str, str]) -> dict[str, str]:
        return {"path": label_file(row["path"], model=model, out=out)}

    rows = ray.data.from_items([{"path": path} for path in paths])
    return [row["path"] for row in rows.map(label).take_all()]
