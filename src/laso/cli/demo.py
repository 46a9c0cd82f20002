"""``laso demo``: train a chunker on the bundled corpus, evaluate, predict, and draw one search."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from errno import ENOENT
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from laso import Chunker
    from laso.data import Sentence
    from laso.metrics import Counts
    from laso.pictures.search import Search
    from laso.training import Progress

EPOCHS = 5  # chosen with --held-out, on a tenth of the training part
BEAM = 5
PRUNED = 2  # dropped hypotheses of a round that are shown
PICTURE = Path("laso-search.html")


@dataclass(frozen=True)
class Settings:
    """What the user may choose."""

    epochs: int = EPOCHS
    beam: int = BEAM
    seed: int = 0
    held_out: bool = False


@dataclass
class Training:
    """The model, and a row for each epoch that made it."""

    model: Chunker
    epochs: list[dict[str, Any]] = field(default_factory=list)
    updates: int = 0


def run(
    epochs: Annotated[int, typer.Option(min=1, help="The number of epochs.")] = EPOCHS,
    beam: Annotated[int, typer.Option(min=1, help="The width of the beam.")] = BEAM,
    seed: Annotated[int, typer.Option(help="The seed of the order of the sentences.")] = 0,
    held_out: Annotated[
        bool,
        typer.Option(
            "--held-out",
            help="Train on nine tenths of the training part and test on the last tenth, as was "
            "done to choose the number of epochs.",
        ),
    ] = False,
    picture: Annotated[
        Path, typer.Option(help="The HTML file for the picture of one search.")
    ] = PICTURE,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write the result as JSON; progress goes to stderr.")
    ] = False,
) -> None:
    """Train a chunker on the bundled corpus, evaluate it, predict, and draw one search.

    Ctrl-C ends the training early; what was learned until then is evaluated.
    """
    from rich.console import Console

    from laso.cli.picture import search_page
    from laso.files.atomic import write_text

    if not picture.parent.is_dir():
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), str(picture.parent))
    settings = Settings(epochs, beam, seed, held_out)
    console = Console(stderr=as_json, highlight=False, soft_wrap=True)
    train, test = parts(held_out=held_out)
    if not as_json:
        say_plan(console, settings, train, test)
    try:
        training = learn_to_chunk(console, settings, train)
    except KeyboardInterrupt:
        console.print("  interrupted before anything was learned")
        raise typer.Exit(130) from None
    model = training.model
    drawn = interesting(model, test)
    search = {**search_of(model, drawn), "sentence": tagged(model, drawn)}
    result = {
        "settings": asdict(settings),
        "training": {
            "sentences": len(train),
            "words": sum(map(len, train)),
            "epochs": training.epochs,
            "updates": training.updates,
            "interrupted": model.interrupted_,
        },
        "test": evaluated(model, train, test),
        "tagged": [tagged(model, sentence) for sentence in test[:2]],
        "search": search,
        "picture": str(picture),
    }
    write_text(picture, search_page(search, search["sentence"]))
    if as_json:
        typer.echo(json.dumps(result, indent=2))
    else:
        say_result(console, result)


# --------------------------------------------------------------------------- data and training


def parts(*, held_out: bool = False) -> tuple[list[Sentence], list[Sentence]]:
    """Return the sentences to train and to test on; ``held_out`` leaves the test part alone."""
    from laso.data import load_bundled

    train, test = load_bundled()
    if not held_out:
        return train, test
    return [s for i, s in enumerate(train, start=1) if i % 10], train[9::10]


def example(sentence: Sentence) -> tuple[Any, Any]:
    """Return the pair (x, y) of a sentence: words with their POS tags, and chunk tags."""
    return [token[:2] for token in sentence], [tag for *_, tag in sentence]


def learn_to_chunk(console: Console, settings: Settings, train: list[Sentence]) -> Training:
    """Train, and show progress: a bar on a terminal, and one line for each epoch."""
    from rich.console import Console as AnyConsole

    from laso import Chunker, beam
    from laso.cli.progress import compile_notice, running_bar

    model = Chunker(queue=beam(settings.beam), epochs=settings.epochs, seed=settings.seed)
    training = Training(model)
    with running_bar(console, disable=not console.is_terminal) as bar:
        task = bar.add_task("reading", total=settings.epochs * len(train))

        def show(progress: Progress) -> None:
            rate = f"{100 * progress.error_rate:.1f} %"
            epoch = f"epoch {progress.epoch} of {progress.epochs}"
            done = (progress.epoch - 1) * progress.examples + progress.example
            over = progress.example == progress.examples
            text = f"{epoch}, errors {rate}"
            bar.update(task, completed=done, description=text, refresh=over)
            training.updates = progress.updates
            if over:
                training.epochs.append(
                    {
                        "epoch": progress.epoch,
                        "error_rate": progress.error_rate,
                        "updates": progress.updates,
                    }
                )
                bar.console.print(f"  {epoch}: {rate} of the sentences needed an update")

        def notice(text: str) -> None:
            if console.is_terminal:
                bar.update(task, description=text)
            else:  # on stderr, since it depends on the cache
                AnyConsole(stderr=True, highlight=False, soft_wrap=True).print(text)

        with compile_notice(notice, repeat=console.is_terminal):
            model.fit(*zip(*map(example, train), strict=True), progress=show)
            if console.is_terminal:
                bar.update(task, description="evaluating")
            model.predict([example(train[0])[0]])  # compiles the search that evaluation needs
    if model.interrupted_:
        console.print(f"  interrupted: what {training.updates} updates taught is kept")
    return training


# --------------------------------------------------------------------------- results


def evaluated(model: Chunker, train: list[Sentence], test: list[Sentence]) -> dict[str, Any]:
    """Return the scores of the model and of the baseline on the test part."""
    from laso.metrics import chunk_scores, majority_baseline

    def scores(predicted: list[list[str]]) -> dict[str, float]:
        counts: Counts = chunk_scores(gold, predicted)
        return {"precision": counts.precision, "recall": counts.recall, "f": counts.f}

    X, gold = map(list, zip(*map(example, test), strict=True))
    baseline = majority_baseline(train)
    return {
        "sentences": len(test),
        "words": sum(map(len, test)),
        "baseline": scores([baseline(sentence) for sentence in test]),
        "laso": scores(model.predict(X)),
    }


def tagged(model: Chunker, sentence: Sentence) -> dict[str, Any]:
    """Return the predicted and the gold chunks of a sentence."""
    from laso.examples.chunking import to_chunks

    x, y = example(sentence)
    return {
        "words": [word for word, _ in x],
        "predicted": to_chunks(model.predict_single(x)),
        "gold": to_chunks(y),
    }


def interesting(model: Chunker, test: list[Sentence]) -> Sentence:
    """Return the shortest sentence with a wrong prediction; without one, the shortest of all."""
    by_length = sorted(test, key=len)
    X, gold = zip(*map(example, by_length), strict=True)
    predicted = model.predict(list(X))
    rows = zip(by_length, gold, predicted, strict=True)
    return next((sentence for sentence, y, p in rows if y != p), by_length[0])


def search_of(model: Chunker, sentence: Sentence) -> Search:
    """Return the rounds of the search for a sentence, as ``laso.pictures.search`` has them."""
    from laso.pictures.search import rounds_of

    x, y = example(sentence)
    return rounds_of(model.trace(x, y, pruned=PRUNED), [word for word, _ in x])


# --------------------------------------------------------------------------- text


def say_plan(
    console: Console, settings: Settings, train: list[Sentence], test: list[Sentence]
) -> None:
    """Print what will be done, before it begins."""
    part = "held out" if settings.held_out else "never seen in training"
    console.print(
        f"[bold]Chunking[/bold] with the bundled corpus: {len(train)} sentences to train on, "
        f"{len(test)} to test on, {part}"
    )


def say_result(console: Console, result: dict[str, Any]) -> None:
    """Print the scores, two sentences, and the path of the picture."""
    from laso.cli.picture import bracketed

    beam = f"laso, beam of {result['settings']['beam']}"
    title = f"[bold]Test[/bold]{'':<45}"
    console.print(f"{title} precision  recall      F")
    for name, key in (
        ("baseline: most frequent chunk tag of a POS tag", "baseline"),
        (beam, "laso"),
    ):
        scores = result["test"][key]
        numbers = f"{scores['precision']:9.1f}{scores['recall']:8.1f}{scores['f']:7.1f}"
        console.print(f"  {name:<48}{numbers}", style="bold" if key == "laso" else None)
    console.print("[bold]Predicted[/bold] for the first two test sentences:")
    for sentence in result["tagged"]:
        words, predicted, gold = (sentence[key] for key in ("words", "predicted", "gold"))
        console.print(f"  {bracketed(words, predicted)}", markup=False)
        if predicted != gold:
            console.print(f"    gold: {bracketed(words, gold)}", markup=False)
    console.print("[bold]One search[/bold] as a picture, for a browser: ", end="")
    console.print(result["picture"], markup=False)
