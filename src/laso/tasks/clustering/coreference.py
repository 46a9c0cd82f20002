"""Mentions of a text as items: their heads, their kinds, and where they are.

Everything is found by rules from the words, for English; types of entities, tags and speakers are
used where a document has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from laso.data.coreference import Mention, Text
from laso.tasks.clustering.comparisons import CATEGORY, FACTS, NUMBER, SET, SPAN, TEXT, VECTOR
from laso.tasks.clustering.english import (
    CASE,
    CLOSED,
    DETERMINERS,
    ENDS_HEAD,
    FEMALE,
    FEMALE_NAMES,
    FEMALES,
    GENDER_OF_PRONOUN,
    MALE,
    MALE_NAMES,
    MALES,
    NUMBER_OF_PRONOUN,
    OWNER,
    PERSON,
    PERSONS,
    PRONOUN,
    TITLES,
    VERBS,
)
from laso.tasks.clustering.speech import Quotation, Speech

NARRATION = -1  # the number of the narrator's text among conversations
SPOKEN_ABOUT = 2  # the third side of a conversation

FIELDS = {
    "form": CATEGORY,
    "type": CATEGORY,
    "head": TEXT,
    "text": TEXT,
    "names": SET,
    "modifiers": SET,
    "pronoun": CATEGORY,
    "person": CATEGORY,
    "gender": CATEGORY,
    "number": CATEGORY,
    "determiner": CATEGORY,
    "case": CATEGORY,
    "owner": CATEGORY,
    "narration": CATEGORY,
    "place": CATEGORY,
    "title": CATEGORY,
    "sentence": NUMBER,
    "turn": NUMBER,
    "side": FACTS,
    "quoted": CATEGORY,
    "span": SPAN,
    "before": CATEGORY,
    "after": CATEGORY,
    "speaker": TEXT,
    "vector": VECTOR,
}
"""The fields of a mention, and their kinds."""

TEMPLATES = """
bias
# the item alone
form[item]
form[item]|determiner[item]
form[item]|type[item]
form[item]|number[item]
pronoun[item]
pronoun[item]|quoted[item]
pronoun[item]|type[item]
head[item]
head[item]|determiner[item]
before[item]|form[item]
after[item]|form[item]
head.equal[earlier]|form[item]
head.equal[earlier]|determiner[item]
head.equal[earlier]|form[item]|type[item]
text.equal[earlier]|form[item]
text.equal[earlier]|determiner[item]
names.overlap[earlier]|form[item]
gender.equal[earlier]|pronoun[item]
type.equal[earlier]|form[item]|determiner[item]
span.nested[earlier]|form[item]|determiner[item]
span.gap[earlier]|form[item]|before[item]
# size and kinds of members
size[all]|form[item]
rank[last]|form[item]
rank[last]|form[item]|form[last]
rank[last]|pronoun[item]|pronoun[last]
rank[last]|gender.equal[any]|pronoun[item]
rank[last]|case[item]|case[last]|form[item]
recent[all]|pronoun[item]
recent[all]|form[item]|form[last]
recent[all]|gender.equal[any]|pronoun[item]
size[all]|pronoun[item]
form[item]|form[last]|form[last-1]
form[item]|form[last]|form[last-1]|form[last-2]
form[item]|form[first]|form[last]
pronoun[item]|pronoun[last]|pronoun[last-1]
pronoun[item]|form[first]|type[first]
# distance
position.difference[last]|form[item]|form[last]
position.difference[last]|pronoun[item]|pronoun[last]
sentence.difference[last]|form[item]|form[last]
sentence.difference[last]|pronoun[item]|pronoun[last]
sentence.difference[last]|position.difference[last]|pronoun[item]
sentence.difference[last]|form[item]|form[last]|head.equal[any]
span.gap[last]|form[item]|form[last]
span.gap[last]|before[item]|form[item]|form[last]
span.gap[last]|before[item]|after[last]
span.nested[last]|form[item]|form[last]
span.nested[any]|form[item]
span.nested[last]|pronoun[item]
span.nested[last]|before[item]|form[item]
# words
head.equal[any]|form[item]|determiner[item]
head.equal[all]|form[item]|form[last]
head.equal[most]|form[item]
head.equal[last]|form[item]|form[last]|determiner[item]
head.equal[first]|form[item]|form[first]|determiner[item]
head.equal[any]|type[item]|form[item]
head.equal[any]|determiner[item]|determiner[last]
text.equal[any]|form[item]
text.equal[last]|form[item]|form[last]
text.equal[any]|head.equal[any]|determiner[item]
text.words[any]|form[item]
text.words[any]|head.equal[any]|form[item]
names.overlap[any]|form[item]
names.overlap[all]|form[item]
names.overlap[first]|form[item]|form[first]
names.overlap[any]|head.equal[any]|gender.equal[any]
head.edit[any]|form[item]
modifiers.overlap[any]|head.equal[any]|form[item]
modifiers.overlap[last]|head.equal[last]|form[item]
head[item]|head[latest]
head[item]|head[first]
head[item]|pronoun[last]
head[item]|head.equal[any]
pronoun[item]|head[latest]
head[latest]|determiner[item]
pronoun[item]|head[first]
pronoun[item]|pronoun[last]
pronoun.equal[any]|pronoun[item]
pronoun.equal[any]|pronoun.equal[all]|pronoun[item]
pronoun.equal[most]|pronoun[item]
# agreement
gender.equal[any]|form[item]
gender.equal[all]|form[item]
gender.equal[most]|form[item]
gender.equal[last]|form[item]|form[last]
gender.equal[any]|pronoun[item]
gender.equal[any]|pronoun[item]|form[last]
gender.equal[first]|pronoun[item]|form[first]
number.equal[any]|form[item]
number.equal[all]|form[item]
number.equal[any]|pronoun[item]
number.equal[last]|form[item]|form[last]
type.equal[any]|form[item]
type.equal[all]|form[item]
type[item]|type[last]|form[item]
type[item]|type[first]|form[item]|form[first]
type[last]|pronoun[item]
gender.equal[any]|number.equal[any]|type.equal[any]|form[item]
gender.equal[last]|number.equal[last]|type.equal[last]|form[item]|form[last]
gender.equal[most]|number.equal[most]|type.equal[most]|form[item]
gender[latest]|pronoun[item]
gender[latest]|gender[item]|form[item]
number[latest]|number[item]|form[item]
determiner[item]|determiner[latest]|head.equal[any]
person[item]|person[last]
# grammar
place[item]|place[last]|sentence.difference[last]|form[item]
place[last]|sentence.difference[last]|pronoun[item]
place[last]|case[last]|sentence.difference[last]|case[item]|form[item]
person.equal[any]|pronoun[item]|quoted[item]
narration.equal[any]|form[item]|narration[item]
narration.equal[most]|pronoun[item]|narration[item]
narration.equal[last]|pronoun[item]|form[last]
case[item]|form[item]
case[item]|pronoun[item]|case[last]|pronoun.equal[last]|sentence.difference[last]
case[item]|case[last]|form[item]|form[last]|sentence.difference[last]
case[item]|case[last]|span.gap[last]|form[last]
case[item]|pronoun[item]|case[last]|position.difference[last]
owner[item]|form[item]
owner.equal[any]|head.equal[any]
owner.equal[last]|head.equal[last]|form[item]
owner[item]|head[item]
title.equal[any]|names.overlap[any]
title.equal[all]|form[item]
title.equal[any]|gender.equal[any]|names.overlap[any]
# speech
turn.difference[last]|pronoun[item]|pronoun[last]|quoted[item]
turn.difference[last]|person[item]|person[last]|quoted[item]|quoted[last]
turn.equal[any]|pronoun[item]
turn.equal[any]|pronoun.equal[any]|pronoun[item]|quoted[item]
quoted.equal[any]|pronoun[item]|quoted[item]
quoted.equal[most]|pronoun[item]|quoted[item]
quoted.equal[last]|pronoun[item]|pronoun[last]|quoted[item]
pronoun[item]|quoted[item]|form[last]|quoted[last]
side.agreement[any]|pronoun[item]|quoted[item]
side.agreement[all]|pronoun[item]|quoted[item]
side.agreement[any]|form[item]|quoted[item]
side.agreement[last]|pronoun[item]|pronoun[last]
side.agreement[last]|form[item]|form[last]
side.agreement[earlier]|pronoun[item]|quoted[item]
speaker.equal[any]|pronoun[item]
speaker.equal[last]|pronoun[item]|pronoun[last]
# places
before[last]|pronoun[item]
after[last]|pronoun[item]
before[item]|before[last]|pronoun[item]
after[item]|after[last]|pronoun[item]
before[last]|after[last]|form[item]
# vectors
vector.similar[any]|form[item]
vector.similar[most]|form[item]
"""
"""The feature templates of mentions."""


def mentions_of(text: Text) -> list[dict[str, Any]]:
    """Return the mentions of a text as items with the fields of ``FIELDS``.

    Examples
    --------
    >>> sentence = "The old king lost his crown .".split()
    >>> king = mentions_of(Text([sentence], [Mention(0, 0, 2)]))[0]
    >>> king["head"], king["form"], king["gender"], king["determiner"]
    ('king', 'noun', 'male', 'the')
    """
    speech = Speech(text)
    spoken = _spoken(speech)
    starts = [0]
    for written in text.sentences:
        starts.append(starts[-1] + len(written))
    longest = {(m.sentence, m.first): m.last for m in reversed(text.mentions)}
    items = list[dict[str, Any]]()
    quotations = list[Quotation | None]()  # that each mention is in
    for i, mention in enumerate(text.mentions):
        item = _of_words(text, mention, text.heads[i] if text.heads else None)
        sentence, first, last = mention
        words = text.sentences[sentence]
        begin = starts[sentence] + first
        number = speech.of_word[begin]
        quotation = speech.quotations[number] if number >= 0 else None
        quotations.append(quotation)
        item["type"] = text.types[i] if text.types else None
        item["vector"] = None
        item["sentence"] = sentence
        item["quoted"] = "yes" if quotation else "no"
        item["span"] = (begin, starts[sentence] + last + 1)
        item["before"] = closed(words[first - 1]) if first else "^"
        item["after"] = closed(words[last + 1]) if last + 1 < len(words) else "$"
        item["speaker"] = text.speakers[sentence][first] if text.speakers else None
        is_owner = longest[sentence, first] > last
        item["case"] = case_of(words, mention, item, is_owner=is_owner)
        item["narration"] = None
        if quotation is None:
            item["narration"] = "first" if item["person"] == "1" else "third"
        same = i and text.mentions[i - 1].sentence == sentence
        place = int(items[-1]["place"]) + 1 if same else 1
        item["place"] = str(min(place, 4))
        item["turn"] = quotation.utterance if quotation else None
        item["side"] = _sides(item, quotation, spoken.get(i, ()))
        items.append(item)
    _name_speakers(items, quotations, speech)
    return items


def _name_speakers(
    items: Sequence[dict[str, Any]], quoted: Sequence[Quotation | None], speech: Speech
) -> None:
    """Give "I" and "you" in a conversation the names and the gender of who is on their side.

    That is the first name, else the first noun or pronoun, of which words around quotations say
    that it speaks, or which is called.
    """
    known: dict[tuple[int, int], dict[str, Any]] = {}
    speakers = [
        (q.speaker, (q.conversation, q.side)) for q in speech.quotations if q.speaker is not None
    ]
    called = [
        (i, (q.conversation, 1 - q.side))
        for i, q in enumerate(quoted)
        if q is not None and is_called(items[i])
    ]
    for form in ("name", "noun", "pronoun"):
        for i, side in (*speakers, *called):
            if items[i]["form"] == form:
                known.setdefault(side, items[i])
    for item, quotation in zip(items, quoted, strict=True):
        if quotation is not None and item["pronoun"] in ("i", "you"):
            of = quotation.side if item["pronoun"] == "i" else 1 - quotation.side
            who = known.get((quotation.conversation, of))
            if who is not None:
                item |= {name: who[name] for name in ("head", "names", "gender")}


def alike(item: dict[str, Any]) -> list[str]:
    """Return what a mention shares with others that are compared with it at any distance."""
    shared = {*(item["names"] or ()), item["head"]} - {None}
    if item["person"] in ("1", "2"):
        shared.add("/" + item["pronoun"])
    return sorted(shared)


def _spoken(speech: Speech) -> dict[int, list[Quotation]]:
    """Return for each mention that says something its quotations."""
    spoken: dict[int, list[Quotation]] = {}
    for quotation in speech.quotations:
        if quotation.speaker is not None:
            spoken.setdefault(quotation.speaker, []).append(quotation)
    return spoken


def _sides(item: dict[str, Any], quoted: Quotation | None, spoken: Iterable[Quotation]) -> Any:
    """Return the side of a mention in conversations by their numbers; -1 is the narrator's text.

    Who is spoken about has a side of its own.
    """
    sides = {quotation.conversation: quotation.side for quotation in spoken}
    if quoted is None:
        if item["pronoun"] == "i":
            sides[NARRATION] = 0
    elif item["pronoun"] == "i":
        sides[quoted.conversation] = quoted.side
    elif item["pronoun"] == "you" or is_called(item):
        sides[quoted.conversation] = 1 - quoted.side
    elif item["pronoun"] in ("he", "she", "it") or item["form"] != "pronoun":
        sides[quoted.conversation] = SPOKEN_ABOUT
    return sides or None


def is_called(item: dict[str, Any]) -> bool:
    """Return whether a name stands between commas or marks, as of somebody who is spoken to."""
    marks = (",", ".", "!", "?", "''", "”", '"', "“", "``", "^", "$")
    return bool(item["form"] != "pronoun" and item["before"] in marks and item["after"] in marks)


def case_of(words: Sequence[str], mention: Mention, item: dict[str, Any], *, is_owner: bool) -> str:
    """Return the case of a pronoun; of other mentions what the words around them suggest."""
    _, first, last = mention
    low = words[first].lower()
    if first == last and low == "her":
        return "possessive" if is_owner else "object"
    if first == last and low in CASE:
        return CASE[low]
    after = words[last + 1].lower() if last + 1 < len(words) else ""
    if after in OWNER and is_owner:
        return "possessive"
    if after in VERBS or after.endswith("ed"):
        return "subject"
    return "other"


def closed(word: str) -> str:
    """Return a word of a closed class; of others an affix or a letter for the shape."""
    low = word.lower()
    if low in CLOSED:
        return low
    if word[:1].isupper():
        return "A"
    for suffix in ("ed", "ing", "ly", "s"):
        if low.endswith(suffix):
            return "-" + suffix
    return "a"


def _of_words(text: Text, mention: Mention, known: int | None) -> dict[str, Any]:
    words = text.words(mention)
    low = [word.lower() for word in words]
    head = head_of(words) if known is None else known - mention.first
    name = PRONOUN.get(low[0]) if len(low) == 1 else None
    tags = text.tags[mention.sentence][mention.first : mention.last + 1] if text.tags else None
    is_name = name is None and is_proper(words, head, mention, tags)
    content = [word for word in low if word not in DETERMINERS and word not in OWNER]
    item: dict[str, Any] = {
        "form": "pronoun" if name else "name" if is_name else "noun",
        "head": None if name else low[head],
        "text": None if name else " ".join(content) or low[head],
        "pronoun": name,
        "person": PERSON.get(name, "3") if name else None,
        "determiner": None if name else DETERMINERS.get(low[0], "none"),
        "owner": PRONOUN.get(low[0]) if len(low) > 1 else None,
        "title": low[0].rstrip(".") if len(low) > 1 and low[0] in TITLES else None,
        "names": None,
        "modifiers": None,
    }
    if is_name:
        of_name = [w.lower() for w in words[: head + 1] if w[:1].isupper()]
        item["names"] = [w for w in of_name if w not in TITLES and w not in DETERMINERS] or of_name
    if not name:
        item["modifiers"] = [w for w in content if w != low[head] and w not in CLOSED] or None
    item["gender"] = GENDER_OF_PRONOUN.get(name) if name else gender_of(words, head)
    item["number"] = NUMBER_OF_PRONOUN.get(name) if name else number_of(low, head, is_name)
    return item


def head_of(words: Sequence[str]) -> int:
    """Return the place of the head: the last word before a preposition, a clause or a comma.

    Examples
    --------
    >>> head_of("the Lord of the Manor".split()), head_of(["Mary", "'s", "house"])
    (1, 2)
    """
    end = next((i for i in range(1, len(words)) if ends_head(words, i)), len(words))
    while end > 1 and (not words[end - 1][:1].isalnum()):
        end -= 1
    return end - 1


def ends_head(words: Sequence[str], i: int) -> bool:
    """Return whether the words before one hold the head: it is a preposition, a comma ...

    A comma or "and" after an adjective does not: one word after an article, before a noun.

    Examples
    --------
    >>> words = "a small , open plateau of rock".split()
    >>> [word for i, word in enumerate(words) if ends_head(words, i)]
    ['of']
    """
    low = words[i].lower()
    if low not in (",", "and"):
        return low in ENDS_HEAD
    if i != 2 and not (words[i - 2] == "," and not ends_head(words, i - 2)):
        return True
    if words[0].lower() not in ("a", "an", "the") or (low == "and" and words[0].lower() == "the"):
        return True
    rest = words[i + 1 :]
    ends = [k for k, word in enumerate(rest) if word.lower() in ENDS_HEAD]
    n = ends[0] if ends else len(rest)
    stops = ends and rest[n].lower() in ("but", "and", "or")
    plain = all(word.isalpha() and word.islower() for word in (words[i - 1], *rest[:n]))
    return not (n and plain and not stops)


def is_proper(
    words: Sequence[str], head: int, mention: Mention, tags: Sequence[str] | None
) -> bool:
    """Return whether a mention is a name: its head is capitalised, wherever a noun would not be."""
    if tags is not None:
        return tags[head].startswith("NNP") or tags[head] == "PROPN"
    word = words[head]
    if not word[:1].isupper() or word.lower() in DETERMINERS:
        return False
    return not (head == 0 and mention.first == 0 and word.lower() in MALES | FEMALES | PERSONS)


def gender_of(words: Sequence[str], head: int) -> str | None:
    """Return the gender that the head, a title or a first name says; None if they say none."""
    low = [word.lower() for word in words]
    for word in (low[head], *low[:head]):
        if word in MALES:
            return MALE
        if word in FEMALES:
            return FEMALE
    for word, written in zip(low[: head + 1], words, strict=False):
        if written[:1].isupper() and (word in MALE_NAMES) != (word in FEMALE_NAMES):
            return MALE if word in MALE_NAMES else FEMALE
    return None


def number_of(low: Sequence[str], head: int, is_name: bool) -> str | None:
    """Return whether the head is one or many, as far as its form and its determiner tell."""
    word = low[head]
    if "and" in low[1:-1]:
        return "many"
    if low[0] in ("a", "an", "this", "that", "every", "each", "one", "another"):
        return "one"
    if low[0] in ("these", "those", "two", "three", "many", "several", "few", "both", "all"):
        return "many"
    if word in ("men", "women", "people", "children", "gentlemen", "folk", "police", "mice"):
        return "many"
    if is_name:
        return "many" if low[0] == "the" and word.endswith("s") else "one"
    return "many" if word.endswith("s") and not word.endswith(("ss", "us", "is")) else "one"
