"""Encoders from files: a BERT in safetensors with its tokenizer, computed by NumPy."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import json
import os
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from laso.encoders import weights
from laso.encoders.base import Array, Progress, Sentence
from laso.encoders.pieces import Pieces, Window, missing, windows
from laso.errors import BadModel, quoted
from laso.locks import cached_property, shared_lock

PIECES = 1024  # in a batch: more make nothing faster
RECIPE = "bert, mean of pieces, 1"  # changes when the same files give other vectors
EXPECTED = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "is_decoder": False,
}
USED = ("hidden_size", "num_attention_heads", "layer_norm_eps", "max_position_embeddings")


class BertEncoder:
    """An encoder of words by the first layers of a BERT: the mean of the vectors of their pieces.

    A sentence is encoded as a whole; one of more pieces than the model has places is cut into
    windows that overlap. The forward pass needs NumPy only; ``tokenizers`` splits the words.

    Parameters
    ----------
    folder : path
        The folder with ``model.safetensors``, ``config.json`` and ``tokenizer.json``.
    layer : int, default=None
        The layer whose output is used, from 1; None for the last, 0 for the embeddings.
    threads : int, default=None
        The number of threads; None for one on each core that the process may use.

    Examples
    --------
    >>> from laso.encoders import BertEncoder
    >>> BertEncoder("nowhere")
    Traceback (most recent call last):
        ...
    laso.errors.BadModel: nowhere/config.json: found no such file, expected the settings of a BERT
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        layer: int | None = None,
        threads: int | None = None,
    ) -> None:
        self.folder, self.threads = Path(folder), threads
        self.config = read_config(self.folder)
        layers = self.config["num_hidden_layers"]
        self.layer = layers if layer is None else layer
        if not 0 <= self.layer <= layers:
            raise ValueError(f"found layer {layer} of {folder}, expected 0 to {layers}")
        self.name = f"{self.folder.name}:{self.layer}"
        self.dimensions = int(self.config["hidden_size"])

    @cached_property
    def fingerprint(self) -> str:
        """A hash of weights, settings, tokenizer and layer, which determine the vectors."""
        digests = [
            weights.sha256(_existing(self.folder, name))
            for name in (weights.TENSORS, weights.TOKENIZER)
        ]
        return fingerprint_by(self.config, self.layer, *digests)

    @cached_property
    def pieces(self) -> Pieces:
        """The tokenizer."""
        longest = int(self.config["max_position_embeddings"])
        return Pieces(_existing(self.folder, weights.TOKENIZER), longest)

    @cached_property
    def bert(self) -> Any:
        """The forward pass, with the weights of the layers that it needs."""
        from laso.encoders.bert import Bert, Shape

        shape = Shape(
            heads=int(self.config["num_attention_heads"]),
            epsilon=float(self.config["layer_norm_eps"]),
            layers=self.layer,
        )
        path = _existing(self.folder, weights.TENSORS)
        with Tensors(path) as tensors:
            bert = Bert(tensors, shape)
        if bert.width != self.dimensions or bert.longest != self.pieces.longest:
            raise BadModel("its tensors do not have the sizes of config.json", file=str(path))
        if self.pieces.count > len(bert.of_pieces):
            raise BadModel(
                f"found vectors of {len(bert.of_pieces)} pieces, expected {self.pieces.count}, as "
                "many as the tokenizer has",
                file=str(path),
            )
        return bert

    def encode(
        self, sentences: Sequence[Sentence], progress: Progress | None = None
    ) -> list[Array]:
        """Return the vectors of the words of sentences, an array (words, dimensions) for each.

        ``progress(done, total)`` is called with numbers of words after each batch.
        """
        sizes = [len(words) for words in sentences]
        rows = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        total, done = int(rows[-1]), 0
        out = np.empty((total, self.dimensions), np.float32)
        parts = [
            window
            for sentence, row in zip(self.pieces.of(sentences), rows, strict=False)
            for window in windows(sentence, int(row), self.pieces)
        ]
        parts.sort(key=lambda window: len(window.ids))
        with contextlib.closing(self._computed(list(batches(parts)), out)) as computed:
            for words in computed:
                done += words
                if progress is not None:
                    progress(done, total)
        return [out[begin:end] for begin, end in itertools.pairwise(rows)]

    def _computed(self, batches: list[list[Window]], out: Array) -> Generator[int]:
        """Write the vectors of batches into ``out``; yield the number of words of each."""
        if len(batches) < 2:
            for batch in batches:
                yield self._compute(batch, out, self._room([batch]))
            return
        from laso.engine.machine import default_threads

        threads = min(self.threads or default_threads(), len(batches))
        rooms = [self._room(batches) for _ in range(threads)]

        def compute(batch: list[Window]) -> int:
            room = rooms.pop()
            try:
                return self._compute(batch, out, room)
            finally:
                rooms.append(room)

        # Each thread multiplies matrices of its own, which costs less than sharing each of them.
        with _one_thread_each:
            if threads == 1:
                yield from map(compute, batches)
                return
            pool = ThreadPoolExecutor(threads)
            try:
                yield from pool.map(compute, reversed(batches))  # the longest sentences first
            finally:
                pool.shutdown(cancel_futures=True)

    def _room(self, batches: list[list[Window]]) -> Any:
        from laso.encoders.bert import Room

        sizes = [sum(len(window.ids) for window in batch) for batch in batches]
        return Room(self.bert, max(sizes), max(len(batch[-1].ids) for batch in batches))

    def _compute(self, batch: list[Window], out: Array, room: Any) -> int:
        from laso.encoders import kernels

        x = self.bert.forward([window.ids for window in batch], room)
        starts = np.cumsum([0, *(len(window.ids) for window in batch)])
        first = np.concatenate(
            [window.first + start for window, start in zip(batch, starts, strict=False)]
        )
        counts = np.concatenate([window.counts for window in batch])
        rows = np.concatenate([np.arange(len(w.first), dtype=np.int64) + w.row for w in batch])
        kernels.means(out, rows, x, first, counts)
        return len(rows)

    def __deepcopy__(self, memo: object) -> BertEncoder:
        return self  # nothing in it changes

    def __reduce__(self) -> Any:
        return _loaded, (type(self), self.folder, self.layer, self.threads, self.name)


