"""Vectors on disk, by the words of a sentence and the fingerprint of the encoder.

Training reads the same sentences again and again, and so does the next experiment. Vectors are kept
in *packs*: files of about 30 MB that are written once, completely or not at all, so that several
processes may write at the same time. When all packs together exceed the limit, those that have not
been used for longest are removed. Nothing in them is ever run: they have numbers only.

A pack, all numbers little-endian:

    16 bytes               b"laso vectors 1" and two zeros
    uint64, uint64         the number of sentences, and of dimensions
    24 bytes a sentence    16 of its hash, uint32 words, uint32 CRC-32 of its vectors
    float32                the vectors, one sentence after the other
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from laso.encoders.base import (
    Array,
    Encoder,
    Progress,
    Sentence,
    dimensions_of,
    encoded,
    fingerprint_of,
    name_of,
)
from laso.files.atomic import replacing

log = logging.getLogger("laso.encoders")

MAGIC = b"laso vectors 1\0\0"
ENTRY = np.dtype([("key", "V16"), ("words", "<u4"), ("crc", "<u4")])
PACK = 1 << 25  # bytes of vectors in a file, about
FEWEST = (
    2000  # words in a call that are worth a file: fewer are encoded again in less than a second
)
LIMIT_GB = 2.0
Key = bytes


class Place(NamedTuple):
    """Where the vectors of a sentence are."""

    path: Path
    offset: int
    words: int
    crc: int


class CachedEncoder:
    """An encoder whose vectors are kept on disk.

    Parameters
    ----------
    encoder : Encoder
        An encoder with a fingerprint, which changes whenever its vectors do.
    folder : path, default=None
        The folder of the packs; None for one in ``LASO_CACHE``, or in the user's cache folder.
    limit : float, default=None
        The gigabytes that all packs may take; None for ``LASO_VECTORS_GB``, or 2.

    Examples
    --------
    >>> import tempfile
    >>> class Lengths:
    ...     dimensions, fingerprint = 1, "lengths of words, 1"
    ...
    ...     def encode(self, sentences):
    ...         return [[[len(word)] for word in words] for words in sentences]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     CachedEncoder(Lengths(), folder=folder).encode([["a", "word"]])[0].tolist()
    [[1.0], [4.0]]
    """

    def __init__(
        self,
        encoder: Encoder,
        *,
        folder: str | os.PathLike[str] | None = None,
        limit: float | None = None,
    ) -> None:
        self.encoder: Any = encoder
        self.fingerprint = fingerprint_of(encoder)
        if not self.fingerprint:
            raise ValueError(
                f"found no fingerprint of {name_of(encoder)}, expected a hash of all that "
                "determines its vectors"
            )
        self.name, self.dimensions = name_of(encoder), dimensions_of(encoder)
        self.root = cache_folder() if folder is None else Path(folder)
        self.limit = _limit_gb() if limit is None else limit
        self._places: dict[Key, Place] = {}
        self._read: set[Path] = set()

    @property
    def folder(self) -> Path:
        """The folder of the packs of this encoder."""
        return self.root / hashlib.sha256(self.fingerprint.encode()).hexdigest()[:32]

    def encode(
        self, sentences: Sequence[Sentence], progress: Progress | None = None
    ) -> list[Array]:
        """Return the vectors of sentences, from the disk if they are there."""
        if self.limit <= 0:
            return encoded(self.encoder, sentences, progress)
        keys = [key_of(words) for words in sentences]
        vectors = self._kept(dict(zip(keys, sentences, strict=True)))
        new: dict[Key, Sentence] = {}
        for key, words in zip(keys, sentences, strict=True):
            if key not in vectors:
                new[key] = words
        total = sum(map(len, sentences))
        done = total - sum(map(len, new.values()))
        if progress is not None and total > done > 0:
            progress(done, total)
        left = self.limit * 1e9
        for part in self._parts(new):
            size = sum(map(len, part.values()))
            report = None if progress is None else _shifted(progress, done, total)
            made = encoded(self.encoder, list(part.values()), report)
            vectors |= zip(part, made, strict=True)
            done += size
            left -= size * self.dimensions * 4
            if size >= FEWEST and left >= 0:  # what does not fit would remove itself
                self._keep(dict(zip(part, made, strict=True)))
        if progress is not None and not new:
            progress(total, total)
        return [vectors[key] for key in keys]

    def _parts(self, new: dict[Key, Sentence]) -> Iterator[dict[Key, Sentence]]:
        """Yield the sentences that one pack gets each."""
        words = PACK // (4 * max(self.dimensions, 1))
        part: dict[Key, Sentence] = {}
        size = 0
        for key, sentence in new.items():
            part[key] = sentence
            size += len(sentence)
            if size >= words:
                yield part
                part, size = {}, 0
        if part:
            yield part

    # ----------------------------------------------------------------------- reading

    def _kept(self, keys: dict[Key, Sentence]) -> dict[Key, Array]:
        """Return the vectors of those sentences that are on disk."""
        self._find_packs()
        wanted: dict[Path, list[tuple[Key, Place]]] = {}
        for key, sentence in keys.items():
            place = self._places.get(key)
            if place is not None and place.words == len(sentence):
                wanted.setdefault(place.path, []).append((key, place))
        vectors: dict[Key, Array] = {}
        for path, places in wanted.items():
            try:
                with path.open("rb") as file:
                    for key, place in sorted(places, key=lambda pair: pair[1].offset):
                        file.seek(place.offset)
                        data = file.read(place.words * self.dimensions * 4)
                        if zlib.crc32(data) == place.crc:
                            array = np.frombuffer(data, "<f4").astype(np.float32)
                            vectors[key] = array.reshape(place.words, self.dimensions)
                os.utime(path)
            except OSError:  # another process has removed it
                continue
        return vectors

    def _find_packs(self) -> None:
        """Read the heads of packs that are new."""
        try:
            paths = set(self.folder.glob("*.vectors"))
        except OSError:
            paths = set()
        if gone := self._read - paths:
            self._places = {k: p for k, p in self._places.items() if p.path not in gone}
            self._read -= gone
        for path in sorted(paths - self._read):
            self._read.add(path)
            with contextlib.suppress(OSError, ValueError):
                self._places |= self._head(path)

    def _head(self, path: Path) -> dict[Key, Place]:
        """Return what a pack has; one that is damaged has nothing."""
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if file.read(len(MAGIC)) != MAGIC:
                return {}
            count, dimensions = np.frombuffer(file.read(16), "<u8").tolist()
            if dimensions != self.dimensions or count * ENTRY.itemsize > size:
                return {}
            entries = np.frombuffer(file.read(count * ENTRY.itemsize), ENTRY)
            words = entries["words"].astype(np.int64)
            offsets = file.tell() + 4 * dimensions * (np.cumsum(words) - words)
            if file.tell() + 4 * dimensions * int(words.sum()) != size:
                return {}
        columns = (entries["key"], offsets.tolist(), words.tolist(), entries["crc"].tolist())
        return {
            key.tobytes(): Place(path, offset, n, crc)
            for key, offset, n, crc in zip(*columns, strict=True)
        }

    # ----------------------------------------------------------------------- writing

    def _keep(self, vectors: dict[Key, Array]) -> None:
        """Write a pack; a disk that is full or cannot be written to costs time, not the work."""
        entries = np.zeros(len(vectors), ENTRY)
        arrays = [np.ascontiguousarray(array, "<f4") for array in vectors.values()]
        for entry, key, array in zip(entries, vectors, arrays, strict=True):
            entry["key"] = np.void(key)
            entry["words"], entry["crc"] = len(array), zlib.crc32(array.data)
        digest = hashlib.blake2b(entries["key"].tobytes(), digest_size=16).hexdigest()
        path = self.folder / f"{digest}.vectors"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with replacing(path) as file:
                file.write(MAGIC + np.array([len(arrays), self.dimensions], "<u8").tobytes())
                file.write(entries.tobytes())
                for array in arrays:
                    file.write(array.data)
            prune(self.root, int(self.limit * 1e9), keep=path)
        except OSError as error:
            log.warning("cannot keep vectors in %s: %s", self.folder, error)

    def __deepcopy__(self, memo: object) -> CachedEncoder:
        return self  # what it returns does not change

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_places": {}, "_read": set()}


def key_of(words: Sentence) -> Key:
    """Return a hash of the words of a sentence.

    Examples
    --------
    >>> key_of(["a", "bc"]) == key_of(["ab", "c"])
    False
    """
    texts = [word.encode("utf-8", "surrogatepass") for word in words]
    lengths = np.array([len(text) for text in texts], "<u4").tobytes()
    return hashlib.blake2b(lengths + b"".join(texts), digest_size=16).digest()


def cache_folder() -> Path:
    """Return the folder of vectors: in LASO_CACHE, or in the user's cache folder."""
    if os.environ.get("LASO_CACHE"):
        return Path(os.environ["LASO_CACHE"]) / "vectors"
    from platformdirs import user_cache_path

    return Path(user_cache_path("laso")) / "vectors"


def prune(root: Path, limit: int, *, keep: Path | None = None) -> None:
    """Remove the packs not used for longest, until all take at most ``limit`` bytes."""
    packs = []
    for path in root.glob("*/*.vectors"):
        with contextlib.suppress(OSError):  # another process has removed it
            status = path.stat()
            packs.append((path == keep, status.st_mtime_ns, status.st_size, path))
    left = limit - sum(size for _, _, size, _ in packs)
    for _, _, size, path in sorted(packs):
        if left >= 0:
            return
        with contextlib.suppress(OSError):
            path.unlink()
            left += size


def _limit_gb() -> float:
    text = os.environ.get("LASO_VECTORS_GB", "")
    try:
        limit = float(text or LIMIT_GB)
    except ValueError:
        limit = -1.0
    if not 0 <= limit < float("inf"):
        raise ValueError(f"found LASO_VECTORS_GB={text}, expected gigabytes, or 0 to keep nothing")
    return limit


def _shifted(progress: Progress, before: int, total: int) -> Progress:
    return lambda done, _: progress(before + done, total)
