"""Feature sets for several layers of labels: lists of templates that users can print and edit.

print("\\n".join(rich_features(("w",), ("pos", "chunk"))))
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from laso.features.lists import base_features

# The shape features of Sutton et al. (2004) that the case pattern does not include.
SHAPES = ('test("^[A-Z][a-z]+$")', 'test("^[A-Z]+$")', 'test("[0-9]")', "hashyphen")
LEXICON = "lexicon"


def rich_features(
    names: Sequence[str], layers: Sequence[str], resources: Sequence[str] = ()
) -> list[str]:
    """Return features of words, affixes and shapes, of previous labels, and of pairs of layers.

    The first column has the words; the values of the other columns are used like words.
    """
    word, *others = names
    listed = [base for resource in resources for base in base_features(resource)]
    return [
        "bias",
        *_words(word),
        *(f"{other}[-2..2]" for other in others),
        *(f"{other}[{i}]|{other}[{i + 1}]" for other in others for i in range(-2, 2)),
        *(f"{word}.{base}[-1..1]" for base in listed if base != LEXICON),
        *(_lexicon(f"{word}.{LEXICON}", layers) if LEXICON in listed else ()),
        *_histories(word, layers),
        *(
            template
            for pair in combinations(layers, 2)
            for template in _pairs(word, pair, [*others, *_ahead(word, listed)])
        ),
    ]


def _words(word: str) -> list[str]:
    return [
        f"{word}[-3..3]",
        f"{word}.lower[-1..1]",
        f"{word}.stem[-1..1]",
        f"{word}.shape[-1..1]",
        f"{word}[-1]|{word}[0]",
        f"{word}[0]|{word}[1]",
        f"{word}[1]|{word}[2]",
        f"{word}[-2]|{word}[-1]",
        f"{word}[-1]|{word}[1]",
        f"{word}[-1]|{word}[0]|{word}[1]",
        *(f"{word}.prefix{n}[0]" for n in range(1, 5)),
        *(f"{word}.suffix{n}[0]" for n in range(1, 5)),
        *(f"{word}.{affix}[-1,1]" for affix in ("prefix2", "suffix2", "suffix3")),
        f"{word}.suffix3[2]",
        *(f"{word}.{shape}[0,1]" for shape in SHAPES),
    ]


def _lexicon(tag: str, layers: Sequence[str]) -> list[str]:
    both = "|".join(f"{layer}[-1]" for layer in layers)
    return [
        *(f"{layer}[-1]|{tag}[0]" for layer in layers),
        *(f"{layer}[-1]|{tag}[0]|{tag}[1]" for layer in layers),
        *(f"{layer}[-2]|{layer}[-1]|{tag}[0]" for layer in layers),
        f"{both}|{tag}[0]|{tag}[1]",
        f"{tag}[-2..2]",
        *(f"{tag}[{i}]|{tag}[{i + 1}]" for i in range(-2, 2)),
        *(f"{tag}[{i}]|{tag}[{i + 1}]|{tag}[{i + 2}]" for i in range(-1, 1)),
    ]


def _histories(word: str, layers: Sequence[str]) -> list[str]:
    both = "|".join(f"{layer}[-1]" for layer in layers)
    return [
        *(f"{layer}[-1]" for layer in layers),
        *(f"{layer}[-2]|{layer}[-1]" for layer in layers),
        *(f"{layer}[-1]|{word}[0]" for layer in layers),
        both,
        f"{both}|{word}[0]",
    ]


def _ahead(word: str, listed: Sequence[str]) -> list[str]:
    """Return a substitute for the next word's label: its tag in the lexicon, or its suffix."""
    return [f"{word}.{LEXICON}"] if LEXICON in listed else [f"{word}.suffix3"]


def _pairs(word: str, pair: Sequence[str], ahead: Sequence[str]) -> list[str]:
    a, b = (f"{layer}[0]" for layer in pair)
    return [
        f"{a}|{b}",
        f"{a}|{b}|{word}[-1..1]",
        *(f"{a}|{b}|{each}[1]" for each in ahead),
    ]


FEATURE_SETS = {"rich": rich_features}
