"""Coreference files of the CoNLL shared tasks: documents with mentions.

    #begin document (name); part 000
    name  0  0  Ann    NNP  ...  (1)
    name  0  1  lost   VBD  ...  -
    name  0  2  her    PRP$ ...  (2|(1)
    name  0  3  keys   NNS  ...  2)
    #end document

Columns are separated by blanks or tabs. The fourth is the word; the fifth, if it is filled, its
tag; of twelve columns and more the sixth is the parse, the tenth the speaker and the eleventh the
entities; the last one has the brackets of mentions, with the number of the entity. An empty line
ends a sentence. Where a mention is a constituent of the parse, its head is found by rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from laso.data.constituents import Constituent, constituents, heads_of
from laso.data.lines import Source, name_of, numbered_lines
from laso.errors import BadData, quoted

BEGIN = "#begin document"
WORD, TAG, PARSE, SPEAKER, ENTITIES = 3, 4, 5, 9, 10  # columns
FEWEST, WITH_ENTITIES = 5, 12  # columns
EMPTY = ("-", "_", "*", "")
_BRACKET = re.compile(r"(\()?([^()|\s]+)(\))?")
_ENTITY = re.compile(r"\(([^()*]+)|\)")
_HEAD = re.compile(r"#begin document \(?(.*?)\)?(?:;\s*part\s*(\S+))?\s*$")


class Mention(NamedTuple):
    """Some words of a sentence, counted from 0: from ``first`` up to ``last``."""

    sentence: int
    first: int
    last: int


@dataclass
class Text:
    """A document: its sentences, and its mentions, in the order of the text, the longest first.

    ``tags`` and ``speakers`` have an entry for each word, or are empty; ``types`` and ``heads``
    (the word of the sentence that is the mention's head) have one for each mention, None where it
    is unknown, or are empty.
    """

    sentences: list[list[str]]
    mentions: list[Mention] = field(default_factory=list)
    tags: list[list[str]] = field(default_factory=list)
    speakers: list[list[str | None]] = field(default_factory=list)
    types: list[str | None] = field(default_factory=list)
    heads: list[int | None] = field(default_factory=list)
    name: str = ""
    rows: list[list[str]] = field(default_factory=list)  # each word's line but its last column

    def words(self, mention: Mention) -> list[str]:
        """Return the words of a mention."""
        return self.sentences[mention.sentence][mention.first : mention.last + 1]

    def as_json(self) -> dict[str, Any]:
        """Return the document as a table, such as ``of`` reads, for JSON."""
        names = ("name", "sentences", "mentions", "tags", "speakers", "types", "heads")
        named = {name: getattr(self, name) for name in names}
        return {n: v for n, v in named.items() if v or n in ("sentences", "mentions")}

    @classmethod
    def of(cls, value: Any) -> Text:
        """Return a document of a table with the same names, or the document itself.

        Examples
        --------
        >>> text = Text.of({"sentences": [["Ann", "lost", "her", "keys"]], "mentions": [(0, 0, 0)]})
        >>> text.words(text.mentions[0])
        ['Ann']
        """
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping) or "sentences" not in value or "mentions" not in value:
            raise BadData(
                f"found {quoted(value)}, expected a document: a table with sentences (lists of "
                "words) and mentions (sentence, first word, last word)"
            )
        text = cls([[str(word) for word in sentence] for sentence in value["sentences"]])
        text.mentions = [text.checked(mention) for mention in value["mentions"]]
        text.name = str(value.get("name") or "")
        for name in ("tags", "speakers", "types", "heads"):
            setattr(text, name, list(value.get(name) or ()))
        for name in ("types", "heads"):
            each = getattr(text, name)
            if each and len(each) != len(text.mentions):
                raise BadData(f"found {len(each)} {name} of {len(text.mentions)} mentions")
        for head, mention in zip(text.heads, text.mentions, strict=False):
            if head is not None and head not in range(mention.first, mention.last + 1):
                raise BadData(
                    f"found the head {quoted(head)} of the mention {tuple(mention)}, expected "
                    "the number of one of its words in the sentence"
                )
        for name in ("tags", "speakers"):
            rows = getattr(text, name)
            if rows and list(map(len, rows)) != list(map(len, text.sentences)):
                raise BadData(f"found {name} of other lengths than the sentences")
        return text

    def checked(self, value: Any) -> Mention:
        """Return a mention; raise BadData if it is not within a sentence."""
        try:
            mention = Mention(*map(int, value))
        except (TypeError, ValueError):
            found = f"found the mention {quoted(value)}"
            raise BadData(f"{found}, expected sentence, first word and last word") from None
        length = 0
        if 0 <= mention.sentence < len(self.sentences):
            length = len(self.sentences[mention.sentence])
        if not 0 <= mention.first <= mention.last < length:
            raise BadData(
                f"found the mention {tuple(mention)}, expected numbers from 0 of a sentence and of "
                "its words"
            )
        return mention


def read_coreference(source: Source) -> Iterator[tuple[Text, list[str]]]:
    """Yield the documents of a file, and the number of the entity of each mention.

    Examples
    --------
    >>> import io
    >>> file = "#begin document (d); part 0\\nd 0 0 Ann _ (1)\\nd 0 1 came _ -\\n#end document\\n"
    >>> [(text, ids)] = read_coreference(io.StringIO(file))
    >>> text.sentences, text.mentions, ids
    ([['Ann', 'came']], [Mention(sentence=0, first=0, last=0)], ['1'])
    """
    reader: _Reader | None = None
    for number, line in numbered_lines(source):
        if line.startswith(BEGIN):
            if reader is not None:
                yield reader.end()
            reader = _Reader(name_of(source), line)
        elif line.startswith("#"):
            continue
        elif reader is None:
            if line.strip():
                raise BadData(
                    f"found {quoted(line)}, expected {quoted(BEGIN)}",
                    file=name_of(source),
                    line=number,
                )
        else:
            reader.read(number, line)
    if reader is not None:
        yield reader.end()


class _Reader:
    """Reads the lines of one document."""

    def __init__(self, file: str, head: str) -> None:
        match = _HEAD.match(head)
        name, part = (match[1], match[2]) if match else ("", None)
        self.file, self.text = file, Text([], name=f"{name}/{part}" if part else name)
        self.open: dict[str, list[tuple[int, int, int]]] = {}  # sentence, word, line
        self.types: dict[Mention, str] = {}
        self.open_types: list[tuple[str, int]] = []
        self.ids: dict[Mention, str] = {}
        self.parse: list[str] = []  # of the present sentence
        self.trees: dict[int, Constituent] = {}  # by sentences
        self.is_inside = False

    def fail(self, message: str, line: int) -> BadData:
        return BadData(message, file=self.file, line=line)

    def read(self, number: int, line: str) -> None:
        """Read a line: a word, or the end of a sentence."""
        line = line.rstrip(" ")
        cells = line.split("\t" if "\t" in line else None)  # after a tab, the last may be empty
        if not line.strip():
            self._end_sentence()
            return
        if len(cells) < FEWEST:
            raise self.fail(f"found {len(cells)} columns, expected at least {FEWEST}", number)
        if not cells[WORD]:
            raise self.fail("found no word in the fourth column, expected one", number)
        text = self.text
        if not self.is_inside:
            self.is_inside = True
            for rows in (text.sentences, text.tags, text.speakers, text.rows):
                rows.append([])
        place = len(text.sentences) - 1, len(text.sentences[-1])
        text.sentences[-1].append(cells[WORD])
        text.rows[-1].append(line.removesuffix(cells[-1]))
        many = len(cells) >= WITH_ENTITIES
        text.tags[-1].append(cells[TAG] if len(cells) > FEWEST else "_")
        text.speakers[-1].append(cells[SPEAKER] if many and cells[SPEAKER] not in EMPTY else None)
        self.parse.append(cells[PARSE] if many else "")
        if many:
            self._read_types(cells[ENTITIES], place)
        if cells[-1] not in EMPTY:
            self._read_brackets(cells[-1], place, number)

    def _read_brackets(self, cell: str, place: tuple[int, int], number: int) -> None:
        for part in cell.split("|"):
            match = _BRACKET.fullmatch(part)
            if match is None or not (match[1] or match[3]):
                raise self.fail(
                    f"found {quoted(part)} in the last column, expected a mention's bracket such "
                    "as (1, 1) or (1)",
                    number,
                )
            begins, entity, ends = match.groups()
            if begins:
                self.open.setdefault(entity, []).append((*place, number))
            if ends:
                if not self.open.get(entity):
                    raise self.fail(f"found {quoted(part)}, expected ({entity} before it", number)
                sentence, first, _ = self.open[entity].pop()
                mention = Mention(sentence, first, place[1])
                if mention in self.ids:
                    raise self.fail(
                        f"found a mention of {quoted(entity)} that is one of "
                        f"{quoted(self.ids[mention])}, expected each once",
                        number,
                    )
                self.ids[mention] = entity

    def _read_types(self, cell: str, place: tuple[int, int]) -> None:
        for match in _ENTITY.finditer(cell):
            if match[1]:
                self.open_types.append((match[1], place[1]))
            elif self.open_types:
                kind, first = self.open_types.pop()
                self.types[Mention(place[0], first, place[1])] = kind

    def _end_sentence(self) -> None:
        if self.is_inside:
            tree = constituents(self.parse, self.text.tags[-1])
            if tree is not None:
                self.trees[len(self.text.sentences) - 1] = tree
        self.parse, self.open_types, self.is_inside = [], [], False
        for entity, places in self.open.items():
            for _, _, line in places:
                raise self.fail(f"found ({entity}, expected {entity}) in the same sentence", line)

    def end(self) -> tuple[Text, list[str]]:
        """Return the document."""
        self._end_sentence()
        text = self.text
        text.mentions = in_order(self.ids)
        if self.types:
            text.types = [self.types.get(mention) for mention in text.mentions]
        if self.trees:
            text.heads = self._heads()
        for name in ("tags", "speakers"):
            rows: list[list[Any]] = getattr(text, name)
            if all(cell in EMPTY or cell is None for row in rows for cell in row):
                setattr(text, name, [])
        return text, [self.ids[mention] for mention in text.mentions]

    def _heads(self) -> list[int | None]:
        """Return the head of each mention that is a constituent."""
        spans: dict[int, list[tuple[int, int]]] = {}
        for sentence, first, last in self.text.mentions:
            spans.setdefault(sentence, []).append((first, last))
        return [
            head
            for sentence, each in spans.items()
            for head in (
                heads_of(self.trees[sentence], each)
                if sentence in self.trees
                else [None] * len(each)
            )
        ]


def in_order(mentions: Iterable[Mention]) -> list[Mention]:
    """Return mentions in the order of the text; of those that begin together the longest first."""
    return sorted(mentions, key=lambda m: (m.sentence, m.first, -m.last))


def write_coreference(text: Text, ids: Sequence[Any]) -> str:
    """Return a document as a file has it, with the numbers of entities in the last column.

    The other columns are those of the file that it comes from.

    Examples
    --------
    >>> text = Text([["Ann", "came"]], [Mention(0, 0, 0)], name="d/0")
    >>> print(write_coreference(text, [0]).replace("\\t", " "), end="")
    #begin document (d); part 0
    d 0 0 Ann _ (0)
    d 0 1 came _ -
    <BLANKLINE>
    #end document
    """
    cells: dict[tuple[int, int], list[str]] = {}
    for mention, entity in zip(text.mentions, ids, strict=True):
        sentence, first, last = mention
        if first == last:
            cells.setdefault((sentence, first), []).append(f"({entity})")
        else:
            cells.setdefault((sentence, first), []).append(f"({entity}")
            cells.setdefault((sentence, last), []).append(f"{entity})")
    name, _, part = (text.name or "document").rpartition("/")
    name, part = (name, part) if name else (part, "0")
    lines = [f"{BEGIN} ({name}); part {part}"]
    for i, words in enumerate(text.sentences):
        for j, word in enumerate(words):
            tag = text.tags[i][j] if text.tags else "_"
            row = "\t".join([name, part, str(j), word, tag, ""])
            if text.rows:
                row = text.rows[i][j]
            lines.append(row + "|".join(cells.get((i, j), ["-"])))
        lines.append("")
    return "\n".join([*lines, "#end document", ""])
