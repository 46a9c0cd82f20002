"""``laso serve`` and ``laso trace``: look into a search, in a browser or as a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import laso.cli.options as options

if TYPE_CHECKING:
    from laso.serve.inputs import Example
    from laso.serve.workbench import Workbench

EPOCHS = 5


def run(
    model: Annotated[
        Path | None,
        typer.Argument(help="A model; by default a small one, trained now on the bundled corpus."),
    ] = None,
    files: Annotated[
        list[str] | None, typer.Argument(help="Files of sentences to choose from.")
    ] = None,
    task: options.OwnTask = None,
    compare: Annotated[Path | None, typer.Option(help="A second model, to compare with.")] = None,
    save_in: Annotated[
        Path | None, typer.Option(help="The folder in which the page may save models.")
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; by default a free one.")
    ] = 0,
    browser: options.Browser = True,
) -> None:
    """Open a local page to look into the search of a model, to steer it and to teach it.

    Only this machine can reach the page, and only by the address that is printed. Ctrl-C ends it.
    """
    from laso.serve.server import PageServer, check_installed
    from laso.serve.workbench import Workbench

    check_installed()
    if save_in is not None and not save_in.is_dir():
        raise typer.BadParameter(f"--save-in {save_in}: expected a folder")
    if model is None:
        if files or compare or task:
            raise typer.BadParameter("files, --task and --compare need a model")
        bench = Workbench(folder=save_in)
    else:
        bench = loaded(model, files or [], task)
        bench.folder = save_in
        if compare is not None:
            from laso.cli import own

            bench.other = own.load(compare, task)
    server = PageServer(bench, port=port)
    server.start()
    show(server.address, browser=browser)
    try:
        if model is None:
            train_bundled(bench)
        server.wait()
    except KeyboardInterrupt:
        typer.echo("ended", err=True)
    finally:
        server.close()


def show(address: str, *, browser: bool, err: bool = False) -> None:
    """Print an address, and open it in a browser if that is wanted."""
    typer.echo(f"open {address}", err=err)
    if browser:
        import webbrowser

        webbrowser.open(address)


def loaded(path: Path, files: list[str], task: str | None) -> Workbench:
    """Return a workbench for the model of a file, and the examples of files."""
    from laso.cli import own
    from laso.serve.workbench import Workbench

    model = own.load(path, task)
    return Workbench(model, examples=read_files(model, files, task), task=task)


def read_files(model: Any, files: list[str], task: str | None) -> list[Example]:
    """Return the examples of files."""
    from laso.files.opening import open_input
    from laso.serve.inputs import read_text

    examples = []
    for name in files:
        with open_input(name) as file:
            examples += read_text(model, file.read(), name=name, task=task)
    return examples


def train_bundled(bench: Workbench) -> None:
    """Train a small model on the bundled corpus, which the page shows meanwhile."""
    from laso import Tagger
    from laso.data import load_bundled
    from laso.serve.inputs import Example

    train, test = (
        [([token[0] for token in s], [token[-1] for token in s]) for s in part]
        for part in load_bundled()
    )
    bench.watched.begin("compiling and training on the bundled corpus")
    model = Tagger(constraints="BIO", queue=5, epochs=EPOCHS, class_weight={})
    told = bench.watched.after_epoch(model, lambda: test)
    X, y = map(list, zip(*train, strict=True))
    held_out = tuple(map(list, zip(*test, strict=True)))
    model.fit(X, y, dev=held_out, after_epoch=told)
    model.calibrate(*held_out)
    bench.examples = [Example(x, x, gold) for x, gold in test]
    bench.models = [model]
    bench.watched.end("trained on the bundled corpus")


def trace(
    model: Annotated[Path, typer.Argument(help="A model that laso train has saved.")],
    file: Annotated[str, typer.Argument(help="A file with sentences.")],
    task: options.OwnTask = None,
    sentence: Annotated[
        int, typer.Option(min=1, help="The number of the sentence in the file, from 1.")
    ] = 1,
    html: Annotated[
        Path | None, typer.Option(help="Write a self-contained page with the picture.")
    ] = None,
    svg: Annotated[Path | None, typer.Option(help="Write the picture as SVG.")] = None,
) -> None:
    """Trace the search for a sentence, and draw it; without --html or --svg, write it as JSON."""
    from laso.files.atomic import check_writable, write_text

    for path in (html, svg):
        if path is not None:
            check_writable(path)
    bench = loaded(model, [file], task)
    if sentence > len(bench.examples):
        raise typer.BadParameter(f"--sentence {sentence}: {file} has {len(bench.examples)}")
    request = {"item": sentence - 1}
    for path, form in ((html, "html"), (svg, "svg")):
        if path is not None:
            write_text(path, bench.export({**request, "form": form})["content"])
    if html is None and svg is None:
        shown = bench.look(request)
        told = {name: shown[name] for name in ("output", "probability", "search")}
        typer.echo(json.dumps(told, ensure_ascii=False, default=str))
