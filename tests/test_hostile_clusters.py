"""Files of clusterers that someone has changed: each is refused, or answers as a model does."""

from typing import Any

import numpy as np
import pytest

from laso import BadModel, Clusterer, load_model
from laso.features.encoder import pack_strings
from laso.tasks.clustering import ClusteringTask
from tests.test_hostile_files import refused, rewritten, with_part

ITEMS = [[{"kind": "a", "text": "b c"}, {"kind": "b", "text": "b d"}]]
KINDS = {"position": "number", "kind": "category", "text": "text"}


@pytest.fixture(scope="module")
def clusterer(tmp_path_factory):
    path = tmp_path_factory.mktemp("clusters") / "clusterer"
    fields = {"kind": "category", "text": "text"}
    made = Clusterer(epochs=2, fields=fields, different="kind").fit(ITEMS * 3, [[0, 0]] * 3)
    made.save(path, training=True)
    return path


def state(**changed: Any) -> Any:
    return ("state",), {"fields": KINDS, "outcomes": {}, "functions": [], **changed}


LEARNED = [
    (("labels",), ["join"], r"found \['join'\], expected join, new"),
    (("labels",), ["new", "join"], "expected join, new"),
    (("labels",), 3, "found 3, expected join, new"),
    (("templates",), 3, "found 3, expected a list of strings"),
    (("templates",), [3], "expected a list of strings"),
    (("templates",), ["what[item]"], "found no field 'what', expected position, kind, text"),
    (("templates",), ["kind.words[any]"], "found the comparison 'words' of a field of the kind"),
    (("templates",), ["kind[item"], r"expected '\]'"),
    (("templates",), ["kind[item]"] * 6000, "found a name twice"),
    (("templates",), [f"kind[item]|{'x' * 50_000}[item]"], "found no field|expected"),
    (*state(fields=3), "found the fields 3, expected a table of kinds"),
    (*state(fields={**KINDS, "kind": 3}), "expected a table of kinds"),
    (*state(fields={**KINDS, "kind": "odd"}), "found the kind 'odd' of 'kind', expected text"),
    (*state(fields={**KINDS, "text": "number"}), "comparison 'words' of a field of the kind num"),
    (*state(fields={"kind": "category"}), "found no field"),
    (*state(outcomes=[]), r"found the outcomes \[\], expected lists of text"),
    (*state(outcomes={"f": 3}), "expected a list of strings"),
    (*state(outcomes={"f": ["x"] * 17}), "found a name twice|found the outcomes"),
    (*state(outcomes={"f": ["x"]}), "a function that files never have"),
    (*state(functions=3), "expected a list of strings"),
    (*state(functions=["system"]), "found 'system', expected candidates, blocking"),
    (*state(functions=["candidates"]), "a model with candidates by a function, .*candidates="),
    (("state",), 3, "found the state 3, expected fields, outcomes, functions"),
    (("state",), {"fields": KINDS}, "expected fields, outcomes, functions"),
]


@pytest.mark.parametrize(("places", "value", "match"), LEARNED, ids=lambda v: str(v)[:40])
def test_what_was_learned_is_checked(tmp_path, clusterer, places, value, match):
    change = with_part("learned", *places, value=value)
    refused(rewritten(tmp_path / "model", change, clusterer), match)


SETTINGS: list[tuple[str, Any, str]] = [
    ("window", 0, "window must be from 1"),
    ("window", 10**12, "window must be from 1"),
    ("preset", "other", "preset must be one of"),
    (
        "preset",
        "coreference",
        "found a Clusterer for the task 'clustering', expected 'coreference'",
    ),
    ("fields", 3, "fields must be a list or a mapping"),
    ("different", 3, "different must be the name of a field"),
    ("blocking", "kind", "blocking must be a list of fields"),
    ("blocking", [3], "blocking must be a list of fields"),
    ("features", 3, "cannot be loaded"),
    ("comparisons", {"f": "g"}, "cannot be loaded"),
    ("queue", {"value": "exact()"}, "cannot search exactly"),
]


@pytest.mark.parametrize(("name", "value", "match"), SETTINGS, ids=lambda v: str(v)[:40])
def test_settings_are_checked(tmp_path, clusterer, name, value, match):
    change = with_part("parameters", name, value=value)
    refused(rewritten(tmp_path / "model", change, clusterer), match)


@pytest.mark.parametrize(
    "values",
    [np.zeros(0, np.uint8), np.frombuffer(b"\xff\xfe", np.uint8), np.zeros(3), None],
    ids=["empty", "no text", "numbers", "none"],
)
def test_values_are_text(tmp_path, clusterer, values):
    def change(header, tensors):
        tensors["task.values.0"] = values
        if values is None:
            del tensors["task.values.0"]

    refused(rewritten(tmp_path / "model", change, clusterer), "cannot be loaded")


def test_more_values_than_weights_do_no_harm(tmp_path, clusterer):
    def change(header, tensors):
        tensors["task.values.0"] = pack_strings(["b", "a", *map(str, range(50_000))])

    model = load_model(rewritten(tmp_path / "model", change, clusterer))
    assert len(model.predict(ITEMS)[0]) == 2


def test_no_file_names_functions(tmp_path, clusterer):
    """What belongs to a run is the reader's own, whatever the file says."""
    change = with_part("parameters", "candidates", value="os.system")
    model: Any = load_model(rewritten(tmp_path / "model", change, clusterer))
    assert model.candidates is None
    assert model.predict(ITEMS) == load_model(clusterer).predict(ITEMS)


def test_functions_come_from_the_task_beside_the_file(tmp_path):
    def first(item: Any) -> str:
        return str(item["text"][0])

    def lists(items: Any) -> list[list[int]]:
        return [list(range(i)) for i in range(len(items))]

    for how in ({"blocking": [first]}, {"candidates": lists}):
        made = Clusterer(epochs=1, **how).fit(ITEMS * 2, [[0, 0]] * 2)
        made.save(tmp_path / "model")
        with pytest.raises(BadModel, match=rf"files never have; .*{min(how)}=\.\.\."):
            load_model(tmp_path / "model")
        again = load_model(tmp_path / "model", task=ClusteringTask(**how))
        assert again.predict(ITEMS) == made.predict(ITEMS)


def test_a_task_of_another_kind_beside_the_file(clusterer):
    from laso.examples.segmentation import Segmentation

    with pytest.raises(BadModel):
        load_model(clusterer, task=Segmentation())
