"""The page's server: who may ask, what is answered for each task, lessons, files."""

import http.client
import json
import threading
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs laso[serve]")
pytest.importorskip("uvicorn", reason="needs laso[serve]")

from laso import Tagger, load_model
from laso.data import load_bundled
from laso.serve import app as app_module
from laso.serve.app import MOST_BYTES
from laso.serve.inputs import Example, read_text
from laso.serve.server import PageServer
from laso.serve.steering import Steering
from laso.serve.workbench import VERSION, NotReady, Workbench
from tests.workbenches import PINS, PLAIN, SMALL, TAGS, TEXTS, WORDS, answers, workbench


class Client:
    def __init__(self, server):
        self.server = server
        self.headers = {"Authorization": f"Bearer {server.token}"}

    def send(self, method, path, body=None, headers=None, host=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        connection.putrequest(method, path, skip_host=True)
        connection.putheader("Host", host or f"127.0.0.1:{self.server.port}")
        sent = self.headers if headers is None else headers
        for name, value in sent.items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
            if "Content-Type" not in sent:
                connection.putheader("Content-Type", "application/json")
        connection.endheaders(body)
        reply = connection.getresponse()
        data = reply.read()
        connection.close()
        return reply.status, {k.lower(): v for k, v in reply.getheaders()}, data

    def post(self, path, content, status=200):
        code, _, data = self.send("POST", path, json.dumps(content).encode())
        answer = json.loads(data)
        assert (code, answer["version"]) == (status, VERSION), answer
        return answer


@pytest.fixture(scope="module")
def client():
    examples = [Example(x, x, y) for x, y in zip(WORDS[:6], TAGS[:6], strict=True)]
    server = PageServer(workbench("tagger", examples=examples))
    server.start()
    yield Client(server)
    server.close()


# --------------------------------------------------------------------------- who may ask


def test_the_token_goes_into_a_cookie_and_out_of_the_address(client):
    token = client.server.token
    assert client.server.address.endswith(f"/?token={token}")
    status, headers, _ = client.send("GET", f"/?token={token}", headers={})
    assert (status, headers["location"]) == (303, "/")
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    known = {"Cookie": cookie.partition(";")[0]}
    assert client.send("GET", "/", headers=known)[0] == 200


@pytest.mark.parametrize(
    ("headers", "host", "status"),
    [
        ({}, None, 403),
        ({"Authorization": "Bearer wrong"}, None, 403),
        ({"Authorization": "Basic x"}, None, 403),
        ({"Cookie": "laso-1=x"}, None, 403),
        (None, "example.org", 421),
        (None, "127.0.0.1:1", 421),
    ],
)
def test_others_get_no_answer(client, headers, host, status):
    code, _, data = client.send("GET", "/about", headers=headers, host=host)
    assert code == status
    assert "expected the address that laso serve printed" in json.loads(data)["error"]


def test_other_pages_get_no_answer(client):
    for origin in ("http://example.org", "null", "https://127.0.0.1"):
        sent = {**client.headers, "Origin": origin}
        assert client.send("POST", "/predict", b"{}", headers=sent)[0] == 403
    sent = {**client.headers, "Origin": f"http://127.0.0.1:{client.server.port}"}
    assert client.send("GET", "/about", headers=sent)[0] == 200


def test_requests_have_bounds(client):
    too_long = b" " * (MOST_BYTES + 1)
    assert client.send("POST", "/look", too_long)[0] == 413
    sent = {**client.headers, "Content-Type": "text/plain"}
    assert client.send("POST", "/look", b"{}", headers=sent)[0] == 415
    for body in (b"{", b"[]", b"\xff", b"[" * 100_000):
        status, _, data = client.send("POST", "/look", body)
        assert status == 400
        assert "found no JSON" in json.loads(data)["error"]


def test_no_file_of_the_machine_is_served(client):
    for path in ("/../app.py", "/%2e%2e/app.py", "/etc/passwd", "//etc/passwd", "/app.py"):
        assert client.send("GET", path)[0] == 404
    assert client.send("GET", "/look")[0] == 405


def test_the_page_is_small_and_loads_nothing_from_elsewhere(client):
    files = app_module.page_files()
    assert sum(len(data) for data, _ in files.values()) < 150_000
    for path, (data, kind) in files.items():
        status, headers, got = client.send("GET", path)
        assert (status, got) == (200, data)
        assert headers["content-type"].startswith(kind)
        assert "default-src 'none'" in headers["content-security-policy"]
        assert b"http://" not in data.replace(b"http://www.w3.org/2000/svg", b"")
        assert b"https://" not in data


def test_the_server_listens_on_the_loopback_only(client):
    assert client.server._socket.getsockname()[0] == "127.0.0.1"


# --------------------------------------------------------------------------- answers over HTTP


def test_predictions_are_those_of_the_model(client):
    model = workbench("tagger").model
    told = client.post("/predict", {"inputs": WORDS[:3]})
    assert told["outputs"] == model.predict(WORDS[:3])
    told = client.post("/predict", {"text": f"{PLAIN}\n{PLAIN}\n"})
    assert told["outputs"] == model.predict([PLAIN.split()] * 2)
    wrong: dict[str, Any]
    for wrong in (
        {},
        {"inputs": []},
        {"inputs": "x"},
        {"inputs": [1]},
        {"text": ""},
        {"inputs": None},
    ):
        assert client.post("/predict", wrong, status=400)["error"]


def test_one_line_is_words_whatever_their_number(client):
    for n in (1, 2, 3):
        shown = client.post("/look", {"text": " ".join(PLAIN.split()[:n])})
        assert shown["words"] == PLAIN.split()[:n]
        assert shown["gold"] is None


def test_what_is_wrong_is_said(client):
    for path, content, part in [
        ("/look", {}, "expected a text"),
        ("/look", {"text": " "}, "expected a text"),
        ("/look", {"item": 99}, "expected below 6"),
        ("/look", {"item": "x"}, "expected below 6"),
        ("/look", {"text": PLAIN, "sentence": 3}, "expected below 1"),
        ("/look", {"text": PLAIN, "round": "x"}, ""),
        ("/look", {"text": PLAIN, "steering": {"width": 0}}, "expected from 1"),
        ("/look", {"text": PLAIN, "steering": {"wide": 1}}, "expected width, bias"),
        ("/look", {"text": PLAIN, "steering": {"bias": {"X": 1}}}, "found a bias for"),
        ("/look", {"text": PLAIN, "steering": {"bias": {"O": "x"}}}, "expected a number"),
        ("/look", {"text": PLAIN, "steering": {"known": [{"start": 99}]}}, "expected a start"),
        ("/look", {"text": PLAIN, "steering": {"known": [{"start": 0}]}}, "expected a label"),
        ("/explain", {"text": PLAIN, "path": []}, "expected at least one"),
        ("/explain", {"text": PLAIN, "path": [[9, 999]]}, "expected one that is possible"),
        ("/explain", {"text": PLAIN, "path": "x"}, "expected pairs"),
        ("/teach", {"text": PLAIN, "strategy": "x"}, "found the strategy"),
        ("/teach", {"text": PLAIN, "output": ["O"]}, ""),
        ("/undo", {}, "no lesson to undo"),
        ("/save", {"name": "x.laso"}, "--save-in"),
    ]:
        assert part in client.post(path, content, status=400)["error"], (path, content)


def test_eight_clients_at_once_while_one_teaches(client):
    expected = client.post("/predict", {"inputs": WORDS[:1]})["outputs"]
    failures = []

    def ask():
        for _ in range(20):
            told = client.post("/predict", {"inputs": WORDS[:1]})["outputs"]
            if len(told[0]) != len(expected[0]):
                failures.append(told)

    askers = [threading.Thread(target=ask) for _ in range(8)]
    for each in askers:
        each.start()
    for _ in range(3):
        client.post("/teach", {"item": 0, "output": TAGS[0]})
    for each in askers:
        each.join()
    assert not failures
    for _ in range(3):
        client.post("/undo", {})
    assert client.post("/predict", {"inputs": WORDS[:1]})["outputs"] == expected


def test_the_model_and_the_corrections_are_downloaded(client, tmp_path):
    client.post("/teach", {"item": 1, "output": TAGS[1]})
    status, headers, data = client.send("GET", "/model.laso")
    assert status == 200
    assert "attachment" in headers["content-disposition"]
    path = tmp_path / "m.laso"
    path.write_bytes(data)
    loaded = load_model(path)
    assert loaded.predict(WORDS[:2]) == client.post("/predict", {"inputs": WORDS[:2]})["outputs"]
    assert loaded.training_ is not None
    status, _, data = client.send("GET", "/corrections")
    assert status == 200
    assert data
    client.post("/undo", {})


# --------------------------------------------------------------------------- every task


@pytest.fixture(params=TEXTS)
def name(request):
    return request.param


def test_a_search_of_every_task_is_shown(name):
    bench = workbench(name)
    shown = bench.look(answers(name))
    (example,) = read_text(bench.model, TEXTS[name].encode(), task=bench.task)
    assert shown["output"] == bench.model.predict([example.x])[0]
    assert shown["search"]["rounds"][-1]["kept"]
    assert shown["search"]["words"] == example.words
    assert shown["picture"].startswith("<svg")
    assert shown["answer"]
    assert next(y["output"] for y in shown["alternatives"]) == shown["output"]
    for word in example.words:
        assert word in shown["answer"] or name == "own"
    predicted = set(shown["search"]["predicted"])
    kept = {n["node"] for r in shown["search"]["rounds"] for n in r["kept"]}
    assert predicted <= kept
    json.dumps(shown, default=str)


def test_what_is_pinned_is_in_the_answer_of_every_task(name):
    bench, pin = workbench(name), PINS[name]
    before = bench.look(answers(name))
    pinned = bench.look({**answers(name), "steering": {"known": [pin]}})
    assert pinned["output"] != before["output"]
    start = pin["start"]
    here = pinned["output"][start]
    if "label" in pin and "end" in pin:
        expected = {"joint": ("NN", "I-NP"), "own": "th"}.get(name, "B-VP")
        assert here == expected
    elif "head" in pin:
        assert here[0] == pin["head"]
    else:
        assert here == pinned["output"][pin["other"]]


def test_what_is_forbidden_is_not_in_the_answer_of_every_task(name):
    bench = workbench(name)
    before = bench.look(answers(name))["output"]
    parts: dict[str, dict[str, Any]] = {
        "parser": {"start": 0, "head": 2, "label": None},
        "clusterer": {"start": 1, "other": 0},
        "coreference": {"start": 2, "other": 0},
        "own": {"start": 0, "end": 1, "label": "word"},
        "joint": {"start": 0, "end": 1, "label": "DT/B-NP"},
    }
    part = parts.get(name, {"start": 0, "end": 1, "label": "NP"})
    request = {**answers(name), "steering": {"banned": [part]}}
    if name == "own":  # it has no other name
        with pytest.raises(ValueError, match="fits what is pinned and forbidden"):
            bench.look(request)
        return
    after = bench.look(request)["output"]
    assert after != before
    if name in ("clusterer", "coreference"):
        assert after[part["start"]] != after[0]


def test_a_step_of_every_task_is_explained_beside_its_runner_up(name):
    bench = workbench(name)
    rounds = bench.look(answers(name))["search"]["rounds"]
    nodes = {n["node"]: n for r in rounds for n in (*r["kept"], *r["pruned"])}
    last = rounds[-1]["kept"][0]
    path: list[list[int]] = []
    node = last
    while node is not None:
        path.insert(0, node["operator"])
        node = nodes.get(node["parent"])
    told = bench.explain({**answers(name), "path": path})
    decision = told["decision"]
    assert decision["score"] == pytest.approx(last["added"], abs=1e-4)
    assert len(told["pictures"]) == (1 if decision["runner_up"] is None else 2)
    whole = bench.model.explain(
        bench.example(answers(name))[0].x, features=10**6, path=[tuple(step) for step in path]
    )["decisions"][0]
    for step in (whole, whole["runner_up"] or whole):
        total = sum(each["weight"] * each["value"] for each in step["features"])
        assert total == pytest.approx(step["score"], abs=1e-3)


def test_every_task_is_taught_and_forgets_by_undo(name):
    bench = workbench(name)
    before = bench.look(answers(name))
    request = {**answers(name), "steering": {"known": [PINS[name]]}}
    target = bench.look(request)["output"]
    for _ in range(12):
        told = bench.teach(request | {"output": target})
        if told["learned"]:
            break
    assert told["learned"]
    assert told["changed"]
    assert told["weights"]
    assert all(each["before"] != each["after"] for each in told["weights"])
    assert bench.look(answers(name))["output"] == target
    corrections = bench.corrections()
    again = read_text(bench.model, corrections.encode(), task=bench.task)
    assert len(again) == told["lessons"] == len(bench.lessons)
    if name not in ("own",):
        assert again[0].words == before["words"]
    while bench.lessons:
        bench.undo({})
    after = bench.look(answers(name))
    assert (after["output"], after["search"]["score"]) == (
        before["output"],
        before["search"]["score"],
    )


@pytest.mark.parametrize("strategy", ["restart", "early", "delayed", "standard", "max_violation"])
def test_every_strategy_teaches(strategy):
    bench = workbench("tagger")
    gold = ["B-NP", "I-NP", "I-NP", "B-VP", "I-VP", "B-NP", "I-NP", "B-PP", "B-NP"]
    request = {"text": PLAIN, "output": gold, "strategy": strategy}
    assert bench.teach(request)["changed"]
    assert repr(bench.model.strategy) == "restart"  # of later trainings, as it was


def test_a_model_saved_without_its_training_is_taught_as_one_with_it(tmp_path):
    whole = Tagger(epochs=2).fit(WORDS[:40], TAGS[:40])
    whole.save(tmp_path / "m.laso")
    bare = load_model(tmp_path / "m.laso")
    with pytest.raises(ValueError, match="the state of the training is not there"):
        bare.partial_fit(WORDS[40:41], TAGS[40:41])
    bare.reopen()
    for model in (whole, bare):
        model.partial_fit(WORDS[40:42], TAGS[40:42])
    assert bare.predict(WORDS) == whole.predict(WORDS)


# --------------------------------------------------------------------------- gold, files, exports


def test_where_the_gold_path_fell_off_and_what_would_have_kept_it():
    _, test = load_bundled()
    bench = workbench("tagger")
    bench.examples = [
        Example([t[0] for t in s], [t[0] for t in s], [t[2] for t in s]) for s in test
    ]
    falls = []
    for i in range(len(test)):
        search = bench.look({"item": i})["search"]
        assert search["right"] == (
            bench.model.predict_single(bench.examples[i].x) == bench.examples[i].gold
        )
        if search["fell"]:
            falls.append((i, search["fell"]))
        if len(falls) == 5:
            break
    assert falls
    for i, fell in falls:
        told = bench.rescue({"item": i, "round": fell["round"]})
        assert told["width"] >= fell["rank"]
        kept = bench.look({"item": i, "steering": {"width": told["width"]}})["search"]
        assert kept["right"] == told["right"]
        assert kept["fell"] is None or kept["fell"]["round"] > fell["round"]


def test_corrections_come_in_the_format_of_the_sentences():
    bench = workbench("tagger")
    lesson = ["B-NP", "I-NP", "O"]
    for text, expected in [
        ("the\tB-VP\ncat\tO\n.\tO\n", "the\tB-NP\ncat\tI-NP\n.\tO\n\n"),
        ("the O\ncat O\n. O\n", "the B-NP\ncat I-NP\n. O\n\n"),
        ("the cat .", "the\tB-NP\ncat\tI-NP\n.\tO\n\n"),
        (
            '{"tokens": ["the", "cat", "."]}\n',
            '{"tokens": ["the", "cat", "."], "labels": ["B-NP", "I-NP", "O"]}\n',
        ),
    ]:
        bench.teach({"text": text, "output": lesson})
        assert bench.corrections() == expected, text
        bench.undo({})


def test_models_are_saved_under_new_names_in_one_folder(tmp_path):
    bench = workbench("tagger", folder=tmp_path)
    assert bench.save({"name": "new.laso"})["bytes"] == (tmp_path / "new.laso").stat().st_size
    for wrong in ("new.laso", "../x.laso", "/tmp/x.laso", "x.txt", "", None, 3):
        with pytest.raises(ValueError, match="expected"):
            bench.save({"name": wrong})
    assert [path.name for path in tmp_path.iterdir()] == ["new.laso"]


def test_two_settings_are_compared_by_falling_confidence():
    bench = workbench("tagger")
    bench.examples = [Example(x, x, y) for x, y in zip(WORDS, TAGS, strict=True)]
    told = bench.compare({"first": {}, "second": {"bias": {"O": 8.0}}})
    assert told["examples"] == len(WORDS)
    sure = [max(row["probabilities"]) for row in told["different"]]
    assert sure
    assert sure == sorted(sure, reverse=True)
    plain, biased = bench.model.predict(WORDS), bench.model.biased({"O": 8.0}).predict(WORDS)
    differ = {i for i, pair in enumerate(zip(plain, biased, strict=True)) if pair[0] != pair[1]}
    assert {row["number"] for row in told["different"]} == differ
    assert bench.compare({"first": {}, "second": {}})["different"] == []


def test_two_models_are_compared():
    other = Tagger(epochs=1, queue=1).fit(WORDS[:9], TAGS[:9])
    bench = workbench("tagger", other=other)
    told = bench.compare({"text": PLAIN, "other": True})
    same = bench.model.predict([PLAIN.split()]) == other.predict([PLAIN.split()])
    assert len(told["different"]) == (0 if same else 1)
    assert bench.about()["other"]


def test_steering_is_that_of_the_public_methods(name):
    bench, steering = workbench(name), {"known": [PINS[name]]}
    example, _ = bench.example(answers(name))
    parts = Steering.of(steering).parts(bench.kind, len(example.words), bench.model.task_)
    forced = {key: None if part is None else [part] for key, part in parts.items()}
    (output,) = bench.model.predict_forced([example.x], **forced)
    assert bench.look({**answers(name), "steering": steering})["output"] == output
    wide = bench.look({**answers(name), "steering": {"width": 3}})
    assert max(len(r["kept"]) for r in wide["search"]["rounds"]) <= 3 or name == "exact"


def test_what_is_shown_is_exported_alone(name):
    bench = workbench(name)
    page = bench.export(answers(name))["content"]
    assert page.startswith("<!doctype html>")
    assert "<script" not in page
    assert "<svg" in page
    svg = bench.export({**answers(name), "form": "svg"})["content"]
    assert svg.startswith("<svg")
    assert "<style>" in svg


def test_notebooks_show_models_traces_and_explanations(name):
    bench = workbench(name)
    model, x = bench.model, bench.example(answers(name))[0].x
    assert "<pre>" in model._repr_html_()
    assert "<svg" in model.trace(x, pruned=1)._repr_html_()
    assert "pruned=3" in model.trace(x)._repr_html_()
    assert "<svg" in model.explain(x)._repr_html_()
    assert "Tagger(" in Tagger()._repr_html_()


def test_the_model_is_not_there_until_it_is_trained():
    with pytest.raises(NotReady, match="still being trained"):
        Workbench().about()
    assert len(SMALL) == len(WORDS)
