"""Feature templates of configurations.

A template is a conjunction of atoms, column[place], as in ``w[s0]|pos[b0]``. Base features follow
their column after a dot, as in the other tasks: ``w.suffix3[s0]``. Places are

    s0, s1, ... s7           the words of the stack, from its top
    b0, b1, ...              the words of the buffer
    s0.l1, s0.l2             the leftmost child of a word, and the one after it; also of b0
    s0.r1, s0.r2             the rightmost child, and the one before it
    s0.l1.l1, s0.r1.r1       the leftmost child of the leftmost child, the same on the right

and these columns are those of a configuration:

    label[s0.l1]             the label of the arc to a child; label[s0] that of the word itself
    lefts[s0], rights[s0]    the number of children on a side
    leftset[s0], rightset[s0]    the set of their labels
    distance[s0,b0]          the distance of two words, of s0 to s7 and b0
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from laso.data.formats import FEATS
from laso.features.templates import (
    BIAS,
    Atom,
    Template,
    TemplateParser,
    parse_places,
)
from laso.tasks.parsing import configuration as c

LABEL, LEFTS, RIGHTS, LEFT_SET, RIGHT_SET, DISTANCE = (
    *("label", "lefts", "rights"),
    *("leftset", "rightset", "distance"),
)
OF_WORDS = {LEFTS: c.LEFTS, RIGHTS: c.RIGHTS, LEFT_SET: c.LEFT_SET, RIGHT_SET: c.RIGHT_SET}
RESERVED = (LABEL, *OF_WORDS, DISTANCE)
CHILDREN = {
    "": c.WORD,
    ".l1": c.L1,
    ".l2": c.L2,
    ".r1": c.R1,
    ".r2": c.R2,
    ".l1.l1": c.LL,
    ".r1.r1": c.RR,
}
_PLACE = re.compile(r"(?P<of>[sb])(?P<number>\d{1,2})(?P<child>(?:\.[lr][12]){0,2})", re.ASCII)


def parse_templates(templates: str | Iterable[str | Template]) -> tuple[Template, ...]:
    """Parse feature templates; a single string has one a line, lines with # are comments."""
    return parse_places(templates, _PlaceParser)


class _PlaceParser(TemplateParser):
    """Parses a template whose atoms have places of a configuration."""

    def window(self) -> list[Atom]:
        """Parse an atom."""
        column, bases = self.column({*RESERVED})
        begin = self.at
        place = self.match(r"[^\]]*").strip()
        self.accept("]") or self.fail("']'")
        atom = Atom(column, bases, 0, place)
        try:
            atom_program(atom, 0)
        except ValueError as error:
            self.at = begin
            self.fail(str(error))
        return [atom]


def is_input(atom: Atom) -> bool:
    """Return whether an atom refers to an input column."""
    return atom.column not in RESERVED


def atom_program(atom: Atom, view: int) -> tuple[int, int, int, int]:
    """Return the integers that ``configuration.atom_value`` reads; ValueError: what is expected."""
    if atom.column == DISTANCE:
        ends = [_element(place.strip()) for place in atom.place.split(",")]
        if len(ends) != 2 or any(number > c.N_STACK or child != c.WORD for number, child in ends):
            raise ValueError("two of s0 to s7 and b0, such as distance[s0,b0]")
        return c.DISTANCE, ends[0][0], ends[1][0], 0
    number, child = _element(atom.place)
    if number > c.N_STACK:
        if child != c.WORD or not is_input(atom):
            raise ValueError("a place in the stack or b0, since others have no children")
        return c.COLUMN_AFTER, number - c.N_STACK, view, 0
    if atom.column == LABEL:
        return c.FIELD_OF, number, child + 1, 0
    if atom.column in OF_WORDS:
        if child != c.WORD:
            raise ValueError("a word of the stack or b0")
        return c.FIELD_OF, number, OF_WORDS[atom.column], 0
    return c.COLUMN_OF, number, child, view


def _element(place: str) -> tuple[int, int]:
    """Return the number of a place's word, counted over the stack and the buffer, and its field."""
    match = _PLACE.fullmatch(place)
    number = int(match["number"]) if match else 0
    if match is None or match["child"] not in CHILDREN:
        raise ValueError("a place such as s0, b1, s0.l1, s0.r2 or s0.l1.l1")
    if match["of"] == "s" and number >= c.N_STACK:
        raise ValueError(f"s0 to s{c.N_STACK - 1}")
    return number + (c.N_STACK if match["of"] == "b" else 0), CHILDREN[match["child"]]


# --------------------------------------------------------------------------- parts

MOST_FEATURES = 12  # morphological features with templates of their own
_FEATURE = re.compile(r"(?:^|\|)([A-Za-z][\w\[\]]*)=", re.ASCII)
FEWEST = 8  # templates that make up a part of their own


def divided(templates: Sequence[Template]) -> list[list[Template]]:
    """Return the templates in parts, those that fit none last; the others have one sum each.

    The templates of a part look at the same words, so that the sum of their weights is the same in
    many configurations: a word of the stack or the next word with its children; the words of the
    buffer; or two words without children.
    """
    by_words: dict[frozenset[str], list[Template]] = {}
    for template in templates:
        by_words.setdefault(_words_of(template), []).append(template)
    rest = by_words.pop(frozenset(), [])
    for words, alike in list(by_words.items()):
        if len(alike) < FEWEST:
            rest += by_words.pop(words)
    return [*by_words.values(), rest]


