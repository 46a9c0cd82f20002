"""Constituents of a sentence from the parse column of CoNLL files, and the heads of mentions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

NOUNS = ("NN", "PRP", "CD", "NOUN", "PROPN", "PRON")  # tags begin with these
NOUN_PHRASES = ("NP", "NML", "NX")
ENDS = ("PP", "SBAR", "VP", "S", "PRN", "RRC", ",", ":", "CC", "-LRB-")
_CELL = re.compile(r"((?:\([^()*\s]+)*)\*(\)*)")


@dataclass
class Constituent:
    """A node of a tree: its label, its first and last word, and its parts; a word has none."""

    label: str
    first: int
    last: int
    parts: list[Constituent] = field(default_factory=list)

    def __iter__(self) -> Iterator[Constituent]:
        """Yield the node and all below it."""
        yield self
        for part in self.parts:
            yield from part


def constituents(cells: Sequence[str], tags: Sequence[str]) -> Constituent | None:
    """Return the tree of a sentence, given its parse column and tags; None if they have none.

    A cell has the brackets that open before a word, ``*`` for the word, and those that close after
    it. A column whose brackets do not match has no tree.

    Examples
    --------
    >>> tree = constituents(["(S(NP*", "*)", "(VP*))"], ["DT", "NN", "VBD"])
    >>> [(node.label, node.first, node.last) for node in tree if node.parts]
    [('S', 0, 2), ('NP', 0, 1), ('VP', 2, 2)]
    """
    root = Constituent("", 0, len(cells) - 1)
    opened = [root]
    for i, (cell, tag) in enumerate(zip(cells, tags, strict=True)):
        match = _CELL.fullmatch(cell)
        if match is None:
            return None
        for label in match[1].split("(")[1:]:
            opened.append(Constituent(label, i, i))
            opened[-2].parts.append(opened[-1])
        opened[-1].parts.append(Constituent(tag, i, i))
        for _ in match[2]:
            opened.pop().last = i
            if not opened:
                return None
    is_tree = len(opened) == 1 and len(root.parts) == 1 and root.parts[0].parts
    return root.parts[0] if is_tree else None


def head_word(node: Constituent) -> int:
    """Return the head of a constituent: its last noun before a phrase that follows, as a word.

    Such a phrase is a prepositional one, a clause, or what stands after a comma or a conjunction.
    Without a noun the head is in the last part.

    Examples
    --------
    >>> cells = ["(NP(NP*", "*)", "(PP*", "(NP*", "*)))"]  # the Lord of the Manor
    >>> head_word(constituents(cells, ["DT", "NNP", "IN", "DT", "NNP"]))
    1
    """
    while node.parts:
        best = node.parts[-1]
        for part in node.parts:
            if part.label in ENDS and part is not node.parts[0]:
                break
            is_noun = part.label in NOUN_PHRASES if part.parts else part.label.startswith(NOUNS)
            if is_noun:
                best = part
        node = best
    return node.first


def heads_of(tree: Constituent, spans: Sequence[tuple[int, int]]) -> list[int | None]:
    """Return the head of each span (first and last word); None if it is no constituent."""
    nodes: dict[tuple[int, int], Constituent] = {}
    for node in tree:
        if node.parts:
            nodes.setdefault((node.first, node.last), node)
    return [head_word(nodes[span]) if span in nodes else None for span in spans]
