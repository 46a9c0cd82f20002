"""One job in one fresh process: ``python -m laso.experiments.worker JOB.json RESULT.json``.

A job trains an estimator with plain settings. With ``dev``, every epoch is scored on that file;
with ``test``, the model is tested on it. All in one thread, so that jobs do not get in each other's
way.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
import threading
import time
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

from laso.errors import LasoError
from laso.experiments.measure import Row, Settings, peak_mb

UPDATES = ("perceptron", "alma", "passive_aggressive", "adagrad", "sgd", "lbfgs")
STRATEGIES = ("restart", "early", "max_violation", "standard")
NUMERATORS = {"sqrt(8)/alpha": math.sqrt(8.0), "1/alpha": 1.0}
WEIGHTINGS = ("uniform", "loss_proportional", "worst")


def main(job_file: str, result_file: str) -> None:
    """Do the job and write what was measured."""
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    result = done(json.loads(Path(job_file).read_text(encoding="utf-8")))
    Path(result_file).write_text(json.dumps(result), encoding="utf-8")


def _end_with_parent(parent: int) -> None:
    """A process that nobody waits for any more would only take time from others."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def done(job: Row) -> Row:
    """Train, save the model, test.

    ``train_s`` is from reading the file to the model saved, imports apart; ``peak_mb`` is that of
    the process until then.
    """
    experiment = import_module(job["module"]).EXPERIMENT
    made = experiment.estimator()(
        **parameters(job["settings"]),
        features=job["features"],
        resources=tuple(job["resources"]),
        seed=job["seed"],
        patience=job.get("patience"),
        threads=1,
    )
    with tempfile.TemporaryDirectory() as folder:
        began, cpu = time.perf_counter(), time.process_time()
        made.fit(Path(job["train"]), dev=Path(job["dev"]) if "dev" in job else None)
        size = made.save(Path(folder, "model"))
        train_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    if made.interrupted_:
        raise LasoError("the training was interrupted")
    measured: Row = {"epochs": made.n_iter_, "train_s": train_s, "cpu_s": cpu_s}
    measured |= {"peak_mb": peak_mb(), "model_bytes": size}
    if "dev" in job:
        measured["held_out"] = [100 * score for score in made.scores_]
    if "test" in job:
        measured |= experiment.tested(made, Path(job["test"]))
    return measured


def parameters(settings: Settings) -> dict[str, Any]:
    """What plain settings are to an estimator: update and strategy as objects, a beam's width.

    ``how`` is for experiments with estimators of several kinds.
    """
    import laso

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


if __name__ == "__main__":
    main(*sys.argv[1:])