def fingerprint_by(config: dict[str, Any], layer: int, tensors: str, tokenizer: str) -> str:
    """Return the fingerprint of an encoder with these settings and hashes of its files."""
    parts = [RECIPE, str(layer), *(f"{name} {config[name]}" for name in USED), tensors, tokenizer]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _loaded(kind: type[BertEncoder], folder: Path, layer: int, threads: int, name: str) -> Any:
    encoder = kind(folder, layer=layer, threads=threads)
    encoder.name = name
    return encoder


def batches(parts: list[Window]) -> Iterator[list[Window]]:
    """Yield windows of about the same length together, of at most ``PIECES`` pieces if possible."""
    batch: list[Window] = []
    pieces = 0
    for window in parts:
        if batch and pieces + len(window.ids) > PIECES:
            yield batch
            batch, pieces = [], 0
        batch.append(window)
        pieces += len(window.ids)
    if batch:
        yield batch


class _OneThreadEach:
    """Lets the library that multiplies matrices use one thread, while any thread is inside."""

    def __init__(self) -> None:
        self.lock, self.inside = shared_lock(), 0
        self.limit: Any = None

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                self.limit = _controller().limit(limits=1, user_api="blas")
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                self.limit.restore_original_limits()


_one_thread_each = _OneThreadEach()


@functools.cache
def _controller() -> Any:
    try:
        from threadpoolctl import ThreadpoolController
    except ModuleNotFoundError as error:
        raise missing("threadpoolctl") from error
    return ThreadpoolController()


# --------------------------------------------------------------------------- files


class Tensors:
    """The tensors of a safetensors file by name, each read when it is asked for."""

    def __init__(self, path: Path) -> None:
        try:
            from safetensors import safe_open
        except ModuleNotFoundError as error:
            raise missing("safetensors") from error
        self.path = path
        try:
            self.file: Any = safe_open(str(path), framework="np")
        except Exception as error:  # the library raises a class of its own
            raise BadModel(f"found no safetensors: {error}", file=str(path)) from error

    def __enter__(self) -> Tensors:
        self.file.__enter__()
        self.names = frozenset(self.file.keys())
        return self

    def __exit__(self, *error: object) -> None:
        self.file.__exit__(*error)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __getitem__(self, name: str) -> Array:
        if name not in self.names:
            raise BadModel(f"found no tensor {name}, expected those of a BERT", file=str(self.path))
        array = np.asarray(self.file.get_tensor(name), np.float32)
        if not np.isfinite(array).all():
            raise BadModel(f"found a tensor {name} that is not finite", file=str(self.path))
        return array


def _existing(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file():
        what = {weights.CONFIG: "the settings", weights.TOKENIZER: "the tokenizer"}
        raise BadModel(
            f"found no such file, expected {what.get(name, 'the weights')} of a BERT",
            file=str(path),
        )
    return path


def read_config(folder: Path) -> dict[str, Any]:
    """Return the checked settings of a BERT."""
    path = _existing(folder, weights.CONFIG)
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        given = {name: config.get(name, expected) for name, expected in EXPECTED.items()}
        for name in ("hidden_size", "num_hidden_layers", "num_attention_heads"):
            if type(config[name]) is not int or config[name] < 1:
                raise ValueError(f"found {name} {quoted(config[name])}, expected a whole number")
        config.setdefault("max_position_embeddings", 512)
        config.setdefault("layer_norm_eps", 1e-12)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadModel(f"found no settings of a BERT: {error}", file=str(path)) from error
    for name, expected in EXPECTED.items():
        if given[name] != expected:
            raise BadModel(
                f"found {name} {quoted(given[name])}, expected {quoted(expected)}", file=str(path)
            )
    return dict(config)
