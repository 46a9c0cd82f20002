"""English words that say something of a mention: pronouns, titles, names, kin, verbs of speech."""

from __future__ import annotations

from pathlib import Path

_PRONOUNS = {
    "i": "i me my mine myself m'self meself",
    "you": "you your yours yourself thou thee thy thine thyself ye ya yer yeh y' 'ee",
    "yous": "yourselves",
    "he": "he him his himself 'im hisself hee",
    "she": "she her hers herself",
    "it": "it its itself 't",
    "we": "we us our ours ourselves ourself 's",
    "they": "they them their theirs themselves 'em themself",
    "who": "who whom whose",
    "that": "that this that these those",
    "which": "which",
    "one": "one oneself",
}
PRONOUN = {word: name for name, words in _PRONOUNS.items() for word in words.split()}
PERSON = {"i": "1", "we": "1", "you": "2", "yous": "2"}
MALE, FEMALE, NEUTER = "male", "female", "neuter"
GENDER_OF_PRONOUN = {"he": MALE, "she": FEMALE, "it": NEUTER, "which": NEUTER}
NUMBER_OF_PRONOUN = {"we": "many", "they": "many", "yous": "many"}
NUMBER_OF_PRONOUN |= dict.fromkeys(("i", "he", "she", "it"), "one")
CASES = {
    "subject": "i he she we they who thou",
    "object": "me him us them whom thee 'em 'im",
    "possessive": "my mine his its our ours their theirs your yours thy thine hers whose",
    "reflexive": "myself yourself himself herself itself ourselves themselves thyself yourselves",
}
CASE = {word: case for case, words in CASES.items() for word in words.split()}
DETERMINERS = {
    "the": "the",
    **dict.fromkeys(("a", "an", "some", "any", "another", "one", "two", "three"), "a"),
    **dict.fromkeys(("this", "that", "these", "those", "such"), "this"),
    **dict.fromkeys(("every", "each", "all", "both", "no", "many", "several", "few"), "every"),
    **dict.fromkeys(
        ["my", "your", "his", "her", "its", "our", "their", "thy", "whose", "mine"], "my"
    ),
}
OWNER = ("'s", "\u2019s", "'", "\u2019")
QUOTES = {"``": 1, "“": 1, "''": -1, "”": -1, '"': 0}
"""Quotation marks: 1 opens, -1 closes, 0 may be either."""
SINGLE_QUOTES = {"\u2018": 1, "\u2019": -1, "'": 0}
"""Those of texts without the former."""


def _lists() -> dict[str, frozenset[str]]:
    """Return the lists of english.txt by their names, which are in brackets."""
    text = Path(__file__).with_name("english.txt").read_text(encoding="utf-8")
    sections = (section.partition("]") for section in text.split("[")[1:])
    return {name: frozenset(words.split()) for name, _, words in sections}


_LISTS = _lists()
MALES, FEMALES = _LISTS["males"], _LISTS["females"]
MALE_NAMES, FEMALE_NAMES = _LISTS["male names"], _LISTS["female names"]
PERSONS, TITLES = _LISTS["persons"], _LISTS["titles"]
ENDS_HEAD, SPEECH = _LISTS["ends head"], _LISTS["speech"]
VERBS = _LISTS["be"] | _LISTS["verbs"]
CLOSED = VERBS | ENDS_HEAD | _LISTS["closed"]
