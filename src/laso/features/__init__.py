"""Features of sequences: templates over columns, and their encoding as integers.

base.py       functions of one value: lower, shape, suffix3 ...
templates.py  the template language, CRF++ and Wapiti files, presets
inputs.py     sentences of any kind, and column files, as users hand them in
encode.py     the same as arrays for the compiled engine
"""

from laso.features.templates import (
    CHUNKING,
    Atom,
    Template,
    default_templates,
    parse_templates,
    read_crfpp,
    read_templates,
    read_wapiti,
)

__all__ = [
    "CHUNKING",
    "Atom",
    "Template",
    "default_templates",
    "parse_templates",
    "read_crfpp",
    "read_templates",
    "read_wapiti",
]
