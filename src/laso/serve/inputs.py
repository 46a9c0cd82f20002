"""Inputs as text: what a person types, pastes or opens, and what is exported."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laso.cli.examples import Named, head_of, read_by_task, remembered, roles_for
from laso.cli.own import reads_files
from laso.cli.settings import Settings
from laso.cli.tag import recognised
from laso.data.columns import Block
from laso.data.formats import ColumnRoles, Format, cells, written
from laso.data.reading import read
from laso.errors import BadData, LasoError

if TYPE_CHECKING:
    from laso.estimators import SearchEstimator

TYPED = "the text"


@dataclass(frozen=True)
class Example:
    """An input with its words, its gold output if that is known, and where it was read from."""

    x: Any
    words: list[str]
    gold: Any = None
    block: Block | None = None
    form: Format | None = None
    roles: ColumnRoles | None = None

    def with_output(self, model: SearchEstimator, y: Any) -> str:
        """Return the example with an output, in the format that it was read from."""
        if self.block is None or self.form is None or self.roles is None:
            return model.task_.write_output(self.x, y).rstrip("\n") + "\n"
        if self.form.kind != "columns" or not self.roles.labels:
            return written(self.block, y, {}, self.form, self.roles, _kind_to_write(self.form))
        places = [self.block.names.index(name) for name in self.roles.labels]
        lines = dict(self.block.lines)
        for number, token, label in zip(self.block.line_numbers, self.block.tokens, y, strict=True):
            row = [str(cell) for cell in token]
            for place, cell in zip(places, cells(label), strict=True):
                row[place] = str(cell)
            usual = "\t" if "\t" in lines[number] else " "
            lines[number] = (self.form.separator or usual).join(row)
        return "\n".join([*lines.values(), "", ""])


def _kind_to_write(form: Format) -> str:
    return "columns" if form.kind == "text" else form.kind


def read_text(
    model: SearchEstimator, data: bytes, *, name: str = TYPED, task: str | None = None
) -> list[Example]:
    """Return the examples of a text in any format that ``laso tag`` reads."""
    if reads_files(model, task):
        return _read_by_task(model, data, name)
    trained = remembered(model)
    file: Any = Named(BufferedReader(BytesIO(data)), name)
    settings = Settings(format="text") if _is_one_line(data) and len(trained.inputs) == 1 else None
    form = recognised(head_of(file), name, model, trained, settings or Settings())
    examples = []
    for block in read(file, format=form):
        if not block.tokens:
            continue
        roles = roles_for(block, trained, form)
        x = roles.tokens(block)
        labelled = bool(roles.labels) and set(roles.labels) <= set(block.names)
        gold = roles.answers(block) if labelled else None
        if gold is not None and "_" in {cell for label in gold for cell in cells(label)}:
            gold = None  # CoNLL-U has columns without labels
        examples.append(Example(x, words_of(roles.words(block)), gold, block, form, roles))
    return examples


def _is_one_line(data: bytes) -> bool:
    """Tell whether a person has typed one line of words, of whatever number."""
    line = data.strip()
    return not (b"\n" in line or b"\t" in line or line.startswith(b"{"))


def _read_by_task(model: SearchEstimator, data: bytes, name: str) -> list[Example]:
    """Return what the task itself reads; it asks for a path."""
    task = model.task_
    with tempfile.TemporaryDirectory(prefix="laso-") as folder:
        path = Path(folder) / "text"
        path.write_bytes(data)
        try:
            read = read_by_task(task, [str(path)])
            outputs: Sequence[Any] = read.outputs
        except LasoError:
            read = read_by_task(task, [str(path)], labelled=False)
            outputs = [None] * len(read)
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            raise BadData(f"{type(task).__name__}.read_file: {error}", file=name) from error
    pairs = zip(read.inputs, outputs, strict=True)
    return [Example(x, list(task.words(x)), y) for x, y in pairs]


def words_of(tokens: Sequence[Any]) -> list[str]:
    """Return the words of a sentence as they are shown; a number for those with features only."""
    return [
        token if isinstance(token, str) else f"[{i}]" for i, token in enumerate(tokens, start=1)
    ]
