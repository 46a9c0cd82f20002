"""Progress on stderr: a bar on a terminal; elsewhere one line, and only if the engine compiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from laso.features.dense import on_encode

if TYPE_CHECKING:
    from rich.console import Console

    from laso.training import Progress

COMPILING = "compiling (once for this task, about 15 s) ..."


class Display:
    """What a command shows while it works; by default nothing."""

    def __call__(self, report: Progress) -> None:
        """Show how far training has come; the ``progress`` of ``fit``."""

    def stage(self, name: str) -> None:
        """Show what is done now, before or after training."""


class Bar(Display):
    """A bar with a running clock, and one line for each epoch that was scored."""

    def __init__(self, console: Console, bar: Any) -> None:
        self._console, self._bar = console, bar
        self._task = bar.add_task("reading", total=None)

    def __call__(self, report: Progress) -> None:
        """Show how far training has come."""
        epoch = f"epoch {report.epoch} of at most {report.epochs}"
        done = {"completed": report.example, "total": report.examples}
        self._bar.update(self._task, description=epoch, **done)
        if report.score is not None:
            self._console.print(f"{epoch}: held-out score {100 * report.score:.2f}")

    def encoding(self, done: int, total: int) -> None:
        """Show how many words are encoded."""
        self._bar.update(self._task, description="encoding words", completed=done, total=total)

    def stage(self, name: str) -> None:
        """Show what is done now."""
        self._bar.update(self._task, description=name, completed=0, total=None)


class Once:
    """Prints one line when the first words are encoded."""

    def __init__(self, show: Callable[[str], object]) -> None:
        self._show: Callable[[str], object] | None = show

    def __call__(self, done: int, total: int) -> None:
        """Tell that so many words are to be encoded."""
        if self._show is not None:
            self._show(f"encoding {total} words ...")
        self._show = None


@contextmanager
def display(console: Console) -> Iterator[Display]:
    """Show progress on a terminal; elsewhere print one line if the engine compiles."""
    if not console.is_terminal:
        shown = Display()
        with compile_notice(console.print), on_encode(Once(console.print)):
            yield shown
        return
    with running_bar(console) as bar:
        shown = Bar(console, bar)
        with compile_notice(shown.stage, repeat=True), on_encode(shown.encoding):
            yield shown


@contextmanager
def running_bar(console: Console, *, disable: bool = False) -> Iterator[Any]:
    """A progress bar of rich whose clock runs as long as the bar is shown."""
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
    from rich.text import Text

    class Clock(ProgressColumn):
        """The time since the task began; rich's own column stops when an epoch is complete."""

        max_refresh = 0.5

        def render(self, task: Task) -> Text:
            """Return minutes and seconds."""
            minutes, seconds = divmod(int(task.elapsed or 0), 60)
            return Text(f"{minutes}:{seconds:02}", style="progress.elapsed")

    columns = (TextColumn("{task.description}"), BarColumn(), Clock())
    with Progress(*columns, console=console, transient=True, disable=disable) as bar:
        yield bar


@contextmanager
def compile_notice(show: Callable[[str], object], *, repeat: bool = False) -> Iterator[None]:
    """Show a notice when the engine begins to compile: once, or before each entry point."""
    from laso.engine.native import on_compile

    shown = False

    def announce(problem: object, entry: str) -> None:
        nonlocal shown
        if repeat or not shown:
            show(COMPILING)
        shown = True

    with on_compile(announce):
        yield
