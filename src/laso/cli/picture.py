"""One search of ``laso demo`` as a page of HTML that explains it."""

from __future__ import annotations

import html
from typing import Any

from laso.pictures.page import figure, page, paragraph
from laso.pictures.search import Search, drawn

INTRODUCTION = """The search reads the sentence from left to right and covers it with chunks: noun
phrases (NP), verb phrases (VP) and others; O is a word outside all chunks. A column shows the
hypotheses that end with its word, the best first; below the line are the best of those that were
dropped. A card shows the last chunk of a hypothesis and the score of all its chunks. A line leads
to it from the hypothesis that it extends."""


def search_page(search: Search, sentence: dict[str, Any]) -> str:
    """Return a self-contained page that shows and explains the search for a sentence."""
    words = sentence["words"]
    rows = (
        ("Predicted: the best hypothesis at the last word", sentence["predicted"]),
        ("Gold: the annotation of the corpus", sentence["gold"]),
    )
    terms = [f"<dt>{n}</dt><dd>{html.escape(bracketed(words, chunks))}</dd>" for n, chunks in rows]
    parts = [
        paragraph(" ".join(INTRODUCTION.split())),
        figure(drawn(search)),
        f"<dl>{''.join(terms)}</dl>",
        paragraph(search["verdict"]),
    ]
    return page("One search: chunking a sentence with a beam", parts)


def bracketed(words: list[str], chunks: Any) -> str:
    """Return the words with chunks in brackets; words outside stand alone."""
    texts = []
    for label, start, end in chunks:
        text = " ".join(words[start:end])
        texts.append(text if label == "O" else f"[{label} {text}]")
    return " ".join(texts)
