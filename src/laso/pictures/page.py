"""Pictures as one self-contained page of HTML."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

from laso.pictures.marks import style
from laso.pictures.search import drawn, rounds_of
from laso.pictures.waterfall import waterfalls

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
{style}
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2em auto; padding: 0 1em; max-width: 90em;
       color: var(--ink); background: var(--paper) }}
h1 {{ font-size: 1.4em }}
p, dl {{ max-width: 46em }}
figure {{ margin: 1.5em 0; overflow-x: auto }}
dt {{ font-weight: bold }}
dd {{ margin: 0 0 .6em 0; font-family: ui-monospace, monospace }}
</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


def page(title: str, parts: Sequence[str]) -> str:
    """Return a page that needs nothing else: parts are HTML or SVG."""
    return PAGE.format(title=html.escape(title), style=style(), body="\n".join(parts))


def figure(picture: str) -> str:
    """Return a picture that scrolls where it is wider than the page."""
    return f'<figure tabindex="0" aria-label="a picture that scrolls">\n{picture}</figure>'


def paragraph(text: str | None) -> str:
    """Return a text as a paragraph of HTML; none without a text."""
    return f"<p>{html.escape(text)}</p>" if text else ""


class Trace(list[dict[str, Any]]):
    """The events of a search, and its output: a list that a notebook shows as a picture."""

    def __init__(
        self,
        events: Iterable[dict[str, Any]] = (),
        words: Sequence[str] = (),
        output: Any = None,
    ) -> None:
        super().__init__(events)
        self.output = output
        self.words = list(words)

    def _repr_html_(self) -> str:
        if not any(event["event"] == "prune" for event in self):
            return f"<pre>{len(self)} events; trace(x, pruned=3) tells enough for a picture</pre>"
        search = rounds_of(self, self.words)
        return figure(drawn(search)) + paragraph(search["verdict"])


class Explanation(dict[str, Any]):
    """Why an input gets its output: a dict that a notebook shows as waterfalls."""

    def _repr_html_(self) -> str:
        tokens = " ".join(map(str, self["tokens"]))
        pictures = [svg for each in self["decisions"] for svg in waterfalls(each)]
        return paragraph(tokens) + "".join(map(figure, pictures))
