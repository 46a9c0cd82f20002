"""Train, save and evaluate one model of an experiment: what a job of ``runner`` does.

A job has settings in JSON. With ``dev``, every epoch is scored on that file; with ``test``, the
model is evaluated on it. A job uses one thread, so that several can run at once.
"""

from __future__ import annotations

import math
import tempfile
import time
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import laso
from laso.errors import LasoError
from studies.measure import Row, Settings, peak_mb

UPDATES = ("perceptron", "alma", "passive_aggressive", "adagrad", "sgd", "lbfgs")
STRATEGIES = ("restart", "early", "delayed", "max_violation", "standard")
NUMERATORS = {"sqrt(8)/alpha": math.sqrt(8.0), "1/alpha": 1.0}
WEIGHTINGS = ("uniform", "loss_proportional", "worst")


def run_job(job: Row) -> Row:
    """Train, save and evaluate a model; return the measurements.

    ``train_s`` is from reading the file to the saved model, without imports; ``peak_mb`` is the
    peak memory of the process until then.
    """
    experiment = import_module(job["module"]).EXPERIMENT
    model = experiment.estimator()(
        **parameters(job["settings"]),
        features=job["features"],
        resources=tuple(job["resources"]),
        seed=job["seed"],
        patience=job.get("patience"),
        threads=1,
    )
    with tempfile.TemporaryDirectory() as folder:
        began, cpu = time.perf_counter(), time.process_time()
        model.fit(Path(job["train"]), dev=Path(job["dev"]) if "dev" in job else None)
        size = model.save(Path(folder, "model"))
        train_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    if model.interrupted_:
        raise LasoError("the training was interrupted")
    measured: Row = {"epochs": model.n_iter_, "train_s": train_s, "cpu_s": cpu_s}
    measured |= {"peak_mb": peak_mb(), "model_bytes": size}
    if "dev" in job:
        measured["held_out"] = [100 * score for score in model.scores_]
    if "test" in job:
        measured |= experiment.evaluate(model, Path(job["test"]))
    return measured


def parameters(settings: Settings) -> dict[str, Any]:
    """Return the parameters of an estimator for settings in JSON.

    Update, strategy and weighting become objects. ``how`` is kept for experiments with several
    kinds of estimators.
    """

    def named(setting: str, allowed: tuple[str, ...], default: str) -> Any:
        value = left.pop(setting, default)
        if value not in allowed:
            raise LasoError(f"found {setting} {value!r}, expected one of {', '.join(allowed)}")
        return getattr(laso, value)

    left = dict(settings)
    queue = left.pop("queue")
    update = named("update", UPDATES, "perceptron")
    strategy = named("strategy", STRATEGIES, "restart")
    epochs = left.pop("epochs")
    own = {"how": left.pop("how")} if "how" in left else {}
    if "weighting" in left:
        left["weighting"] = named("weighting", WEIGHTINGS, "uniform")
    if left.get("B") in NUMERATORS:
        left["B"] = NUMERATORS[left["B"]] / left["alpha"]
    unknown = left.keys() - {field.name for field in fields(update)}
    if unknown:
        raise LasoError(f"{settings['update']} has no setting {', '.join(sorted(unknown))}")
    return {
        "queue": laso.exact() if queue == "exact" else queue,
        "update": update(**left),
        "strategy": strategy,
        "epochs": epochs,
        **own,
    }
