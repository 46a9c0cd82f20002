"""The page of ``laso serve`` in a real browser: type, step, pin, forbid, teach, undo, export ..."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from laso.data import load_bundled, write_columns
from laso.serve.inputs import Example
from laso.serve.server import PageServer
from tests.browser import AXE, browser, opened, settled, violations, why_none
from tests.workbenches import PLAIN, TAGS, TEXTS, WORDS, workbench

pytest.importorskip("starlette", reason="needs laso[serve]")
pytestmark = pytest.mark.skipif(why_none() is not None, reason=why_none() or "")


def expect(locator):
    """What Playwright expects of a part of the page, and waits for."""
    from playwright.sync_api import expect

    return expect(locator)


@pytest.fixture(scope="module")
def chromium():
    with browser() as launched:
        yield launched


@pytest.fixture
def serve(request):
    """Starts servers, and ends them."""
    servers = []

    def start(bench, **how):
        servers.append(PageServer(bench, **how))
        servers[-1].start()
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def page(chromium, serve):
    """The page of a tagger, on which some sentences of files are open."""
    examples = [Example(x, x, y) for x, y in zip(WORDS[:8], TAGS[:8], strict=True)]
    server = serve(workbench("tagger", examples=examples))
    context = chromium.new_context(accept_downloads=True)
    yield opened(context, server.address)
    context.close()


def look_at(page, text):
    page.fill("#text", text)
    page.click("text=Look")
    settled(page)


def shown(page, part="#answer"):
    return page.inner_text(part)


def labels(page, part="#answer"):
    return page.eval_on_selector_all(
        f"{part} .span", "all => all.map(s => [s.dataset.label, +s.dataset.start, +s.dataset.end])"
    )


def test_the_token_leaves_the_address_bar(page):
    assert "token" not in page.url
    assert page.errors == []


def test_type_and_see_the_answer_with_its_probabilities(page):
    look_at(page, PLAIN)
    assert labels(page)
    assert "probability" in shown(page, "#sure")
    titles = page.eval_on_selector_all("#answer .span", "all => all.map(s => s.title)")
    assert all("probability" in title for title in titles)
    look_at(page, f"{PLAIN}\nThe man can see .")
    assert shown(page, "#sentences") == "of 2"
    page.fill("#sentence", "2")
    page.keyboard.press("Tab")
    settled(page)
    assert "The" in shown(page)
    assert "fish" not in shown(page)
    assert page.errors == []


def test_a_file_is_opened(page, tmp_path):
    path = tmp_path / "new.txt"
    path.write_text("The O\nman O\nsees O\n. O\n", encoding="utf-8")
    page.set_input_files("#open", path)
    settled(page)
    assert "man" in shown(page)
    assert page.is_visible("#gold")


def test_alternatives_are_switched_between(page):
    look_at(page, PLAIN)
    before = labels(page)
    page.click("summary:has-text('Alternatives')")
    page.locator("#alternatives input").nth(1).check()
    assert labels(page) != before
    page.locator("#alternatives input").nth(0).check()
    assert labels(page) == before


def test_step_through_the_search_by_keys_and_slider(page):
    look_at(page, PLAIN)
    last = shown(page, "#round-shown")
    page.focus("#picture")
    page.keyboard.press("ArrowLeft")
    assert shown(page, "#round-shown") != last
    later = page.locator("#picture [data-round].later")
    assert later.count() == 1
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert "2nd best" in focused
    page.keyboard.press("Enter")
    page.wait_for_selector("#step svg")
    assert page.locator("#step svg").count() == 2
    page.fill("#round", "0")
    assert shown(page, "#round-shown").startswith("1 of")
    assert page.errors == []


def test_a_click_explains_a_step_beside_its_runner_up(page):
    look_at(page, PLAIN)
    page.locator("#picture [data-node]").first.click()
    page.wait_for_selector("#step svg")
    assert "chosen" in shown(page, "#step")
    assert "runner-up" in shown(page, "#step")
    assert "score of the step" in shown(page, "#step")


def test_the_round_where_the_gold_path_fell_off_is_flagged(chromium, serve):
    _, test = load_bundled()
    examples = [Example([t[0] for t in s], [t[0] for t in s], [t[2] for t in s]) for s in test]
    bench = workbench("tagger", examples=examples)
    number = next(i for i in range(99) if bench.look({"item": i})["search"]["fell"])
    page = opened(chromium.new_context(), serve(bench).address)
    page.select_option("#examples", str(number))
    settled(page)
    assert "no longer in the queue" in shown(page, "#verdict")
    expect(page.locator("#verdict")).to_contain_text("beam of", timeout=60_000)
    assert page.locator("text=dropped here").count() == 1
    page.click("#fell")
    assert page.errors == []


def pin(page, start, end, label, button="Pin"):
    page.select_option("#start", str(start))
    page.select_option("#end", str(end))
    page.fill("#label", label)
    page.click(f"#{button.lower()}")
    settled(page)


def test_pin_forbid_widen_and_reset(page):
    look_at(page, PLAIN)
    before = labels(page)
    pin(page, 1, 2, "VP")
    assert ["VP", 1, 3] in labels(page)
    assert "pinned old man: VP" in shown(page, "#parts")
    page.click("#parts button")
    settled(page)
    assert labels(page) == before
    pin(page, 0, 0, "NP", "Forbid")
    assert not any(label == "NP" and start == 0 for label, start, _ in labels(page))
    page.fill("#width", "1")
    settled(page)
    page.wait_for_timeout(200)
    settled(page)
    assert page.locator("#picture [data-round='0'] .node").count() >= 1
    page.click("#reset")
    settled(page)
    assert labels(page) == before
    page.locator("#bias").evaluate("b => { b.value = 20; b.dispatchEvent(new Event('input')) }")
    page.wait_for_timeout(200)
    settled(page)
    assert labels(page) != before
    assert page.errors == []


def test_a_part_of_the_answer_fills_the_form(page):
    look_at(page, PLAIN)
    label, start, end = labels(page)[0]
    page.locator("#answer .span").first.click()
    form = [page.input_value(f"#{name}") for name in ("start", "end", "label")]
    assert form == [str(start), str(end - 1), label]


def test_teach_undo_and_download(page):
    look_at(page, PLAIN)
    before = labels(page)
    pin(page, 3, 4, "VP")
    target = labels(page)
    assert target != before
    for _ in range(6):
        page.click("#learn")
        page.wait_for_selector("#lesson table")
        settled(page)
        if "is the one that was taught" in shown(page, "#lesson"):
            break
    page.click("#reset")
    settled(page)
    assert labels(page) == target
    rows = page.locator("#lesson tbody tr").count()
    assert rows > 3
    with page.expect_download() as download:
        page.click("text=Download the corrections")
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert text.startswith("The\tB-NP\n")
    with page.expect_download() as download:
        page.click("text=Download the model")
    assert Path(download.value.path()).stat().st_size > 1000
    while page.is_enabled("#undo"):
        page.click("#undo")
        settled(page)
    assert labels(page) == before
    assert page.errors == []


def test_learn_the_gold_output(page):
    assert page.is_visible("#learn-gold")
    for strategy in ("early", "max_violation"):
        page.select_option("#strategy", strategy)
        page.click("#learn-gold")
        page.wait_for_selector("#lesson p")
        settled(page)
    assert "Undo (2)" in shown(page, "#undo")


def test_compare_two_settings(page):
    page.fill("#second-width", "1")
    page.click("#compare")
    expect(page.locator("#compared")).not_to_be_empty()
    assert "of 8 differ" in shown(page, "#compared")


def test_export_is_self_contained(page, chromium):
    look_at(page, PLAIN)
    with page.expect_download() as download:
        page.click("#as-html")
    html = Path(download.value.path()).read_text(encoding="utf-8")
    assert not re.findall(r"(?:src|href)=", html)
    alone = chromium.new_page()
    alone.set_content(html)
    assert alone.locator("svg .node").count() > 10
    with page.expect_download() as download:
        page.click("#as-svg")
    ElementTree.parse(download.value.path())


def test_two_tabs_at_once(page):
    other = opened(page.context, page.url)
    for each in (page, other):
        look_at(each, PLAIN)
    before = labels(page)
    pin(other, 3, 4, "VP")
    for _ in range(6):
        other.click("#learn")
        settled(other)
    target = labels(other)
    look_at(page, PLAIN)
    assert labels(page) == target != before
    assert page.is_enabled("#undo")
    assert page.errors == other.errors == []


def test_a_sentence_of_500_words(page):
    look_at(page, " ".join((PLAIN.split() * 60)[:500]))
    expect(page.locator("#round-shown")).to_contain_text("of 500", timeout=60_000)
    assert page.locator("#picture [data-round]").count() <= 24
    page.fill("#round", "10")
    page.wait_for_selector("#picture [data-round='10']", timeout=60_000)
    assert page.errors == []


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_model_of_every_task_without_violations_of_accessibility(chromium, serve, name, scheme):
    if not AXE.exists():
        pytest.skip("needs axe-core from npm: make build/browser/ready")
    context = chromium.new_context(color_scheme=scheme, viewport={"width": 400, "height": 900})
    page = opened(context, serve(workbench(name)).address)
    look_at(page, TEXTS[name])
    assert page.locator("#picture .node").count() > 2
    page.locator("#picture .node").first.click()
    page.wait_for_selector("#step svg")
    page.click("summary:has-text('Alternatives')")
    page.click("#learn")
    settled(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert violations(page) == []
    assert page.errors == []
    context.close()


def test_trees_and_clusters_are_steered_too(chromium, serve):
    page = opened(chromium.new_context(), serve(workbench("parser")).address)
    look_at(page, TEXTS["parser"])
    page.locator("#answer .arc text").first.click()
    page.select_option("#head", "3")
    page.fill("#label", "")
    page.click("#pin")
    settled(page)
    assert page.get_attribute("#answer .arc[data-start='0']", "data-head") == "3"
    page = opened(chromium.new_context(), serve(workbench("clusterer")).address)
    look_at(page, TEXTS["clusterer"])
    page.select_option("#start", "2")
    page.select_option("#other", "0")
    page.click("#pin")
    settled(page)
    assert {label for label, _, _ in labels(page)} == {"1"}


@pytest.mark.parametrize(
    "text", ["", "   ", "x" * 5_000_000, '{"tokens": 3}', "<script>alert(1)</script>"]
)
def test_bad_input_is_answered(page, text):
    page.evaluate("text => { document.getElementById('text').value = text }", text)
    page.click("text=Look")
    settled(page)
    if text.startswith("<"):
        assert "script" in shown(page)
    else:
        assert "found" in shown(page, "#problem")
    look_at(page, PLAIN)
    assert shown(page, "#problem") == ""
    assert labels(page)


def test_the_server_is_killed_and_restarted(page, serve, chromium):
    bench = workbench("tagger")
    first = serve(bench)
    page = opened(chromium.new_context(), first.address)
    look_at(page, PLAIN)
    before = labels(page)
    first.close()
    page.click("text=Look")
    expect(page.locator("#problem")).not_to_be_empty()
    assert "Start laso serve again" in shown(page, "#problem")
    assert labels(page) == before
    second = serve(bench, port=first.port)
    page.click("text=Look")  # the token of the first server is not that of the second
    expect(page.locator("#problem")).to_contain_text("token", timeout=60_000)
    page.goto(second.address)
    settled(page)
    look_at(page, PLAIN)
    assert labels(page) == before


def address_of(process):
    for line in process.stderr if process.stderr else process.stdout:
        if line.startswith("open http"):
            return line.split()[1]
    raise AssertionError("no address")


def test_watch_a_training(chromium, tmp_path):
    train, _ = load_bundled()
    write_columns(tmp_path / "train.txt", train[:200])
    command = [sys.executable, "-m", "laso", "train", "train.txt", "--epochs", "4"]
    process = subprocess.Popen(
        [*command, "--watch", "--no-open"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )
    try:
        page = opened(chromium.new_context(), address_of(process))
        expect(page.locator("#training-text")).to_contain_text("trained for", timeout=120_000)
        rows = page.locator("#epochs tr")
        assert rows.count() == 4
        page.click("#training-part summary")
        page.select_option("#epoch", "0")
        assert page.locator("#epoch-picture .node").count() > 10
        settled(page)
        assert labels(page)
    finally:
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    assert "train.laso" in out
    assert (tmp_path / "train.laso").exists()
