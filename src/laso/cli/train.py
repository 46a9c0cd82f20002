"""``laso train``: learn from files, choose the number of epochs on held-out examples, save."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from laso.cli import options
from laso.cli.own import usage_errors
from laso.files.atomic import check_writable


def run(
    files: Annotated[list[str], typer.Argument(help="Training files; - is standard input.")],
    model: Annotated[
        Path | None,
        typer.Option(help="The model file; by default beside the first file, as .laso."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            help="tag, chunk (steps are whole chunks, for labels like B-x, I-x, O), joint, parse, "
            "cluster (items of JSON lines), coref (mentions of texts), or a task of your own as "
            "module:Class; by default parse for the labels head,deprel, joint for several label "
            "columns, cluster and coref for such files, else tag."
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            help="The label column, by name or number from 1, or several, comma-separated; by "
            "default the last column."
        ),
    ] = None,
    inputs: Annotated[
        str | None,
        typer.Option(help="The input columns, comma-separated; by default all but the labels."),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Names for all columns of the file, comma-separated.")
    ] = None,
    form: options.Format = None,
    separator: options.Separator = None,
    comment: options.Comment = None,
    dev: Annotated[
        str | None, typer.Option(help="A development file, to choose the number of epochs on.")
    ] = None,
    held_out: Annotated[
        float | None,
        typer.Option(
            min=0, max=0.9, help="The fraction held out for that if there is no --dev [0.1]."
        ),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="The largest number of epochs [30].")
    ] = None,
    templates: Annotated[str | None, typer.Option(help="A file of feature templates.")] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", help="A parameter of the estimator, as in queue=exact()."),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="Vectors of words beside the features: minilm, or the folder of a BERT (needs "
            "laso[encoder])."
        ),
    ] = None,
    class_weight: Annotated[
        list[str] | None,
        typer.Option(help="balanced, or LABEL=WEIGHT: what it costs to miss a label."),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(help="A folder for encoded data, to train on more than memory holds."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1, help="Learn in this number of threads, each from its own part of the data."
        ),
    ] = None,
    shards: Annotated[
        int | None,
        typer.Option(min=1, help="The number of parts that learn apart, by default --jobs."),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file with these options.")] = None,
    refit: Annotated[
        bool | None,
        typer.Option("--refit", help="Train again on all data, for the chosen number of epochs."),
    ] = None,
    pipeline: Annotated[
        bool | None,
        typer.Option(
            "--pipeline",
            help="Of --task parse: also train taggers, and learn from the tags they predict.",
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Do not resume a run that was cut short.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Open a page that shows the training; Ctrl-C ends it.")
    ] = False,
    browser: options.Browser = True,
    as_json: Annotated[bool, typer.Option("--json", help="Write the report as JSON.")] = False,
) -> None:
    """Train a model on labelled sentences, and save it.

    Format and task are detected. By default the last column is the label, a tenth of the sentences
    is held out, training stops after ten epochs without a better held-out score, and the best epoch
    is kept. Ctrl-C saves what was learned. A run that was killed is resumed when the command
    is given again.

    Clusters are learned from lines of JSON with items, or from texts with mentions, as in:
    laso train texts.conll
    """
    from rich.console import Console

    from laso.cli import settings as s
    from laso.cli.examples import STDIN, name_for
    from laso.cli.interrupts import Interrupts
    from laso.cli.job import learn, planned
    from laso.cli.progress import display
    from laso.cli.report import Finish, save
    from laso.cli.watch import Watch

    # The result depends on the shards, so the model file names them.
    numbers = {"n_jobs": jobs, "shards": shards or jobs}
    parallel = {name: number for name, number in numbers.items() if number is not None}
    given = s.checked(
        s.Settings(
            task=task,
            format=form,
            separator=separator,
            comment=comment,
            columns=s.names(columns),
            inputs=s.names(inputs),
            label=s.names(label),
            dev=dev,
            held_out=held_out,
            epochs=epochs,
            templates=templates,
            refit=refit,
            pipeline=pipeline,
            encoder=encoder,
            set=s.assignments(sets or []) | s.class_weights(class_weight or []) | parallel,
        ).over(s.Settings() if config is None else s.read_config(config))
    )
    if store is not None and STDIN in files:
        raise typer.BadParameter("--store reads files more than once: expected none that is -")
    if store is not None and watch:
        raise typer.BadParameter("--watch needs the examples in memory: expected no --store")
    path = model or Path(name_for(files[0]))
    check_writable(path)  # not after hours of learning
    watched = Watch(browser=browser) if watch else None
    console = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)
    with display(console) as shown:
        try:
            with usage_errors(), Interrupts() as keys:
                job = planned(files, given, store=store)
                again = fresh or bool(given.pipeline)  # jackknifed tags cannot be repeated
                learned = learn(job, path, console, shown, keys, fresh=again, watch=watched)
                end = Finish(job, learned, path, save(job, learned, path), interrupted=keys.held)
        except KeyboardInterrupt:
            console.print("interrupted before anything was learned")
            raise typer.Exit(130) from None
        if not end.interrupted:
            end.run(shown)
    result = end.result()
    typer.echo(json.dumps(result, indent=1, ensure_ascii=False) if as_json else end.text())
    if watched is not None:
        watched.end(job, end.model)
        watched.stay()
    if result["interrupted"]:
        console.print("interrupted: what was learned until then is saved")
        raise typer.Exit(130)
