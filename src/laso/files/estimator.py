"""Estimators as headers and tensors of model files, and restored from them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from laso.data.formats import KINDS
from laso.engine import layout as at
from laso.engine.epochs import ENDED, STAGES, Training
from laso.engine.lattice.exact import ExactMachine
from laso.engine.weights.compact import keys_and_rows
from laso.engine.weights.row_layouts import densified
from laso.errors import BadModel, quoted
from laso.estimators import ESTIMATORS
from laso.estimators.capabilities.confidence import TEMPERATURE
from laso.estimators.capabilities.freezing import FROZEN, HALF
from laso.estimators.learning import fitting
from laso.estimators.learning.class_weights import BALANCED, is_class_weight
from laso.features.templates import Template
from laso.files import weight_tensors
from laso.files.container import Header, Tensors, as_bad_model, read_bytes, read_file
from laso.files.dense import packed_dense, restored_dense
from laso.params import Estimator, is_whole
from laso.tasks import REGISTRY
from laso.tasks.base import Task
from laso.values import parse, unparse

if TYPE_CHECKING:
    from laso.estimators.prediction import Predictor
    from laso.estimators.search import SearchEstimator


MOST_BITS = 62  # of hashed features
TEMPERATURES = (1e-3, 1e9)
LENGTHS = (1e-15, 1e15)  # of steps


def packed_model(
    model: Predictor, precision: str | None, training: bool, *, compress: bool = True
) -> tuple[Header, Tensors]:
    """Header and tensors of a model; for the options see ``SearchEstimator.save``."""
    if not model.task_.name:
        raise ValueError(f"{type(model.task_).__name__} needs a name, which model files have")
    tensors: Tensors = {}
    table, dense = model.weights_, _has_lattice(model, model.task_)
    if training:
        if precision is not None:
            raise ValueError(
                f"training can only resume from unrounded weights, found precision={precision!r}"
            )
        state = fitting.resumable(model)
        state = replace(state, table=densified(state.table)) if dense else state
        tensors |= weight_tensors.pack_learning(state)
    elif precision is None and FROZEN in model.metadata_:
        precision = model.metadata_[FROZEN]["precision"] if compress else None
    weight_tensors.check_keys(table)
    table = densified(table) if dense else table
    tensors |= weight_tensors.pack_weights(table, precision, compress=compress)
    bits = int(table.ints[at.BITS])
    keys = None if bits else keys_and_rows(table)[0]
    task_header, task_tensors = model.task_.pack(keys)
    if not compress:
        task_header, task_tensors = model.task_.pack_plain(task_header, task_tensors)
    if hasattr(model.task_, "step_length_"):
        task_header = {**task_header, "step_length": model.task_.step_length_}
    tensors |= {f"task.{name}": tensor for name, tensor in task_tensors.items()}
    dense_header, dense_tensors = packed_dense(model.task_.dense)
    tensors |= dense_tensors
    header = {
        "task": model.task_.name,
        "estimator": _estimator_name(model),
        "parameters": described_parameters(model),
        "learned": task_header,
        "labels": len(model.classes_),
        "bits": bits,
        "history": {
            "epoch": model.n_iter_,
            "best_epoch": model.best_epoch_,
            "scores": model.scores_,
            "converged": model.converged_,
            "interrupted": model.interrupted_,
            "stage": ENDED if model.training_ is None else model.training_.stage,
            "fingerprint": model.fingerprint_,
        },
        "metadata": dict(sorted(model.metadata_.items())),  # however it came about
        "training": training,
        "class_weight": model.class_weight_,
    } | ({"vectors": dense_header} if dense_header else {})
    return header, tensors


def _has_lattice(model: Predictor, task: Task) -> bool:
    """Return whether the search is exact, which takes dense rows."""
    return isinstance(model.engine_for(task, task.problem), ExactMachine)


def _estimator_name(model: Estimator) -> str:
    """Return the name of the estimator that a file is loaded as: of a subclass, a known one."""
    for cls in type(model).__mro__:
        if ESTIMATORS.get(cls.__name__) == cls.__module__:
            return cls.__name__
    raise ValueError(f"found {type(model).__name__}, expected one of {', '.join(ESTIMATORS)}")


def described_parameters(model: Any) -> dict[str, Any]:
    """Return the parameters as JSON, without those that belong to a run and not to its model."""
    parameters = model.saved_parameters()
    if "dtype" in parameters:
        parameters["dtype"] = str(model.dtype)
    return {name: parameter_to_json(value) for name, value in parameters.items()}


def from_bytes(data: bytes, *, limit: float | None = None, encoder: Any = None) -> SearchEstimator:
    """The model of the bytes of a file; for the parameters see ``load``."""
    with as_bad_model("the model in memory"):
        return restored_model(*read_bytes(data, limit=limit), None, encoder)


def load(
    path: str | os.PathLike[str],
    task: Task | None = None,
    *,
    encoder: Any = None,
    limit: float | None = None,
    mmap: bool = False,
) -> SearchEstimator:
    """The model of a file, whatever its task; a model of an own task needs ``task``.

    ``encoder`` is that of the model's vectors, if it is not built in. ``limit`` is the largest
    number of bytes that it may take in memory; ``mmap`` maps the file.
    """
    header, tensors = read_file(path, limit=limit, mmap=mmap)
    with as_bad_model(path):
        return restored_model(header, tensors, task, encoder)


def restored_model(
    header: Header, tensors: Tensors, task: Task | None, encoder: Any = None
) -> SearchEstimator:
    """Return the model that ``packed_model`` packed."""
    model = _estimator(header, task)
    model.validate()
    model.task_ = task = model.make_task()
    if task.name != header["task"]:
        raise BadModel(
            f"found a {type(model).__name__} for the task {str(header['task'])[:60]!r}, expected "
            f"{task.name!r}"
        )
    task.dense = restored_dense(header.get("vectors"), tensors, encoder)
    prefix, learned = "task.", header["learned"]
    of_task = {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
    task.unpack(learned, of_task)
    if "step_length" in learned:
        task.step_length_ = _between(learned["step_length"], "length of a step", *LENGTHS)
    model.metadata_ = _check_metadata(dict(header["metadata"]))
    model.class_weight_ = header["class_weight"]
    if not is_class_weight(model.class_weight_) or model.class_weight_ == BALANCED:
        raise BadModel("found no class weights, expected a table of numbers above 0")
    n_labels, dtype = len(task.classes), np.dtype(model.dtype)
    if header["labels"] != n_labels:
        raise BadModel(f"found {quoted(header['labels'])} labels, expected {n_labels}")
    model.classes_ = np.array(task.classes, dtype=object)
    bits, sparse = _number(header["bits"], MOST_BITS), not _has_lattice(model, task)
    table = weight_tensors.unpack_weights(tensors, n_labels, dtype, bits, sparse=sparse)
    history = header["history"]
    scores = [float(score) for score in history["scores"]]
    training = Training(
        table,
        epoch=_number(history["epoch"]),
        best_epoch=_number(history["best_epoch"]),
        best_score=max(scores, default=-np.inf),
        best=table,
        scores=scores,
        converged=bool(history["converged"]),
        interrupted=bool(history["interrupted"]),
        stage=_stage(history.get("stage", ENDED)),
    )
    model.weights_, model.fingerprint_ = table, _number(history["fingerprint"])
    fitting.report(model, training)
    model.training_ = None
    if header["training"]:
        weight_tensors.unpack_learning(training, tensors, n_labels, dtype)
        model.training_ = training
    return model


def _check_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of a file if all that the library itself reads is as it writes it."""
    _between(metadata.get(TEMPERATURE, 1.0), "temperature", *TEMPERATURES)
    if metadata.get(FROZEN, {"precision": None})["precision"] not in (None, HALF):
        raise BadModel(f"found a model frozen to {quoted(metadata[FROZEN])}, expected {HALF}")
    roles = metadata.get("column_roles")
    if roles is not None:
        names = [roles["inputs"], roles["labels"]]
        known = all(isinstance(each, list) and set(map(type, each)) <= {str} for each in names)
        if not known or not names[0] or not is_whole(roles["width"], 1, 1 << 20):
            raise BadModel(f"found the columns {quoted(roles)}, expected inputs, labels and width")
    form = metadata.get("format", {})
    texts = [form.get(name) for name in ("separator", "comment")]
    if form.get("kind", KINDS[0]) not in KINDS or not all(
        text is None or (isinstance(text, str) and text) for text in texts
    ):
        raise BadModel(f"found the format {quoted(form)}, expected one of {', '.join(KINDS)}")
    return metadata


