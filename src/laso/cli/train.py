"""``laso train``: learn from files, choose the number of epochs on held-out sentences, save."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from errno import ENOENT
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laso.cli import options
from laso.errors import BadData, BadModel, LasoError

if TYPE_CHECKING:
    from rich.console import Console

    from laso.cli.sentences import Sentences
    from laso.cli.settings import Settings
    from laso.estimators import SearchEstimator
    from laso.training import Progress as Report

CHECKPOINT = ".checkpoint"
CALIBRATED = 300  # held-out sentences to calibrate probabilities on


def run(
    files: Annotated[list[str], typer.Argument(help="Files to learn from; - is standard input.")],
    model: Annotated[
        Path | None,
        typer.Option(help="Where the model goes; by default beside the first file, as .laso."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            help="tag, chunk, or joint; by default chunk if labels are like B-x, I-x, O, and joint "
            "if there are several."
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            help="The column of the label, by name or number from 1 (several with commas); by "
            "default the last."
        ),
    ] = None,
    inputs: Annotated[
        str | None, typer.Option(help="The columns to learn from, with commas; by default all.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Names for all columns of the file, with commas.")
    ] = None,
    form: options.Format = None,
    separator: options.Separator = None,
    comment: options.Comment = None,
    dev: Annotated[
        str | None, typer.Option(help="A file to choose the number of epochs by.")
    ] = None,
    held_out: Annotated[
        float | None,
        typer.Option(
            min=0, max=0.9, help="The part held out for that, if there is no such file [0.1]."
        ),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Passes over the data, at most [30].")
    ] = None,
    templates: Annotated[str | None, typer.Option(help="A file of feature templates.")] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", help="A parameter of the estimator, as in queue=exact()."),
    ] = None,
    class_weight: Annotated[
        list[str] | None,
        typer.Option(help="balanced, or LABEL=WEIGHT: what it costs to miss a label."),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(
            help="A folder to encode the sentences to, if they are more than memory holds."
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="A TOML file that says what these options say.")
    ] = None,
    refit: Annotated[
        bool | None,
        typer.Option("--refit", help="Learn again from all sentences, as many epochs as chosen."),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Do not go on with a run that was cut short.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write the report as JSON.")] = False,
) -> None:
    """Learn to label the tokens of sentences, and save the model.

    With only a file: the last column is the label, a tenth of the sentences is held out, learning
    ends when they are labelled no better for three epochs, and the best epoch is kept. Ctrl-C
    saves what was learned. A run that was killed goes on when the command is given again.
    """
    from rich.console import Console

    from laso.cli import settings as told
    from laso.cli.sentences import STDIN, name_for, read

    said = told.checked(
        told.Settings(
            task=task,
            format=form,
            separator=separator,
            comment=comment,
            columns=told.names(columns),
            inputs=told.names(inputs),
            label=told.names(label),
            dev=dev,
            held_out=held_out,
            epochs=epochs,
            templates=templates,
            refit=refit,
            set=told.assignments(sets or []) | told.class_weights(class_weight or []),
        )
    ).over(told.Settings() if config is None else told.read_config(config))
    if store is not None and STDIN in files:
        raise typer.BadParameter("--store reads files more than once: expected none that is -")
    path = model or Path(name_for(files[0]))
    if not path.parent.is_dir():  # not after hours of learning
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), str(path.parent))
    errors = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)
    try:
        job = planned(read(files, said, on_disk=store is not None), said)
        job.store = store
        learned = learn(job, path, errors, fresh=fresh)
    except LasoError:
        raise
    except ValueError as error:  # about parameters; what is wrong with data is BadData
        raise typer.BadParameter(str(error)) from error
    except KeyboardInterrupt:
        errors.print("interrupted before anything was learned")
        raise typer.Exit(130) from None
    result = finished(job, learned, path)
    text = result.pop("report")
    typer.echo(json.dumps(result, indent=1, ensure_ascii=False) if as_json else shown(result, text))
    if learned.interrupted_:
        errors.print("interrupted: what was learned until then is saved")
        raise typer.Exit(130)


@dataclass
class Job:
    """What is to be learned from, what to choose by, and how."""

    settings: Settings
    task: str
    all: Sentences
    train: Sentences
    dev: Sentences | None
    resumed: bool = False
    store: Path | None = None  # where data are encoded to, that are not to be in memory

    def estimator(self, epochs: int | None = None) -> SearchEstimator:
        """The estimator to train; with so many epochs it learns to their end."""
        from laso.cli import settings as told

        most = told.EPOCHS if self.dev is not None else told.EPOCHS_UNSEEN
        patience = told.PATIENCE if self.dev is not None else None
        if epochs is not None:
            most, patience = epochs, None
        elif self.settings.epochs is not None:
            most = self.settings.epochs
        made: SearchEstimator = told.estimator(
            self.task, self.settings, self.all.roles, epochs=most, patience=patience
        )
        return made

    @cached_property
    def data(self) -> dict[str, Any]:
        """What the data were, for a run that goes on and for the model to remember."""
        crc = 0
        tokens = 0
        for block in self.train.blocks:
            crc = zlib.crc32("\n".join(block.lines.values()).encode(), crc)
            tokens += len(block.tokens)
        for block in self.dev.blocks if self.dev else ():
            crc = zlib.crc32("\n".join(block.lines.values()).encode(), crc)
        return {
            "files": [Path(name).name for name, _ in self.all.files],
            "sentences": len(self.train.blocks),
            "tokens": tokens,
            "held out": len(self.dev.blocks) if self.dev else 0,
            "checksum": crc,
        }


def planned(sentences: Sentences, settings: Settings) -> Job:
    """Decide on the task and on what to hold out."""
    from laso.cli import settings as told
    from laso.cli.sentences import read
    from laso.estimators.learning import held_out

    task = settings.task or guessed_task(sentences)
    settings = fitting(settings, sentences)
    if settings.dev is not None:
        dev = read([settings.dev], replace(settings, label=None, inputs=None))
        if not all(sentences.roles.fits(block.names) for block in dev.blocks):
            raise BadData(
                "found other columns than in the training data", file=settings.dev, line=1
            )
        return Job(settings, task, sentences, sentences, replace(dev, roles=sentences.roles))
    n, fraction = len(sentences.blocks), settings.held_out
    if fraction is None:
        fraction = told.HELD_OUT if n >= told.FEWEST else 0.0
    if not fraction or n < 2:
        return Job(settings, task, sentences, sentences, None)
    seed = (settings.set or {}).get("seed", 0)
    try:
        chosen = held_out(n, fraction, seed)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return Job(settings, task, sentences, *sentences.parted(chosen))


def fitting(settings: Settings, sentences: Sentences) -> Settings:
    """Where labels are not known, a strategy that compares with the best of all that may be."""
    from laso.evaluation import is_known

    given = settings.set or {}
    if {"strategy", "queue"} & set(given) or sentences.form.kind != "jsonl":
        return settings
    if all(is_known(label) for _, labels in sentences.pairs() for label in labels):
        return settings
    return replace(settings, set={**given, "strategy": "max_violation"})


def guessed_task(sentences: Sentences) -> str:
    """Chunks if the labels mark them and tokens are words with columns, else tags.

    Several columns of labels are learned together.
    """
    from laso.evaluation import are_chunks

    if len(sentences.roles.labels) > 1:
        return "joint"
    labels = {label for _, answers in sentences.pairs() for label in answers} - {None}
    block = sentences.blocks[0]
    words = all(isinstance(cell, str) for cell in block.tokens[0])
    return "chunk" if words and are_chunks(labels) else "tag"


def learn(job: Job, path: Path, errors: Console, *, fresh: bool) -> SearchEstimator:
    """Train, from where an earlier run was cut short if there is one, and save."""
    from laso.estimators import Checkpoint
    from laso.estimators.learning import most_epochs

    beside = path.with_name(path.name + CHECKPOINT)
    data = job.data
    model = job.estimator()
    earlier = None if fresh else unfinished(beside, model, data)
    job.resumed = earlier is not None
    checkpoint = Checkpoint(beside, metadata={"data": data})
    dev = None if job.dev is None else (job.dev.tokens, job.dev.answers)
    held_out = nullcontext() if job.dev is None else job.dev.located(name="dev")
    with held_out, job.train.located(), bar(errors) as progress:
        how: dict[str, Any] = {"dev": dev, "progress": progress, "checkpoint": checkpoint}
        if earlier is not None:
            errors.print(f"going on after epoch {earlier.n_iter_} of a run that was cut short")
            how["epochs"], model = most_epochs(model), earlier
        if job.store is not None:
            streamed = model.fit_stream if earlier is None else model.resume_stream
            streamed(job.train.pairs, store=job.store, **how)
        else:
            begin = model.fit if earlier is None else model.resume
            begin(job.train.tokens, job.train.answers, **how)
        if job.settings.refit and job.dev is not None and not model.interrupted_:
            again = job.estimator(epochs=model.best_epoch_)
            with job.all.located():
                if job.store is not None:
                    again.fit_stream(job.all.pairs, store=job.store, progress=progress)
                else:
                    again.fit(job.all.tokens, job.all.answers, progress=progress)
            again.metadata_["chosen"] = {"epoch": model.best_epoch_, "scores": model.scores_}
            model = model if again.interrupted_ else again
    return model


def unfinished(path: Path, model: SearchEstimator, data: dict[str, Any]) -> Any:
    """The model of a checkpoint of the same settings and data; None if there is none."""
    from laso.estimators import load_model
    from laso.estimators.serialization import described_parameters

    if not path.exists():
        return None
    try:
        earlier = load_model(path)
    except BadModel:
        return None
    same = type(earlier) is type(model) and earlier.metadata_.get("data") == data
    return (
        earlier if same and described_parameters(earlier) == described_parameters(model) else None
    )


def finished(job: Job, model: SearchEstimator, path: Path) -> dict[str, Any]:
    """Evaluate and save: the report."""
    from laso.evaluation import evaluated, is_known

    evaluation = error = None
    if job.dev is not None:
        tokens, answers = job.dev.tokens, job.dev.answers
        evaluation = evaluated(answers, model.predict(tokens))
        if all(is_known(label) for labels in answers for label in labels):
            some = slice(CALIBRATED)
            model.calibrate(tokens[some], answers[some])
            error = model.reliability(tokens[some], answers[some]).error
    roles, form = job.all.roles, job.all.form
    model.metadata_ |= {
        "column_roles": job.all.numbered(),
        "format": {"kind": form.kind, "separator": form.separator, "comment": form.comment},
        "configuration": job.settings.as_json(),
        "data": job.data,
    }
    if evaluation is not None:
        model.metadata_["held out"] = {"accuracy": evaluation.accuracy, "score": evaluation.score}
    size = model.save(path)
    if not model.interrupted_:
        path.with_name(path.name + CHECKPOINT).unlink(missing_ok=True)
    return {
        "model": str(path),
        "bytes": size,
        "task": job.task,
        "inputs": list(roles.inputs),
        "label": list(roles.labels),
        "labels": len(model.classes_),
        **job.data,
        "epochs": model.n_iter_,
        "best_epoch": model.best_epoch_,
        "scores": model.scores_,
        "converged": model.converged_,
        "interrupted": model.interrupted_,
        "resumed": job.resumed,
        "refit": "chosen" in model.metadata_,
        "features": model.size_.features,
        "calibration_error": error,
        "evaluation": None if evaluation is None else evaluation.as_json(),
        "report": str(evaluation or ""),
    }


def shown(result: dict[str, Any], evaluation: str) -> str:
    """The report as text."""
    kind = "chunks" if result["task"] == "chunk" else "tags"
    lines = [
        f"learned {kind} from {result['sentences']} sentences, {result['tokens']} tokens of "
        f"{', '.join(result['files'])}: {result['labels']} labels, {result['features']} features",
        f"columns {', '.join(result['inputs'])} are the inputs, {', '.join(result['label'])} the "
        "label",
        f"{result['epochs']} epochs, of which the weights of epoch {result['best_epoch']} are kept",
    ]
    if result["labels"] == 1:
        lines += ["all tokens have the same label: there was nothing to learn (see --label)"]
    if evaluation:
        lines += [f"held out: {evaluation}"]
    if result["refit"]:
        lines += ["then learned again from all sentences; the held-out ones were seen in that"]
    size = f"{result['bytes'] / 1e6:.2f} MB"
    lines += [f"saved as {result['model']} ({size}); next: laso tag {result['model']} FILE"]
    return "\n".join(lines)


@contextmanager
def bar(console: Console) -> Iterator[Any]:
    """Progress on a terminal: a bar, and one line for each epoch; elsewhere nothing."""
    if not console.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        shown = progress.add_task("reading", total=None)

        def show(report: Report) -> None:
            epoch = f"epoch {report.epoch} of at most {report.epochs}"
            progress.update(
                shown, completed=report.example, total=report.examples, description=epoch
            )
            if report.score is not None:
                console.print(f"{epoch}: held-out score {100 * report.score:.2f}")

        yield show
