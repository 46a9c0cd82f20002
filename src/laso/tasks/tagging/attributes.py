"""The task of ``CRF``: one label for each token, whose features are given."""

from __future__ import annotations

from typing import Any

from laso.data.table import Data
from laso.engine.text.layout import AS_TUPLE
from laso.features.inputs import read_attributes
from laso.tasks.tagging.task import TaggingTask


class AttributeTask(TaggingTask):
    """Tagging of tokens that are feature lists in the formats of python-crfsuite."""

    def list_kinds(self) -> int:
        """Return the types of tokens, with which a tuple is a feature list, too."""
        kinds = super().list_kinds()
        return kinds | AS_TUPLE if kinds else 0

    def read_data(self, X: Any, *, named: bool) -> Data:
        """Return feature lists; a tuple is one, too."""
        return read_attributes(X, named=named)
