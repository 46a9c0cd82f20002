"""Features of sequences: templates over columns, and the encoding of columns as integers.

base.py       base features, functions of one value: lower, shape, suffix3 ...
lists.py      word lists, clusters, a lexicon and a stemmer
templates.py  the template language
other_tools.py  template files of CRF++ and Wapiti
schemes.py    chunks as tags: BIO, IOB1, IOBES
inputs.py     the inputs that users pass, as columns or feature lists
encoder.py    columns as arrays of integers for the compiled engine
windows.py    templates in compiled code: values around a position, hashed into feature keys
"""

from laso.features.other_tools import read_crfpp, read_wapiti
from laso.features.templates import (
    CHUNKING,
    Atom,
    Template,
    default_templates,
    parse_templates,
    read_templates,
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
