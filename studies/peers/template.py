"""CRFsuite's template for chunking, written out as users of the peers write it."""

from __future__ import annotations

from collections.abc import Sequence

BEFORE, AFTER = ["__BOS2__", "__BOS1__"], ["__EOS1__", "__EOS2__"]


def padded(column: list[str]) -> list[str]:
    """Return the column with two padding symbols before and after it."""
    return [*BEFORE, *column, *AFTER]


def as_lists(sentence: Sequence[tuple[str, ...]]) -> list[list[str]]:
    """Return the features of each token as a list of strings."""
    words = padded([token[0] for token in sentence])
    tags = padded([token[1] for token in sentence])
    result = []
    for i in range(2, len(words) - 2):
        a, b, c, d, e = words[i - 2 : i + 3]
        p, q, r, s, t = tags[i - 2 : i + 3]
        result.append(
            [
                f"w[-2]={a}",
                f"w[-1]={b}",
                f"w[0]={c}",
                f"w[1]={d}",
                f"w[2]={e}",
                f"w[-1]|w[0]={b}|{c}",
                f"w[0]|w[1]={c}|{d}",
                f"pos[-2]={p}",
                f"pos[-1]={q}",
                f"pos[0]={r}",
                f"pos[1]={s}",
                f"pos[2]={t}",
                f"pos[-2]|pos[-1]={p}|{q}",
                f"pos[-1]|pos[0]={q}|{r}",
                f"pos[0]|pos[1]={r}|{s}",
                f"pos[1]|pos[2]={s}|{t}",
                f"pos[-2]|pos[-1]|pos[0]={p}|{q}|{r}",
                f"pos[-1]|pos[0]|pos[1]={q}|{r}|{s}",
                f"pos[0]|pos[1]|pos[2]={r}|{s}|{t}",
            ]
        )
    return result


def as_text(sentence: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the features of each token in Vowpal Wabbit's format, with short names, no label."""
    words = padded([vw_safe(token[0]) for token in sentence])
    tags = padded([vw_safe(token[1]) for token in sentence])
    result = []
    for i in range(2, len(words) - 2):
        a, b, c, d, e = words[i - 2 : i + 3]
        p, q, r, s, t = tags[i - 2 : i + 3]
        result.append(
            f"|x a={a} b={b} c={c} d={d} e={e} f={b}/{c} g={c}/{d} "
            f"p={p} q={q} r={r} s={s} t={t} A={p}/{q} B={q}/{r} C={r}/{s} D={s}/{t} "
            f"E={p}/{q}/{r} F={q}/{r}/{s} G={r}/{s}/{t}"
        )
    return result


def vw_safe(text: str) -> str:
    """Replace the two characters that are reserved in Vowpal Wabbit's format."""
    return text.replace(":", "<colon>").replace("|", "<bar>")
