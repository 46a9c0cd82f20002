"""Mentions of a text as items: their heads, their kinds, and where they are.

Everything is found by rules from the words, for English; types of entities, tags and speakers are
used where a document has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laso.data.coreference import Mention, Text
from laso.tasks.clustering.comparisons import CATEGORY, NUMBER, SET, SPAN, TEXT

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
    "sentence": NUMBER,
    "turn": NUMBER,
    "quoted": CATEGORY,
    "span": SPAN,
    "before": CATEGORY,
    "after": CATEGORY,
    "speaker": TEXT,
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
head[item]|head[last]
head[item]|head[first]
head[item]|pronoun[last]
head[item]|head.equal[any]
pronoun[item]|head[last]
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
person[item]|person[last]
# speech
turn.difference[last]|pronoun[item]|pronoun[last]|quoted[item]
turn.difference[last]|person[item]|person[last]|quoted[item]|quoted[last]
turn.equal[any]|pronoun[item]
turn.equal[any]|pronoun.equal[any]|pronoun[item]|quoted[item]
quoted.equal[any]|pronoun[item]|quoted[item]
quoted.equal[most]|pronoun[item]|quoted[item]
quoted.equal[last]|pronoun[item]|pronoun[last]|quoted[item]
pronoun[item]|quoted[item]|form[last]|quoted[last]
speaker.equal[any]|pronoun[item]
speaker.equal[last]|pronoun[item]|pronoun[last]
# places
before[last]|pronoun[item]
after[last]|pronoun[item]
before[item]|before[last]|pronoun[item]
after[item]|after[last]|pronoun[item]
before[last]|after[last]|form[item]
"""
"""The feature templates of mentions."""

_PRONOUNS = {
    # canonical form, person, gender, number
    "i": "i me my mine myself m'self meself",
    "you": "you your yours yourself thou thee thy thine thyself ye ya yer y'",
    "yous": "yourselves",
    "he": "he him his himself 'im hisself hee",
    "she": "she her hers herself",
    "it": "it its itself 't",
    "we": "we us our ours ourselves ourself 's",
    "they": "they them their theirs themselves 'em themself",
    "who": "who whom whose",
    "that": "this that these those",
    "which": "which",
    "one": "one oneself",
}
PRONOUN = {word: name for name, words in _PRONOUNS.items() for word in words.split()}
PERSON = {"i": "1", "we": "1", "you": "2", "yous": "2"}
MALE, FEMALE, NEUTER = "male", "female", "neuter"
GENDER_OF_PRONOUN = {"he": MALE, "she": FEMALE, "it": NEUTER, "which": NEUTER}
NUMBER_OF_PRONOUN = {"we": "many", "they": "many", "yous": "many"}
NUMBER_OF_PRONOUN |= dict.fromkeys(("i", "he", "she", "it"), "one")
MALES = frozenset(
    "mr mr. sir lord king prince duke count baron earl emperor captain capt. colonel major father "
    "dad papa brother son uncle nephew grandfather husband man gentleman boy lad fellow chap "
    "widower bachelor squire monsieur m. master esq. hero god monk priest bishop parson vicar curate "
    "clergyman butler footman waiter landlord sailor soldier men gentlemen boys brothers sons "
    "fathers uncles husbands lads fellows lords kings".split()
)
FEMALES = frozenset(
    "mrs mrs. miss ms ms. lady queen princess duchess countess baroness empress mother mamma mama "
    "mum ma sister daughter aunt niece grandmother wife woman girl lass maid widow spinster madam "
    "madame mademoiselle dame nun governess housekeeper nurse landlady heroine goddess mistress "
    "ladies women girls sisters daughters mothers aunts wives maids".split()
)
PERSONS = frozenset("child baby friend doctor dr. dr people person persons servant teacher".split())
TITLES = frozenset(
    "mr mr. mrs mrs. miss ms ms. sir lord lady dr dr. captain capt. colonel col. major general gen. "
    "king queen prince princess duke duchess count countess baron earl uncle aunt father mother "
    "brother sister old young little poor dear madame monsieur m. mme. master professor st. saint "
    "reverend rev. judge doctor cousin".split()
)
DETERMINERS = {
    "the": "the",
    **dict.fromkeys(("a", "an", "some", "any", "another", "one", "two", "three"), "a"),
    **dict.fromkeys(("this", "that", "these", "those", "such"), "this"),
    **dict.fromkeys(("every", "each", "all", "both", "no", "many", "several", "few"), "every"),
    **dict.fromkeys(
        "my your his her its our their thy whose mine".split(), "my"
    ),
}
ENDS_HEAD = frozenset(
    "of in on at from with without to for by as who whom whose which that and or but , ; : -- ( "
    "where when than like near over under between among about after before within upon into "
    "through behind beyond beside being living dressed named called".split()
)
BE = frozenset("is was are were be been am being 's 'm 're become became becomes seemed".split())
CLOSED = BE | ENDS_HEAD | frozenset(
    "said says cried replied asked answered thought would could should had have has did do does "
    "not n't the a an . ! ? '' `` \" ' ’ ” “ ‘ himself herself themselves if because so then "
    "there here it he she they i you we his her their my your our its me him them us".split()
)
QUOTES = {"``": 1, "“": 1, "''": -1, "”": -1, '"': 0, "‘": 1, "’": -1, "'": 0}