def _estimator(header: Header, task: Task | None) -> SearchEstimator:
    name = header["task"]
    if task is None and (name not in REGISTRY or "task" in header["parameters"]):
        raise BadModel(
            f"found a model for the task {quoted(name)}, which is not built in: expected the "
            "task beside the file, as in load_model(path, task=MyTask()), or --task module:MyTask"
        )
    if task is not None and task.name != name:
        raise BadModel(f"found a model for the task {quoted(name)}, expected {task.name!r}")
    return _with_parameters(header, task)


def _with_parameters(header: Mapping[str, Any], task: Task | None) -> SearchEstimator:
    """Return the estimator that a header names, with its parameters."""
    module = ESTIMATORS.get(header["estimator"])
    if module is None:
        raise BadModel(f"found a model of {quoted(header['estimator'])}")
    cls = getattr(import_module(module), header["estimator"])
    stored = header["parameters"].items()
    parameters = {name: parameter_from_json(value) for name, value in stored}
    if not set(parameters) <= set(cls.parameter_names()):  # new ones have their defaults
        raise BadModel(f"its parameters are not those of a {cls.__name__}")
    # What belongs to a run of the writer is none of the reader's: no file decides where to write.
    parameters |= {name: value for name, value in cls.unsaved.items() if name in parameters}
    if task is not None:
        parameters |= cls.parameters_from(task)
    model: SearchEstimator = cls(**parameters)
    return model


