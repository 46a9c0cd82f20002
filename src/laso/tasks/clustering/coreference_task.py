"""The task of ``Clusterer(preset="coreference")``: which mentions of a text are of one entity."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from laso.data.coreference import Mention, Text, read_coreference, write_coreference
from laso.data.lines import numbered_lines
from laso.engine.layout import Array
from laso.errors import BadData, InputError, quoted
from laso.tasks.clustering.coreference import FIELDS, TEMPLATES, alike, mentions_of
from laso.tasks.clustering.encoder import Candidates
from laso.tasks.clustering.fields import Document
from laso.tasks.clustering.task import ClusteringTask
from laso.tasks.clustering.templates import OF_CLUSTERS, parse_templates

CLUSTERS = "clusters"
NEAREST = 80  # mentions before one that are always compared with it


class CoreferenceTask(ClusteringTask):
    """Finds which mentions of a text are of one entity.

    The parameters are those of ``laso.Clusterer``.
    """

    name = "coreference"

    def documents(self, X: Iterable[Any]) -> list[Document]:
        """Return texts as documents of mentions."""
        documents = []
        for i, x in enumerate(X, start=1):
            try:
                text = Text.of(x)
            except InputError as error:
                raise error.at(sentence=i) from None
            documents.append(Document(mentions_of(text), i, text))
        self._add_vectors(documents)
        return documents

    def _add_vectors(self, documents: Sequence[Document]) -> None:
        """Give mentions the mean of their words' vectors, if there is an encoder."""
        if self.dense is None or not (self.dense.size or self.dense.encoder):
            return
        sentences = [sentence for document in documents for sentence in document.text.sentences]
        lengths = np.array([len(sentence) for sentence in sentences], np.int64)
        vectors = self.dense.of_inputs(None, lambda: sentences, lengths, learning=True)
        starts, first = np.concatenate([[0], np.cumsum(lengths)]), 0
        for document in documents:
            text = document.text
            document.columns["vector"] = [
                _mean(vectors, starts[first + m.sentence], m) for m in text.mentions
            ]
            first += len(text.sentences)

    def read_inputs(self, X: Any) -> list[Document]:
        """Return the texts of a list or of a file."""
        if isinstance(X, (str, os.PathLike)):
            X = self.read_file(os.fspath(X), labelled=False)[0]
        return super().read_inputs(X)

    def read(self, X: Any, y: Any) -> tuple[list[Document], list[Any]]:
        """Return texts and the entities of their mentions; of a file they are in it."""
        if y is None and isinstance(X, (str, os.PathLike)):
            X, y = self.read_file(os.fspath(X), labelled=True)
        return super().read(X, y)

    def _kinds(self, documents: Sequence[Document]) -> dict[str, str]:
        """Return the kinds of those fields of mentions that have values."""
        return {
            name: kind
            for name, kind in FIELDS.items()
            if any(v is not None for d in documents for v in d.columns[name])
            and (self.fields is None or name in self.fields)
        }

    def make_candidates(self) -> Candidates:
        """Return the last mentions, and those before them that share a head, a name or "I"."""
        if self.candidates is not None or self.blocking:
            return super().make_candidates()
        return Candidates(self.window, [alike], nearest=NEAREST)

    def default_features(self, kinds: Mapping[str, str], own: Sequence[str]) -> Sequence[str]:
        """Return the templates whose fields the texts have."""
        known = {*kinds, *OF_CLUSTERS}
        return [
            str(template)
            for template in parse_templates(TEMPLATES)
            if all(atom.column in known for atom in template.atoms)
        ]

    def words(self, x: Any) -> list[str]:
        """Return the words of each mention."""
        text = x.text if isinstance(x, Document) else Text.of(x)
        return [" ".join(text.words(mention)) for mention in text.mentions]

    def read_file(self, path: str, *, labelled: bool) -> tuple[list[Any], list[Any] | None]:
        """Return the texts of a CoNLL file or of JSON lines, and the entities of their mentions."""
        lines = numbered_lines(path)
        first = next((line for _, line in lines if line.strip()), "")
        if first.lstrip().startswith("{"):
            return _read_json(path, labelled=labelled)
        pairs = list(read_coreference(path))
        if not pairs:
            raise BadData("found no document, expected #begin document", file=path, line=1)
        return [text for text, _ in pairs], [ids for _, ids in pairs] if labelled else None

    def write_output(self, x: Any, y: Any) -> str:
        """Return a text with its entities as a CoNLL file has it."""
        return write_coreference(x.text if isinstance(x, Document) else Text.of(x), y)


def _mean(vectors: Array, start: int, mention: Mention) -> Array:
    """Return the mean of the vectors of a mention's words, whose sentence begins at ``start``."""
    words = vectors[start + mention.first : start + mention.last + 1]
    return np.asarray(words.mean(axis=0))


def _read_json(path: str, *, labelled: bool) -> tuple[list[Any], list[Any] | None]:
    texts, ids = [], []
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
            texts.append(Text.of(value))
        except (json.JSONDecodeError, RecursionError) as error:
            raise BadData(f"found no JSON: {error}", file=path, line=number) from None
        except InputError as error:
            raise error.at(file=path, line=number) from None
        if labelled:
            given = value.get(CLUSTERS)
            if not isinstance(given, list) or len(given) != len(texts[-1].mentions):
                raise BadData(
                    f'found {quoted(given)} for "{CLUSTERS}", expected an id or null for each '
                    "mention",
                    file=path,
                    line=number,
                )
            ids.append(given)
    return texts, ids if labelled else None