def mentions_of(text: Text) -> list[dict[str, Any]]:
    """Return the mentions of a text as items with the fields of ``FIELDS``.

    Examples
    --------
    >>> sentence = "The old king lost his crown .".split()
    >>> king = mentions_of(Text([sentence], [Mention(0, 0, 2)]))[0]
    >>> king["head"], king["form"], king["gender"], king["determiner"]
    ('king', 'noun', 'male', 'the')
    """
    turns = turns_of(text)
    starts = [0]
    for sentence in text.sentences:
        starts.append(starts[-1] + len(sentence))
    items = []
    for i, mention in enumerate(text.mentions):
        item = _of_words(text, mention)
        sentence, first, last = mention
        words = text.sentences[sentence]
        item["type"] = text.types[i] if text.types else None
        item["sentence"] = sentence
        item["turn"] = turns[sentence][first]
        item["quoted"] = "yes" if turns[sentence][first] % 2 else "no"
        item["span"] = (starts[sentence] + first, starts[sentence] + last + 1)
        item["before"] = closed(words[first - 1]) if first else "^"
        item["after"] = closed(words[last + 1]) if last + 1 < len(words) else "$"
        item["speaker"] = text.speakers[sentence][first] if text.speakers else None
        items.append(item)
    return items


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


def turns_of(text: Text) -> list[list[int]]:
    """Return for each word the number of quotation marks before it: odd numbers are speech.

    Marks that tell their side put right what a missing one has turned round.
    """
    turn, turns = 0, []
    for sentence in text.sentences:
        row = []
        for i, word in enumerate(sentence):
            side = QUOTES.get(word)
            if word in ("'", "’", "‘"):
                side = None
            if side is not None:
                is_open = turn % 2 == 1
                if side == 1 or (side == 0 and not is_open):
                    turn += 2 if is_open else 1
                elif is_open:
                    turn += 1
            row.append(turn)
        turns.append(row)
    return turns


def _of_words(text: Text, mention: Mention) -> dict[str, Any]:
    words = text.words(mention)
    low = [word.lower() for word in words]
    head = head_of(words)
    name = PRONOUN.get(low[0]) if len(low) == 1 else None
    tags = text.tags[mention.sentence][mention.first : mention.last + 1] if text.tags else None
    is_name = name is None and is_proper(words, head, mention, tags)
    content = [word for word in low if word not in DETERMINERS and word not in ("'s", "'", "’s")]
    item: dict[str, Any] = {
        "form": "pronoun" if name else "name" if is_name else "noun",
        "head": None if name else low[head],
        "text": None if name else " ".join(content) or low[head],
        "pronoun": name,
        "person": PERSON.get(name, "3") if name else None,
        "determiner": None if name else DETERMINERS.get(low[0], "none"),
        "names": None,
        "modifiers": None,
    }
    if is_name:
        of_name = [w.lower() for w in words[: head + 1] if w[:1].isupper()]
        item["names"] = [w for w in of_name if w not in TITLES and w not in DETERMINERS] or of_name
    if not name:
        item["modifiers"] = [w for w in content if w != low[head] and w not in CLOSED] or None
    item["gender"] = GENDER_OF_PRONOUN.get(name) if name else gender_of(low, head)
    item["number"] = NUMBER_OF_PRONOUN.get(name) if name else number_of(low, head, is_name)
    return item


def head_of(words: Sequence[str]) -> int:
    """Return the place of the head: the last word before a preposition, a clause or a comma.

    Examples
    --------
    >>> head_of("the Lord of the Manor".split()), head_of(["Mary", "'s", "house"])
    (1, 2)
    """
    end = len(words)
    for i in range(1, len(words)):
        if words[i].lower() in ENDS_HEAD:
            end = i
            break
    while end > 1 and (not words[end - 1][:1].isalnum()):
        end -= 1
    return end - 1


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


def gender_of(low: Sequence[str], head: int) -> str | None:
    """Return the gender that the head or a title says; None if they say none."""
    for word in (low[head], *low[:head]):
        if word in MALES:
            return MALE
        if word in FEMALES:
            return FEMALE
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