def _between(value: Any, name: str, least: float, most: float) -> float:
    if type(value) not in (int, float) or not least <= value <= most:
        raise BadModel(f"found the {name} {quoted(value)}, expected {least:g} to {most:g}")
    return float(value)


def _stage(value: Any) -> str:
    if value not in STAGES:
        raise BadModel(f"found the stage {quoted(value)}, expected one of {', '.join(STAGES)}")
    return str(value)


def _number(value: Any, most: int = 1 << 64) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise BadModel(f"found {quoted(value)}, expected a number from 0 to {most}")
    return value


# --------------------------------------------------------------------------- parameters


def parameter_to_json(value: Any) -> Any:
    """Return a parameter as JSON; queues, updates and strategies as the text of ``unparse``."""
    if isinstance(value, Estimator):
        return {"estimator": _estimator_name(value), "parameters": described_parameters(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Template):
        return str(value)
    if isinstance(value, Sequence):
        return [parameter_to_json(each) for each in value]
    if isinstance(value, Mapping):
        pairs = value.items()
        return {"table": [[parameter_to_json(part) for part in pair] for pair in pairs]}
    return {"value": unparse(value)}


def parameter_from_json(stored: Any) -> Any:
    """Return the parameter that ``parameter_to_json`` stored."""
    if isinstance(stored, list):
        return [parameter_from_json(each) for each in stored]
    if not isinstance(stored, dict):
        return stored
    if "estimator" in stored:
        return _with_parameters(stored, None)
    if "table" in stored:
        pairs = stored["table"]
        return {parameter_from_json(key): parameter_from_json(value) for key, value in pairs}
    return parse(stored["value"])
