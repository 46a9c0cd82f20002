"""Feature templates of an item and a cluster that it may join.

A template is a conjunction of atoms, column[place], as in ``name.equal[any]|kind[item]``. A column
is a field of the items; its comparisons follow it after a dot:

    name.equal[last]         the outcome of comparing the item's name with the last member's
    name.equal[first]        with the first member's
    name.equal[any]          the outcomes that any member has: all of them, as a set
    name.equal[all]          the outcomes that all members have
    name.equal[most]         the outcomes that at least half of them have
    name.equal[earlier]      the outcomes that any earlier item has, whatever its cluster
    kind[item]               a value of the item itself
    kind[last], kind[first]  of a member; kind[last-1] and kind[last-2] of those before the last
    kind[latest]             of the last member that has a known one
    size[all]                the number of members
    recent[all]              the number of members among the last 16 items
    rank[last]               the number of clusters with a later member

Members are the earlier items that the item is compared with; ``position`` is a field that every
item has, its number. Templates that look at no cluster score an item that begins one; the others
score one that joins it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from laso.errors import BadTemplate, listed, quoted
from laso.features.templates import (
    BIAS,
    Atom,
    Template,
    TemplateParser,
    parse_places,
    shown,
)
from laso.tasks.clustering import problem as p
from laso.tasks.clustering.comparisons import CATEGORY, KINDS

POSITION, SIZE, RANK, RECENT = "position", "size", "rank", "recent"
OF_CLUSTERS = {SIZE: ("all", p.SIZE), RANK: ("last", p.RANK_OF), RECENT: ("all", p.RECENT)}
OF_VALUES = {("item", 0): p.ITEM, ("last", 0): p.LAST, ("first", 0): p.FIRST}
OF_VALUES |= {("latest", 0): p.LATEST, ("last", -1): p.SECOND, ("last", -2): p.THIRD}
OF_PAIRS = {"last": p.WITH_LAST, "first": p.WITH_FIRST, "any": p.ANY, "all": p.ALL}
OF_PAIRS |= {"most": p.MOST, "earlier": p.EARLIER}
OF_ITEM = ("item", "earlier")  # places that are in no cluster
MOST_PAIRED = 12  # fields whose comparisons are taken two at a time


def parse_templates(templates: str | Iterable[str | Template]) -> tuple[Template, ...]:
    """Parse feature templates; a single string has one a line, lines with # are comments.

    Examples
    --------
    >>> print(*parse_templates("kind[item]|name.equal[any]"))
    kind[item]|name.equal[any]
    """
    return parse_places(templates, _ClusterParser)


class _ClusterParser(TemplateParser):
    """Parses a template whose atoms have places of an item or a cluster."""

    def window(self) -> list[Atom]:
        """Parse an atom."""
        column = self.match(r"[A-Za-z_]\w*|\d+") or self.fail("a field's name or number")
        comparison = ""
        if self.accept("."):
            comparison = self.match(r"[A-Za-z_]\w*") or self.fail("a comparison, such as equal")
        self.accept("[") or self.fail("'['")
        begin = self.at
        place, offset = self.match(r"[a-z]+"), 0
        if place == "last" and not comparison and self.accept("-"):
            offset = -int(self.match(r"[12]\b") or self.fail("1 or 2"))
        if column in OF_CLUSTERS:
            expected, _ = OF_CLUSTERS[column]
            known = place == expected
        elif comparison:
            known, expected = place in OF_PAIRS, listed([*OF_PAIRS])
        else:
            known = (place, offset) in OF_VALUES
            expected = "item, last, last-1, last-2, first or latest"
        if not known:
            self.at = begin
            self.fail(f"one of the places {expected}" if comparison else expected)
        self.accept("]") or self.fail("']'")
        return [Atom(column, (comparison,) if comparison else (), offset, place)]


def looks_at_cluster(template: Template) -> bool:
    """Return whether a template scores an item that joins a cluster."""
    return any(atom.place not in OF_ITEM for atom in template.atoms)


def check_columns(
    templates: Sequence[Template], kinds: Mapping[str, str], own: Sequence[str]
) -> None:
    """Raise BadTemplate for a field or a comparison that there is not; ``own`` are functions."""
    for template in templates:
        for atom in template.atoms:
            name, bases = atom.column, atom.bases
            if name in OF_CLUSTERS or (bases == ("outcome",) and name in own):
                continue
            if name not in kinds:
                fields = listed([*kinds, *own])
                raise BadTemplate(
                    f"template {shown(template)}: found no field {quoted(name)}, expected {fields}"
                )
            if bases and bases[0] not in KINDS[kinds[name]]:
                raise BadTemplate(
                    f"template {shown(template)}: found the comparison {quoted(bases[0])} of a "
                    f"field of the kind {kinds[name]}, expected {listed(KINDS[kinds[name]])}"
                )


def default_templates(kinds: Mapping[str, str], own: Sequence[str] = ()) -> tuple[str, ...]:
    """Return general templates for fields of these kinds, and for functions of these names.

    Examples
    --------
    >>> default_templates({"kind": "category"})[:3]
    ('bias', 'size[all]', 'kind[item]')
    """
    templates = [BIAS, f"{SIZE}[all]"]
    main: list[str] = []
    for name, kind in kinds.items():
        compared = [f"{name}.{comparison}" for comparison in KINDS[kind]]
        if name == POSITION:
            templates.append(f"{name}.difference[last]")
            continue
        if kind == CATEGORY:
            templates += [f"{name}[item]", f"{name}[item]|{name}[last]"]
            templates.append(f"{name}[item]|{name}[last]|{name}[last-1]")
        main.append(compared[min(1, len(compared) - 1)])
        for each in compared:
            templates += [f"{each}[{place}]" for place in OF_PAIRS]
    for name in own:
        templates += [f"{name}.outcome[{place}]" for place in OF_PAIRS]
        main.append(f"{name}.outcome")
    for a, b in combinations(main[:MOST_PAIRED], 2):
        templates += [f"{a}[{place}]|{b}[{place}]" for place in ("last", "any", "all")]
        templates.append(f"{a}[earlier]|{b}[earlier]")
    return tuple(templates)
