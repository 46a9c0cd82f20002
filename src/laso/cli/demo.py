"""``laso demo``: learn to chunk with the bundled corpus, evaluate, tag, look into one search."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from laso import Model, Progress
    from laso.data import Sentence
    from laso.metrics import Counts

EPOCHS = 4  # chosen with --held-out, on a tenth of the training part
BEAM = 5


@dataclass(frozen=True)
class Settings:
    """What the user may choose."""

    epochs: int = EPOCHS
    beam: int = BEAM
    seed: int = 0
    held_out: bool = False


@dataclass(frozen=True)
class Training:
    """The model and what was seen while it was made."""

    model: Model
    epochs: list[dict[str, Any]]
    interrupted: bool


def run(
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training part.")] = EPOCHS,
    beam: Annotated[int, typer.Option(min=1, help="How many hypotheses are kept.")] = BEAM,
    seed: Annotated[int, typer.Option(help="Decides the order of the sentences.")] = 0,
    held_out: Annotated[
        bool,
        typer.Option(
            "--held-out",
            help="Learn from nine tenths of the training part and test on the last tenth; "
            "the number of epochs was chosen so.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write the result as JSON; progress goes to stderr.")
    ] = False,
) -> None:
    """Learn to chunk with the bundled corpus, evaluate, tag, and look into one search.

    Ctrl-C ends the training early; what was learned until then is kept and evaluated.
    """
    from rich.console import Console

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
    result = {
        "settings": asdict(settings),
        "training": {
            "sentences": len(train),
            "words": sum(map(len, train)),
            "epochs": training.epochs,
            "updates": training.model.updates,
            "interrupted": training.interrupted,
        },
        "test": evaluated(training.model, train, test),
        "tagged": [tagged(training.model, sentence) for sentence in test[:2]],
        "search": looked_into(training.model, test),
    }
    if as_json:
        typer.echo(json.dumps(result, indent=2))
    else:
        say_result(console, result)


def parts(*, held_out: bool = False) -> tuple[list[Sentence], list[Sentence]]:
    """What to learn from and what to test on; ``held_out`` leaves the test part alone."""
    from laso.data import load_bundled

    train, test = load_bundled()
    if not held_out:
        return train, test
    return [s for i, s in enumerate(train, start=1) if i % 10], train[9::10]


def example(sentence: Sentence) -> tuple[Any, Any]:
    """The pair (x, y) of a sentence: words with their POS tags, and chunks."""
    from laso.examples.chunking import to_chunks

    return tuple(token[:2] for token in sentence), to_chunks([tag for *_, tag in sentence])


def learn_to_chunk(console: Console, settings: Settings, train: list[Sentence]) -> Training:
    """Train, and show how it goes: a bar on a terminal, and one line for each epoch."""
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    from laso import beam, fit, perceptron
    from laso.examples.chunking import Chunking, words_covered

    data = [example(sentence) for sentence in train]
    epochs: list[dict[str, Any]] = []
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("epoch 1", total=settings.epochs * len(data))

        def show(progress: Progress) -> None:
            rate = f"{100 * progress.error_rate:.1f} %"
            epoch = f"epoch {progress.epoch} of {progress.epochs}"
            bar.update(task, advance=1, description=f"{epoch}, errors {rate}")
            if progress.example == progress.examples:
                epochs.append(
                    {
                        "epoch": progress.epoch,
                        "error_rate": progress.error_rate,
                        "updates": progress.updates,
                    }
                )
                needed = f"{rate} of the sentences needed an update"
                bar.console.print(f"  {epoch}: {needed}, {progress.updates} updates so far")

        model = fit(
            Chunking.for_data(data),
            data,
            queue=beam(settings.beam, key=words_covered),
            update=perceptron(),
            epochs=settings.epochs,
            seed=settings.seed,
            progress=show,
        )
    interrupted = len(epochs) < settings.epochs and not model.converged
    if interrupted:
        console.print(f"  interrupted: what {model.updates} updates taught is kept")
    return Training(model, epochs, interrupted)


def evaluated(model: Model, train: list[Sentence], test: list[Sentence]) -> dict[str, Any]:
    """The scores of the model and of the baseline on the test part."""
    from laso.examples.chunking import to_bio
    from laso.metrics import chunk_scores, majority_baseline

    def scores(found: list[list[str]]) -> dict[str, float]:
        counts: Counts = chunk_scores(wanted, found)
        return {"precision": counts.precision, "recall": counts.recall, "f": counts.f}

    wanted = [[tag for *_, tag in sentence] for sentence in test]
    baseline = majority_baseline(train)
    return {
        "sentences": len(test),
        "words": sum(map(len, test)),
        "baseline": scores([baseline(sentence) for sentence in test]),
        "laso": scores([to_bio(model.predict(example(sentence)[0])) for sentence in test]),
    }


def tagged(model: Model, sentence: Sentence) -> dict[str, Any]:
    """The chunks found in a sentence, and those wanted."""
    x, y = example(sentence)
    return {"words": [word for word, _ in x], "found": model.predict(x), "wanted": y}


def looked_into(model: Model, test: list[Sentence]) -> dict[str, Any]:
    """The search through the shortest sentence in which the right path was not always on top.

    If there is none, through the shortest sentence of all.
    """
    by_length = sorted(test, key=len)
    searches = ((sentence, rounds(model, sentence)) for sentence in by_length)
    sentence, seen = next(
        ((sentence, seen) for sentence, seen in searches if _was_in_doubt(seen)),
        (by_length[0], rounds(model, by_length[0])),
    )
    return {"words": [token[0] for token in sentence], "rounds": seen}


def _was_in_doubt(rounds: list[dict[str, Any]]) -> bool:
    return any(row["right"] and row["rank"] != 1 for row in rounds)


def rounds(model: Model, sentence: Sentence) -> list[dict[str, Any]]:
    """Each round of the search: the beam, best first, and the rank of the right path in it.

    ``right`` is False where the right path has no node, being inside a chunk; a rank of None
    where it has one says that it fell out of the beam.
    """
    from laso.trace import trace_search

    x, y = example(sentence)
    ends = {0, *(end for _, _, end in y)}
    opened: dict[int, list[Any]] = {}
    for event in trace_search(model.problem, x, model.w, model.queue, y=y):
        covered = event["state"][-1][2] if event["state"] else 0
        opened.setdefault(covered, [event, *event["queue"]])  # as it was when the round began
    return [
        {
            "covered": covered,
            "right": covered in ends,
            "rank": next((i for i, node in enumerate(beam, start=1) if node["good"]), None),
            "beam": [
                {"chunks": node["state"], "score": node["score"], "good": node["good"]}
                for node in beam
            ],
        }
        for covered, beam in opened.items()
        if covered
    ]


def say_plan(
    console: Console, settings: Settings, train: list[Sentence], test: list[Sentence]
) -> None:
    """What will be done, before it begins."""
    part = "held out of the training part" if settings.held_out else "never seen in training"
    console.print("[bold]Learning to chunk with the bundled corpus[/bold]")
    console.print(f"  {len(train)} sentences, {sum(map(len, train))} words to learn from")
    console.print(f"  {len(test)} sentences, {sum(map(len, test))} words to test on, {part}")
    console.print(
        f"\n[bold]Training[/bold]: LaSO, averaged perceptron, beam of {settings.beam} by words "
        f"covered, seed {settings.seed}"
    )


def say_result(console: Console, result: dict[str, Any]) -> None:
    """Scores, two sentences and one search."""
    test = result["test"]
    console.print(f"\n[bold]Test[/bold] on {test['sentences']} sentences, chunks in per cent")
    console.print(f"{'precision':>63}{'recall':>8}{'F':>7}")
    for name, key in (
        ("each POS tag's most frequent chunk tag (baseline)", "baseline"),
        ("laso",) * 2,
    ):
        scores = test[key]
        numbers = f"{scores['precision']:9.1f}{scores['recall']:8.1f}{scores['f']:7.1f}"
        console.print(f"  {name:<52}{numbers}", style="bold" if key == "laso" else None)
    console.print("\n[bold]The first two of them[/bold], as chunks")
    for sentence in result["tagged"]:
        words, found, wanted = sentence.values()
        console.print(f"  {bracketed(words, found)}", markup=False)
        if found != wanted:
            console.print(f"    wanted: {bracketed(words, wanted)}", markup=False)
    say_search(console, result["search"])


def say_search(console: Console, search: dict[str, Any]) -> None:
    """The beam in every round, best first, the right path marked."""
    words = search["words"]
    which = (
        "whose right path was not always on top" if _was_in_doubt(search["rounds"]) else "of all"
    )
    console.print(f"\n[bold]One search[/bold], that of the shortest sentence {which}")
    console.print("  * marks the right path; it has no hypothesis (-) where it is inside a chunk")
    console.print("  words  its rank  beam")
    for row in search["rounds"]:
        rank = str(row["rank"] or "lost") if row["right"] else "-"
        head = f"  {row['covered']:>5}  {rank:>8}  "
        for node in row["beam"]:
            mark, style = ("*", "bold green") if node["good"] else (" ", None)
            text = f"{mark} {bracketed(words, node['chunks'])}  {node['score']:z.1f}"
            console.print(head + text, style=style, markup=False)
            head = " " * len(head)


def bracketed(words: list[str], chunks: Any) -> str:
    """The words of the chunks, in brackets; words outside stand alone."""
    texts = []
    for label, start, end in chunks:
        text = " ".join(words[start:end])
        texts.append(text if label == "O" else f"[{label} {text}]")
    return " ".join(texts)
