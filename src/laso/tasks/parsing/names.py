"""Names of features of configurations."""

from __future__ import annotations

from collections.abc import Sequence

from laso.features.templates import Atom
from laso.tasks.parsing import configuration as c
from laso.tasks.parsing.encoder import ParsingEncoder
from laso.tasks.parsing.templates import LABEL, LEFT_SET, RIGHT_SET, is_input


def feature_name(encoder: ParsingEncoder, numbers: Sequence[int]) -> str | None:
    """Return the template with the values of its atoms; None if the numbers are of no template."""
    template = encoder.templates_by_key().get(numbers[0])
    if template is None or len(template.atoms) != len(numbers) - 1:
        return None
    if not template.atoms:
        return str(template)
    pairs = zip(template.atoms, numbers[1:], strict=True)
    return "|".join(f"{atom}={_value(encoder, atom, number)}" for atom, number in pairs)


def _value(encoder: ParsingEncoder, atom: Atom, number: int) -> str:
    if number == c.NOTHING:
        return "(none)"
    if is_input(atom):
        if number == c.ROOT:
            return "(root)"
        column = encoder.names.index(atom.column) if atom.column in encoder.names else -1
        view = encoder.views[int(atom.column) if column < 0 else column, atom.bases]
        return list(view.ids)[number] if 0 <= number < len(view.ids) else "(unknown)"
    names = list(encoder.arc_labels)
    if atom.column == LABEL:
        return names[number]
    if atom.column in (LEFT_SET, RIGHT_SET):
        members = [name for i, name in enumerate(names) if number >> i % c.SET_BITS & 1]
        return "{" + ",".join(members) + "}"
    return str(number)
