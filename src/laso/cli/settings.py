"""The settings of ``laso train``, from options, a TOML file or defaults; the estimator they make.

Parameters of the estimators are written as in Python: ``queue=exact()``, ``update=alma()``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from laso.cli.own import PRESETS, is_own
from laso.data.formats import KINDS, SEPARATORS, ColumnRoles, Format
from laso.errors import BadData, LasoError, quoted
from laso.files.opening import open_regular

if TYPE_CHECKING:
    from laso.estimators import SearchEstimator
    from laso.tasks.base import Task

EPOCHS, PATIENCE, HELD_OUT = 30, 10, 0.1
FEWEST = 20  # none of fewer examples are held out
TASKS = {"tag": "Tagger", "chunk": "Chunker", "joint": "JointTagger", "parse": "Parser"}
TASKS |= dict.fromkeys(PRESETS, "Clusterer")
ABOUT_COLUMNS = ("format", "separator", "comment", "columns", "inputs", "label", "templates")
WITH_TEMPLATES = [("templates", task) for task in PRESETS]
CALLS = ("queue", "update", "strategy")  # parameters that are written as calls


@dataclass(frozen=True)
class Settings:
    """What the user may choose; None where the user has chosen nothing."""

    task: str | None = None
    format: str | None = None
    separator: str | None = None
    comment: str | None = None
    columns: tuple[str, ...] | None = None
    inputs: tuple[str, ...] | None = None
    label: tuple[str, ...] | None = None
    dev: str | None = None
    held_out: float | None = None
    epochs: int | None = None
    templates: str | None = None
    refit: bool | None = None
    pipeline: bool | None = None
    encoder: str | None = None
    set: Mapping[str, Any] | None = None

    def over(self, other: Settings) -> Settings:
        """Return these settings, completed by those of the other."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        given["set"] = {**(other.set or {}), **(self.set or {})}
        return replace(other, **given)

    def as_json(self) -> dict[str, Any]:
        """Return the settings that were given, for the model's metadata."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in vars(self).items()
            if value not in (None, {})
        }

    def form(self, guess: Format) -> Format:
        """Return how to read a file whose format was detected as ``guess``."""
        form = guess
        if self.format is not None and self.format != guess.kind:
            form = Format(self.format)
        if self.separator is not None:
            form = replace(form, separator=SEPARATORS.get(self.separator, self.separator))
        if self.comment is not None:
            form = replace(form, comment=self.comment or None)
        if self.columns is not None:
            form = replace(form, names=self.columns)
        return form


def checked(settings: Settings) -> Settings:
    """Return the settings if each makes sense; a task that reads its files has no columns."""
    if settings.task not in (None, *TASKS) and not is_own(settings.task):
        raise typer.BadParameter(
            f"--task is {settings.task!r}: expected {', '.join(TASKS)}, or module:Class"
        )
    if settings.format not in (None, *KINDS):
        raise typer.BadParameter(f"--format is {settings.format!r}: there is {', '.join(KINDS)}")
    if settings.separator == "":
        raise typer.BadParameter("--separator is empty")
    reads_files = is_own(settings.task) or settings.task in PRESETS
    for name in ABOUT_COLUMNS if reads_files else ():
        if getattr(settings, name) is not None and (name, settings.task) not in WITH_TEMPLATES:
            raise typer.BadParameter(
                f"--{name} is for files of columns: {settings.task} reads its files itself"
            )
    return settings


def read_config(path: Path) -> Settings:
    """Return the settings of a TOML file; its keys are the long options."""
    try:
        with open_regular(path) as file:
            given = tomllib.loads(file.read().decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadData(f"found no TOML: {error}", file=str(path)) from None
    known = {field.name: field.type for field in fields(Settings)}
    for name, value in given.items():
        key = name.replace("-", "_")
        if key not in known:
            raise BadData(
                f"found the key {quoted(name)}, expected one of {', '.join(known)}", file=str(path)
            )
        if isinstance(value, list) and key != "set":
            given[name] = tuple(map(str, value))
        elif "tuple" in str(known[key]):
            given[name] = names(str(value))
        elif not _is_of(value, str(known[key])):
            raise BadData(
                f"found {quoted(value)} for {name}, expected {known[key]}", file=str(path)
            )
    return checked(Settings(**{name.replace("-", "_"): value for name, value in given.items()}))


def _is_of(value: Any, kind: str) -> bool:
    kinds: dict[str, type | tuple[type, ...]] = {
        "str": str,
        "float": (int, float),
        "int": int,
        "bool": bool,
        "Mapping": dict,
    }
    expected = next(of for name, of in kinds.items() if kind.startswith(name))
    return isinstance(value, expected) and (expected is bool or not isinstance(value, bool))


def names(text: str | None) -> tuple[str, ...] | None:
    """Return the names of a comma-separated list."""
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


def assignments(texts: Sequence[str]) -> dict[str, Any]:
    """Return the parameters of ``--set name=value``; a value is TOML, or else text."""
    given: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(f"--set {text}: expected name=value")
        try:
            given[name.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            given[name.strip()] = value.strip()
    return given


def class_weights(texts: Sequence[str]) -> dict[str, Any]:
    """Return the parameter that ``--class-weight`` stands for."""
    if not texts:
        return {}
    if texts == ["balanced"]:
        return {"class_weight": "balanced"}
    weights: dict[str, float] = {}
    for text in texts:
        label, _, weight = text.rpartition("=")
        try:
            weights[label] = float(weight)
        except ValueError:
            raise typer.BadParameter(
                f"--class-weight {text}: expected balanced, or LABEL=WEIGHT"
            ) from None
    return {"class_weight": weights}


# --------------------------------------------------------------------------- estimators


def made(text: str) -> Any:
    """Return a queue, update or strategy from its text, as ``laso.values.parse`` reads it."""
    from laso.values import parse

    try:
        return parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def parameters_of(settings: Settings) -> dict[str, Any]:
    """Return the parameters of ``--set``, with queues, updates and strategies from their texts."""
    return {
        name: made(value) if name in CALLS and isinstance(value, str) else value
        for name, value in (settings.set or {}).items()
    }


def estimator(
    task: str | Task, settings: Settings, roles: ColumnRoles, parameters: dict[str, Any]
) -> Any:
    """Return the estimator to train for a task, the user's own or a built-in one by its name."""
    from laso import estimators
    from laso.features import read_templates
    from laso.features.templates import template_text

    if settings.encoder is not None:
        parameters["encoder"] = settings.encoder
    if not isinstance(task, str):
        given = parameters | parameters_of(settings)
        return build(estimators.SearchEstimator, given, task=task)
    cls: type[SearchEstimator] = getattr(estimators, TASKS[task])
    if task == "joint":
        parameters["layers"] = [n if n.isidentifier() else f"layer{n}" for n in roles.labels]
    if settings.columns is not None:
        parameters["columns"] = roles.inputs
    if task in PRESETS:
        parameters["preset"] = PRESETS[task]
    if settings.templates is not None:
        parameters["features"] = (
            template_text(settings.templates)
            if task in PRESETS
            else list(map(str, read_templates(settings.templates)))
        )
    if settings.pipeline:
        if task != "parse":
            raise typer.BadParameter(f"--pipeline needs --task parse, found {task}")
        parameters["tagger"] = taggers(roles, settings)
    return build(cls, parameters | parameters_of(settings))


def taggers(roles: ColumnRoles, settings: Settings) -> dict[str, SearchEstimator]:
    """Return a tagger for each column of tags: the inputs but the first."""
    from laso import Tagger
    from laso.tasks.parsing.task import ParsingTask

    if len(roles.inputs) < 2:
        raise typer.BadParameter("--pipeline needs columns of tags behind the words")
    named = ParsingTask(columns=None if settings.columns is None else roles.inputs)
    return {name: Tagger(queue=1) for name in named.column_names(len(roles.inputs))[1:]}


def build(cls: type[SearchEstimator], parameters: Mapping[str, Any], **fixed: Any) -> Any:
    """Return a validated estimator; parameters that make no sense are usage errors."""
    known = [name for name in cls.parameter_names() if name not in fixed]
    unknown = set(parameters) - set(known)
    if unknown:
        raise typer.BadParameter(
            f"{cls.__name__} has no parameter {', '.join(sorted(unknown))}; it has "
            f"{', '.join(known)}"
        )
    try:
        model = cls(**parameters, **fixed)
        model.validate()
    except LasoError:  # also a ValueError, but about data: templates, for example
        raise
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return model
