"""The end of ``laso train``: save the model, evaluate and calibrate it, and report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from laso.cli.examples import Examples
from laso.cli.job import CHECKPOINT, Job, refitted
from laso.errors import counted

if TYPE_CHECKING:
    from laso.cli.progress import Display
    from laso.estimators import SearchEstimator

CALIBRATED = 300  # held-out examples to calibrate probabilities on
FREQUENT = ("the", "of", "and", "to", "is")
EARLY = 500  # an English corpus has these words among so many different ones at its beginning
GAP = 10  # points of precision above recall from which the report gives advice


def save(job: Job, model: SearchEstimator, path: Path) -> int:
    """Write the model with what ``laso tag`` needs to know of the data; return its size."""
    model.metadata_ |= {
        **job.all.metadata(),
        "configuration": job.settings.as_json(),
        "data": job.data,
    }
    return model.save(path)


@dataclass
class Finish:
    """Evaluates, calibrates and refits a model that is saved already, and saves the better one.

    Ctrl-C ends it, and costs nothing but what was not reached.
    """

    job: Job
    model: SearchEstimator
    path: Path
    size: int  # bytes of the file
    evaluation: Any = None
    error: float | None = None  # of the calibrated probabilities
    interrupted: bool = False

    def run(self, shown: Display) -> None:
        """Take the steps in turn, until Ctrl-C."""
        try:
            if self.job.dev is not None:
                self._evaluate(shown, self.job.dev)
                self._calibrate(shown, self.job.dev)
                self.size = save(self.job, self.model, self.path)
                if self.job.settings.refit and not self.model.interrupted_:
                    self._refit(shown)
        except KeyboardInterrupt:
            self.interrupted = True
        if not (self.interrupted or self.model.interrupted_):
            self.path.with_name(self.path.name + CHECKPOINT).unlink(missing_ok=True)

    def _evaluate(self, shown: Display, dev: Examples) -> None:
        shown.stage("evaluating")
        result = dev.evaluation(self.model)
        scores = {"score": result.score}
        if hasattr(result, "accuracy"):
            scores["accuracy"] = result.accuracy
        self.model.metadata_["held out"] = scores
        self.evaluation = result

    def _calibrate(self, shown: Display, dev: Examples) -> None:
        if not dev.is_fully_labelled():
            return
        shown.stage("calibrating")
        first = dev.first(CALIBRATED)
        X, y = first.inputs, first.outputs
        self.model.calibrate(X, y)
        self.error = self.model.reliability(X, y).error

    def _refit(self, shown: Display) -> None:
        again = refitted(self.job, self.model, shown)
        if again is None:
            self.interrupted = True
            return
        self.size = save(self.job, again, self.path)
        self.model = again

    def result(self) -> dict[str, Any]:
        """Return the report as JSON."""
        job, model, evaluation = self.job, self.model, self.evaluation
        columns = {}
        if job.all.task is None:
            roles = job.all.roles
            columns = {"inputs": list(roles.inputs), "label": list(roles.labels)}
        chosen = model.metadata_.get("chosen", {})
        return {
            "model": str(self.path),
            "bytes": self.size,
            "task": job.task,
            **columns,
            "labels": len(model.classes_),
            **job.data,
            "epochs": model.n_iter_,
            "best_epoch": model.best_epoch_,
            "scores": model.scores_ or chosen.get("scores", []),
            "converged": model.converged_,
            "interrupted": model.interrupted_ or self.interrupted,
            "resumed": job.resumed,
            "refit": bool(chosen),
            "features": model.size_.features,
            "calibration_error": self.error,
            "evaluation": None if evaluation is None else evaluation.as_json(),
            "advice": None if evaluation is None else advice(evaluation, model),
            "resources": unused_resources(model),
        }

    def text(self) -> str:
        """Return the report for people."""
        result = self.result()
        lines = [*_learned(result), f"{counted(result['epochs'], 'epoch')}, the best is epoch "]
        lines[-1] += f"{result['best_epoch']}"
        if result["labels"] == 1 and self.job.all.task is None:
            lines += ["all tokens have the same label: there was nothing to learn (see --label)"]
        if self.evaluation is not None:
            lines += [f"held out: {self.evaluation}"]
        if result["advice"]:
            lines += [result["advice"]]
        if result["refit"]:
            lines += ["then trained again on all examples; the scores are those before that"]
        if result["resources"]:
            lines += [result["resources"]]
        size = f"{result['bytes'] / 1e6:.2f} MB"
        task = f" --task {self.job.task}" if self.job.own_task is not None else ""
        tag = f"laso tag {result['model']} FILE{task}"
        return "\n".join([*lines, f"saved as {result['model']} ({size}); next: {tag}"])


def _learned(result: dict[str, Any]) -> list[str]:
    files = ", ".join(result["files"])
    size = f"{counted(result['labels'], 'label')}, {counted(result['features'], 'feature')}"
    if "examples" in result:
        kind = {"cluster": "clusters", "coref": "clusters"}.get(result["task"], result["task"])
        examples = counted(result["examples"], "example")
        return [f"learned {kind} from {examples} of {files}: {size}"]
    kind = {"chunk": "chunks", "parse": "trees"}.get(result["task"], "tags")
    return [
        f"learned {kind} from {result['sentences']} sentences, {result['tokens']} tokens of "
        f"{files}: {size}",
        f"columns {', '.join(result['inputs'])} are the inputs, {', '.join(result['label'])} the "
        "label",
    ]


def advice(evaluation: Any, model: SearchEstimator) -> str | None:
    """Return the option that helps where the recall of chunks is far below their precision."""
    scored = {"O": evaluation}
    if getattr(evaluation, "layers", ()):
        names = [f"{layer}=O" for layer in model.get_params()["layers"]]
        scored = dict(zip(names, evaluation.layers, strict=True))
    for outside, each in scored.items():
        chunks = getattr(each, "chunks", None)
        if chunks is not None and chunks.precision - chunks.recall > GAP:
            weight = (model.class_weight_ or {}).get(outside, 1.0) / 2
            return (
                f"recall is {chunks.precision - chunks.recall:.0f} points below precision: train "
                f"with --class-weight {outside}={weight:g} to predict more chunks"
            )
    return None


def unused_resources(model: SearchEstimator) -> str | None:
    """Return the option for word lists where a model with default templates has none."""
    import numpy as np

    from laso.features.vocabulary import UNKNOWN

    parameters, task = model.get_params(), cast("Any", model.task_)
    has_default = parameters.get("features") in (None, "rich")
    if "resources" not in parameters or parameters["resources"] or not has_default:
        return None
    words = task.encoder_.vocabularies.get(0)
    first = np.array([UNKNOWN]) if words is None else words.numbers(list(FREQUENT))
    if ((first != UNKNOWN) & (first < EARLY)).all():
        return (
            "English word lists and clusters may help: pip install 'laso[lists]', then train with "
            '--set \'resources=["names", "places", "clusters"]\''
        )
    return (
        "word lists of this language may help, such as names: train with "
        "--set 'resources=[\"FILE\"]' for a file with one word a line"
    )
