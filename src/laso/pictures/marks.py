"""What pictures are made of: SVG texts and boxes, and the one style sheet."""

from __future__ import annotations

import html
import re
from functools import cache
from importlib.resources import files

LETTER = 6.9  # the average width of a letter at the usual size, at most
SPREAD = 6994  # of the usual labels of chunks, names and tags few have one colour
HUES = 8  # colours of labels, which the style sheet has
STYLE = "pictures.css"


@cache
def style() -> str:
    """Return the style sheet of all pictures."""
    return files("laso.pictures").joinpath(STYLE).read_text(encoding="utf-8")


def svg(width: float, height: float, title: str, parts: list[str], *, alone: bool) -> str:
    """Return an SVG; one that stands ``alone`` has the style sheet inside."""
    sheet = re.sub(r"\s+", " ", style())
    inside = f"<style>{sheet}</style>\n" if alone else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="picture" viewBox="0 0 {width:g} '
        f'{height:g}" width="{width:g}" height="{height:g}" role="group" '
        f'aria-label="{html.escape(title)}" font-family="sans-serif" font-size="13">\n'
        f"<title>{html.escape(title)}</title>\n{inside}"
        f'<rect class="paper" width="{width:g}" height="{height:g}"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def text(x: float, y: float, content: str, kind: str = "", *, size: int = 13, end: str = "") -> str:
    """Return a text of SVG; ``kind`` is its class in the style sheet."""
    anchor = f' text-anchor="{end}"' if end else ""
    size_of = f' font-size="{size}"' if size != 13 else ""
    return (
        f'<text x="{x:g}" y="{y:g}" class="{kind or "ink"}"{size_of}{anchor}>'
        f"{html.escape(content)}</text>"
    )


def frame(x: float, y: float, width: float, height: float, kind: str) -> str:
    """Return a rectangle of SVG."""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4" class="{kind}"/>'
    )


def cut(content: str, width: float) -> str:
    """Return a text, shortened to fit a width."""
    letters = max(1, int(width / LETTER))
    return content if len(content) <= letters else content[: letters - 1] + "…"


def ordinal(n: int) -> str:
    """Return a rank in words, as in "2nd best"."""
    return {1: "best", 2: "2nd best", 3: "3rd best"}.get(n, f"{n}th best")


def hue(label: str) -> int:
    """Return the number of a label's colour, which is the same for B-NP, I-NP and NP.

    Examples
    --------
    >>> hue("B-NP") == hue("NP")
    True
    """
    known = re.sub(r"^[BIESLU]-", "", label)
    number = 0
    for letter in known:
        number = (number * SPREAD + ord(letter)) % 100003
    return number % HUES