def _words_of(template: Template) -> frozenset[str]:
    """Return the words that a template of a part looks at; none if it fits no part."""
    places = [place.strip() for atom in template.atoms for place in atom.place.split(",")]
    words = {place.partition(".")[0] for place in places}
    children = any("." in place for place in places)
    if not children:
        words = {"b" if word[0] == "b" else word for word in words}
    return frozenset(words) if len(words) == 1 or not children else frozenset()


# --------------------------------------------------------------------------- the default set


def default_templates(names: Sequence[str], main: int = 1) -> list[str]:
    """Return the default templates for columns of these names: words, then tags and others.

    They are those of Zhang & Nivre (2011) for words and the column ``main``; further columns have
    the templates of single words and of pairs. Valencies and label sets are left out.
    """
    words = names[0]
    tags = names[main] if len(names) > 1 else f"{words}.lower.suffix3"
    templates = [BIAS, *_with_tags(words, tags)]
    for column in names[1:]:
        if column != tags:
            templates += _further(words, column)
    return list(dict.fromkeys(templates))


def cluster_templates(words: str = "w") -> list[str]:
    """Return templates of Brown clusters, to add to the default ones; they need ``laso[lists]``.

    Prefixes of 6 bits are coarse as tags are, those of 20 bits are the clusters.
    """
    by_length = (_further(words, f"{words}.cluster{bits}") for bits in (6, 20))
    return [template for templates in by_length for template in templates]


def suffix_templates(words: str = "w") -> list[str]:
    """Return templates of words in lower case and their suffixes, which ``Parser`` has by default.

    They tell what tags do not: inflection, and what is wrong about a predicted tag.
    """
    w, last = f"{words}.lower", f"{words}.lower.suffix3"
    templates = [f"{w}.suffix{n}[{e}]" for n in (2, 3) for e in ("s0", "b0", "s1", "b1")]
    templates += [f"{w}[{e}]" for e in ("s0", "b0")]
    return [*templates, f"{last}[s0]|{last}[b0]"]


def feature_templates(cells: Sequence[str], column: str = FEATS) -> list[str]:
    """Return templates that compare single morphological features, such as Case, of two words.

    They are for the most frequent features of the given cells of CoNLL-U.
    """
    counts = Counter(match[1] for cell in cells for match in _FEATURE.finditer(cell))
    templates = []
    for name, _ in counts.most_common(MOST_FEATURES):
        pattern = re.escape(f"{name}=")
        value = f'{column}.match("(^|[|]){pattern}[^|]*")'
        templates += [f"{value}[s0]|{value}[b0]", f"{value}[s1]|{value}[s0]"]
    return templates


def _further(w: str, p: str) -> list[str]:
    templates = [f"{p}[{e}]" for e in ("s0", "s1", "b0", "b1")]
    for a, b in (("s0", "b0"), ("s1", "s0")):
        templates += [f"{p}[{a}]|{p}[{b}]", f"{w}[{a}]|{p}[{b}]", f"{p}[{a}]|{w}[{b}]"]
    return [*templates, f"{p}[s0]|{p}[b0]|{p}[b1]", f"{p}[s1]|{p}[s0]|{p}[b0]"]


def _with_tags(w: str, p: str) -> list[str]:
    places = ("s0", "s1", "b0", "b1")
    templates = [f"{w}[{e}]" for e in (*places, "s2", "b2")]
    templates += [f"{p}[{e}]" for e in (*places, "s2", "b2")]
    templates += [f"{w}[{e}]|{p}[{e}]" for e in (*places, "b2")]
    for a, b in (("s0", "b0"), ("s1", "s0")):
        templates += [
            f"{w}[{a}]|{p}[{a}]|{w}[{b}]|{p}[{b}]",
            f"{w}[{a}]|{p}[{a}]|{w}[{b}]",
            f"{w}[{a}]|{w}[{b}]|{p}[{b}]",
            f"{w}[{a}]|{p}[{a}]|{p}[{b}]",
            f"{p}[{a}]|{w}[{b}]|{p}[{b}]",
            f"{w}[{a}]|{w}[{b}]",
            f"{p}[{a}]|{p}[{b}]",
        ]
        templates += [f"distance[{a},{b}]|{each}" for each in _both(w, p, a, b)]
    templates += [f"{p}[s1]|{p}[b0]", f"{w}[s1]|{w}[b0]", f"{p}[b0]|{p}[b1]"]
    triples = [
        *("s0 b0 b1", "b0 b1 b2", "s1 s0 b0", "s2 s1 s0", "s0 s0.l1 b0", "s0 s0.r1 b0"),
        *("s0 b0 b0.l1", "s1 s1.r1 s0", "s1 s1.l1 s0", "s0 s0.l1 s1", "s0 s0.r1 s1"),
        *("s0 s0.l1 s0.l2", "s0 s0.r1 s0.r2", "b0 b0.l1 b0.l2", "s1 s1.r1 s1.r2"),
        *("s1 s1.l1 s1.l2", "s1 s1.r1 b0", "s1 s0 b0 b1"),
    ]
    templates += ["|".join(f"{p}[{e}]" for e in triple.split()) for triple in triples]
    for e in ("s0", "s1", "b0"):
        sides = ("l", "r") if e != "b0" else ("l",)
        for side in sides:
            for child in (f"{e}.{side}1", f"{e}.{side}2"):
                templates += [f"{w}[{child}]", f"{p}[{child}]", f"label[{child}]"]
                templates += [f"{p}[{e}]|label[{child}]"]
    return templates


def _both(w: str, p: str, a: str, b: str) -> list[str]:
    return [
        *(f"{each}[{e}]" for e in (a, b) for each in (w, p)),
        *(f"{each}[{a}]|{each}[{b}]" for each in (w, p)),
    ]
