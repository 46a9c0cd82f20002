"""Feature sets for chunks: those of section 4.1 of the paper and richer ones.

A feature set is a list of templates (see laso.features.templates) that users can print and edit:

    print("\\n".join(paper_features(("w", "pos"))))
"""

from __future__ import annotations

from collections.abc import Sequence

from laso.features.lists import base_features
from laso.features.templates import LABEL, LENGTH

OF_WORDS = (
    "",
    "lower",
    "stem",
    "ending",
    "shape",
    *(f"{affix}{n}" for affix in ("prefix", "suffix") for n in (1, 2, 3)),
)
META = "[each,pair,triple,all,first-1,last+1]"


def paper_features(names: Sequence[str], resources: Sequence[str] = ()) -> list[str]:
    """Return the features of section 4.1 for columns of these names, of which the first has words.

    They are all base features in all meta features, the length and the previous label. The base
    features of the other columns are their values and first characters.
    """
    word, *others = names
    bases = [".".join(filter(None, (word, base))) for base in OF_WORDS]
    for other in others:
        bases += [other, f"{other}.prefix1"]
    bases += [f"{word}.{base}" for resource in resources for base in base_features(resource)]
    return [*(base + META for base in bases), LENGTH, f"{LABEL}[-1]"]


def rich_features(names: Sequence[str], resources: Sequence[str] = ()) -> list[str]:
    """Return the paper's features and more: boundaries, wider context, several columns at once."""
    more = [template for kind in additions(names).values() for template in kind]
    return [*paper_features(names, resources), *more]


def additions(names: Sequence[str]) -> dict[str, list[str]]:
    """Return the templates of ``rich`` that ``paper`` does not have, by kind."""
    word, *others = names
    kinds = {
        "two words out": [f"{name}[first-2,last,last+2]" for name in names],
        "pairs across borders": [pair for name in names for pair in _borders(name, name)],
    }
    for other in others:
        more = {
            "words with tags across borders": [*_borders(word, other), *_borders(other, word)],
            "triples of tags at borders": [
                f"{other}[first-2]|{other}[first-1]|{other}[first]",
                f"{other}[first-1]|{other}[first]|{other}[first+1]",
                f"{other}[last-1]|{other}[last]|{other}[last+1]",
                f"{other}[last]|{other}[last+1]|{other}[last+2]",
            ],
            "words with their tags": [f"{word}[{at}]|{other}[{at}]" for at in ("each", "any")],
            "all tags with those around": [
                f"{other}[first-1]|{other}[all]",
                f"{other}[all]|{other}[last+1]",
                f"{other}[first-1]|{other}[all]|{other}[last+1]",
                f"{other}[first-1]|{other}[last+1]",
            ],
            "the label before with the first tag": [f"{LABEL}[-1]|{other}[first]"],
        }
        for kind, templates in more.items():
            kinds.setdefault(kind, []).extend(templates)
    return kinds


def _borders(left: str, right: str) -> list[str]:
    """Return pairs of words with a boundary of the chunk between them."""
    return [f"{left}[first-1]|{right}[first]", f"{left}[last]|{right}[last+1]"]


FEATURE_SETS = {"paper": paper_features, "rich": rich_features}
