"""Estimators as headers and tensors of model files, and made again from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from laso import model_file
from laso.engine import layout as at
from laso.engine.layout import Array
from laso.engine.passes import Training
from laso.errors import BadModel
from laso.estimators.weights import BALANCED, is_class_weight
from laso.features import encode
from laso.features.encode import Encoder
from laso.features.templates import parse_templates

if TYPE_CHECKING:
    from laso.estimators.base import SequenceEstimator

Made = TypeVar("Made", bound="SequenceEstimator")


def taken_apart(
    model: SequenceEstimator, weights: str | None, training: bool
) -> tuple[model_file.Header, model_file.Tensors]:
    """Header and tensors of a model; for the options see ``SequenceEstimator.save``."""
    encoder = model.encoder_
    tensors: dict[str, Array] = {}
    if training:
        if weights is not None:
            raise ValueError(f"training goes on from all of a weight, found weights={weights!r}")
        tensors |= model_file.pack_learning(model._state())
    tensors |= model_file.pack_weights(model.weights_, weights)
    for column, values in encoder.vocabularies.items():
        tensors[f"values.{column}"] = encode.packed_strings(list(values))
    if encoder.attributes and not model.weights_.ints[at.BITS]:
        keys, _ = model_file.stored_rows(model.weights_)
        names = [encoder.attributes[key] for key in keys.tolist() if key in encoder.attributes]
        tensors["attributes"] = encode.packed_strings(names)
    header = {
        "task": model.task,
        "parameters": described_parameters(model),
        "labels": list(encoder.labels),
        "columns": list(encoder.names),
        "width": encoder.width,
        "templates": [str(template) for template in encoder.templates],
        "facts": model.facts_,
        "base features": [view.checksum() for view in encoder.views.values()],
        "bits": int(model.weights_.ints[at.BITS]),
        "history": {
            "epoch": model.n_iter_,
            "best_epoch": model.best_epoch_,
            "scores": model.scores_,
            "converged": model.converged_,
            "interrupted": model.interrupted_,
            "fingerprint": model.fingerprint_,
        },
        "notes": dict(sorted(model.notes_.items())),  # however it came about
        "training": training,
    }
    if model.class_weight_ is not None:
        header["class weight"] = model.class_weight_
    return header, tensors


def described_parameters(model: SequenceEstimator) -> dict[str, Any]:
    """The parameters as JSON."""
    parameters = model.get_params(deep=False)
    if "dtype" in parameters:
        parameters["dtype"] = str(model.dtype)
    if parameters.get("class_weight", "") is None:
        del parameters["class_weight"]  # as in older files
    return {name: model_file.described(value) for name, value in parameters.items()}


def put_together(cls: type[Made], header: model_file.Header, tensors: model_file.Tensors) -> Made:
    """The model that ``taken_apart`` took apart."""
    parameters = {name: model_file.restored(v) for name, v in header["parameters"].items()}
    if set(parameters) | {"class_weight"} != set(cls._parameter_names()) | {"class_weight"}:
        raise BadModel(f"its parameters are not those of a {cls.__name__}")
    made = cls(**parameters)
    made._check()
    made.facts_ = dict(header["facts"])
    made.notes_ = dict(header.get("notes", {}))  # older files have none
    made.encoder_ = encoder = _encoder(made, header, tensors)
    made.class_weight_ = header.get("class weight")
    if not is_class_weight(made.class_weight_) or made.class_weight_ == BALANCED:
        raise BadModel("found no class weights, expected a table of numbers above 0")
    labels = encoder.labels
    made.classes_ = np.array(labels, dtype=object)
    bits = _number(header["bits"], 0)
    table = model_file.unpack_weights(tensors, len(labels), np.dtype(made.dtype), bits)
    made.weights_ = table
    history = header["history"]
    scores = [float(score) for score in history["scores"]]
    training = Training(
        table,
        epoch=_number(history["epoch"], 0),
        best_epoch=_number(history["best_epoch"], 0),
        best_score=max(scores, default=-np.inf),
        best=table,
        scores=scores,
        converged=bool(history["converged"]),
        interrupted=bool(history["interrupted"]),
    )
    made.fingerprint_ = _number(history["fingerprint"], 0)
    made._report(training)
    made.training_ = None
    if header["training"]:
        kind = np.dtype(made.dtype)
        model_file.unpack_learning(training, tensors, len(labels), kind)
        made.training_ = training
    return made


def _encoder(
    made: SequenceEstimator, header: model_file.Header, tensors: model_file.Tensors
) -> Encoder:
    labels, names = _strings(header["labels"]), _strings(header["columns"])
    templates = parse_templates(_strings(header["templates"]))
    encoder = made._encoder(templates, tuple(names), tuple(labels), _number(header["width"], -1))
    for column in encoder.vocabularies:
        values = encode.unpacked_strings(tensors[f"values.{column}"])
        encoder.learn_values(column, values)
        if len(encoder.vocabularies[column]) != len(values):
            raise BadModel("found a column value twice")
    if "attributes" in tensors:
        encoder.learn_attributes(encode.unpacked_strings(tensors["attributes"]))
    if [view.checksum() for view in encoder.views.values()] != header["base features"]:
        raise BadModel(
            "its base features come out otherwise here, perhaps because another version of "
            "Python knows other characters"
        )
    return encoder


def _strings(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise BadModel(f"found {str(value)[:60]!r}, expected a list of strings")
    if len(set(value)) < len(value):
        raise BadModel("found a name twice")
    return value


def _number(value: Any, least: int) -> int:
    if type(value) is not int or value < least:
        raise BadModel(f"found {str(value)[:60]!r}, expected a number from {least} up")
    return value
