"""Debian's Chromium, driven by Playwright, and axe-core: ``make build/browser/ready``."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
AXE = ROOT / "build" / "browser" / "node_modules" / "axe-core" / "axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def why_none():
    """Why there is no browser to test with; None if there is one."""
    try:
        import playwright  # noqa: F401
    except ModuleNotFoundError:
        return "needs playwright: make build/browser/ready"
    if executable() is None:
        return "needs Debian's Chromium: apt-get install chromium"
    return None


def executable():
    return shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def browser():
    """A headless browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tool:
        launched = tool.chromium.launch(executable_path=executable(), args=["--no-sandbox"])
        try:
            yield launched
        finally:
            launched.close()


def opened(context, address):
    """A page on which everything has been loaded; its errors are failures."""
    page = context.new_page()
    page.errors = []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("console", lambda said: page.errors.append(said.text) if said.type == "error" else None)
    page.goto(address)
    settled(page)
    return page


def settled(page):
    """Wait until nothing is asked any more."""
    page.wait_for_timeout(100)  # for what is asked a moment after the last key
    page.wait_for_selector("html[data-asking='0']", state="attached", timeout=60_000)


def violations(page):
    """What axe-core finds wrong with a page."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate(f"axe.run(document, {{runOnly: {TAGS}}})")
    return [
        (each["id"], [node["target"] for node in each["nodes"]][:3]) for each in found["violations"]
    ]
