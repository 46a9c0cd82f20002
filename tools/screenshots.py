"""Take the pictures of the page of ``laso serve`` that the documents show.

make screenshots
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from laso import Parser
from laso.cli.serve import train_bundled
from laso.serve.server import PageServer
from laso.serve.workbench import Workbench
from tests.browser import browser, opened, settled
from tests.workbenches import TREES

FOLDER = Path(__file__).parents[1] / "docs" / "how-to"
SIZE = {"width": 1100, "height": 800}
PARSED = "the DT\ndog NN\nsees VB\nthe DT\ncats NN\n"


def main() -> None:
    """Train, open the page, take the pictures."""
    bench = Workbench()
    train_bundled(bench)
    number = next(i for i in range(99) if bench.look({"item": i})["search"]["fell"])
    servers = [
        PageServer(bench),
        PageServer(Workbench(Parser(epochs=5).fit(*zip(*TREES, strict=True)))),
    ]
    for server in servers:
        server.start()
    with browser() as chromium:
        page = opened(chromium.new_context(viewport=SIZE), servers[0].address)
        page.select_option("#examples", str(number))
        settled(page)
        page.wait_for_timeout(1500)  # the width that keeps the gold path is found by trying
        take(page, "Answer", "page-answer")
        page.locator("#picture [data-node]").nth(2).click()
        settled(page)
        take(page, "Search", "page-search")
        page.click("#learn-gold")
        settled(page)
        take(page, "Teach", "page-teach")
        small = chromium.new_context(color_scheme="dark", viewport={"width": 400, "height": 800})
        page = opened(small, servers[1].address)
        page.fill("#text", PARSED)
        page.click("text=Look")
        settled(page)
        page.screenshot(path=FOLDER / "page-tree.png")
    for server in servers:
        server.close()


def take(page: Any, title: str, name: str) -> None:
    """Take a picture that begins with the part of the page under this title."""
    page.locator(f"h2:has-text('{title}')").evaluate("h => h.scrollIntoView()")
    page.wait_for_timeout(200)
    page.screenshot(path=FOLDER / f"{name}.png")


if __name__ == "__main__":
    main()
