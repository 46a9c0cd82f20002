"""Explanations and inspected models as text and as a page of HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

Explanation = dict[str, Any]


def as_text(shown: Explanation) -> str:
    """``inspected`` or ``explained`` for people."""
    return _model_text(shown) if "top" in shown else _sentence_text(shown)


def _model_text(shown: Explanation) -> str:
    size = shown["size"]
    lines = [
        f"{shown['estimator']} ({shown['task']}), {len(shown['labels'])} labels, "
        f"{size['features']} features, {size['weights']} weights",
    ]
    if shown["columns"] or shown["templates"]:
        lines += [
            f"columns: {', '.join(shown['columns']) or 'features of the tokens'}",
            f"templates: {len(shown['templates'])}, as {', '.join(shown['templates'][:3])}",
        ]
    if vectors := shown["vectors"]:
        of = vectors["encoder"] or "the inputs"
        scale = f"scale {vectors['scale']:g}"
        lines.append(f"vectors: {vectors['dimensions']} dimensions of {of}, {scale}")
    lines.append(
        f"{shown['epochs']} epochs, of which the weights of epoch {shown['best_epoch']} are kept"
    )
    if shown["scores"]:
        lines.append(f"best held-out score {max(shown['scores']):.4f}")
    for name, value in shown["metadata"].items():
        lines.append(f"{name}: {value}")
    lines.append(f"{shown['named']} of the {size['features']} features can be named; the top ones:")
    unnamed = [label for label, weights in shown["top"].items() if not any(weights.values())]
    for label, weights in shown["top"].items():
        if label in unnamed:
            continue
        lines.append(f"{label}")
        lines += [
            f"  {weight:+9.3f}  {name}" for name, weight in (*weights["for"], *weights["against"])
        ]
    if unnamed:
        lines.append(
            f"{len(unnamed)} labels have no feature that can be named without sentences; with "
            "some, features of several words have names"
        )
    return "\n".join(lines)


def _sentence_text(shown: Explanation) -> str:
    tokens = shown["tokens"]
    lines = [f"{' '.join(map(str, tokens))}", f"output: {_shown(shown['output'])}"]
    for decision in shown["decisions"]:
        first, n = decision["first"], decision["tokens"]
        words = " ".join(map(str, tokens[first : first + n]))
        text = decision.get("text", f"{words}: {decision['label']}")
        lines.append(f"{text}  {decision['score']:+.3f}")
        lines += [
            f"  {each['weight'] * each['value']:+9.3f}  {each['name']}"
            for each in decision["features"]
        ]
        if decision["more_features"]:
            lines.append(f"             and {decision['more_features']} more")
        other = decision["runner_up"]
        if other is not None:
            span = f" over {other['tokens']} tokens" if other["tokens"] != n else ""
            margin = "" if decision["margin"] is None else f", margin {decision['margin']:.3f}"
            fate = _fate(other["lost"], tokens)
            text = other.get("text", f"{other['label']}{span}")
            lines.append(f"  next best: {text} {other['score']:+.3f}{margin}{fate}")
    return "\n".join(lines)


def _fate(lost: Explanation | None, tokens: Sequence[Any]) -> str:
    if lost is None:
        return ""
    if lost["when"] == "at once":
        return "; it never entered the queue"
    behind = "" if lost["behind"] is None else f", {lost['behind']:.3f} behind"
    if lost["when"] == "never":
        return f"; a path through it was kept to the end{behind}"
    after = lost["after"]
    where = repr(str(tokens[after - 1])) if 0 < after <= len(tokens) else f"{after} items"
    return f"; its last path was lost after {where}{behind}"


def as_html(shown: Explanation) -> str:
    """``inspected`` as a page of its own."""
    from laso.pictures.page import page

    return page(f"laso model: {shown['estimator']}", [as_fragment(shown)])


def as_fragment(shown: Explanation | str) -> str:
    """``inspected`` as a part of a page, for notebooks too; or a text."""
    if isinstance(shown, str):
        return f"<pre>{html.escape(shown)}</pre>"
    rows = []
    for label, weights in shown["top"].items():
        cells = "".join(
            f"<tr><td>{weight:+.3f}</td><td>{html.escape(name)}</td></tr>"
            for name, weight in (*weights["for"], *weights["against"])
        )
        rows.append(f"<h2>{html.escape(label)}</h2>\n<table>{cells}</table>")
    head = html.escape(_model_text({**shown, "top": {}}))
    return f"<pre>{head}</pre>\n" + "\n".join(rows)


def _shown(output: Any) -> str:
    return " ".join(map(str, output)) if isinstance(output, (list, tuple)) else str(output)
