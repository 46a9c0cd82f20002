"""Download a corpus from its home: partial downloads are resumed, checksums are verified."""

from __future__ import annotations

import gzip
import hashlib
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path

from laso.data.registry import Corpus, File
from laso.errors import BadData, MissingData

PART = ".part"
BLOCK = 1 << 16
TIMEOUT = 30.0  # seconds without a response

Progress = Callable[[str, int, int | None], None]
"""A callback with a file's name, the bytes so far, and the bytes in all (None: unknown)."""


def get(corpus: Corpus, folder: Path, progress: Progress | None = None) -> Path:
    """Download the files of a corpus into a folder of its name; complete files are kept.

    Parameters
    ----------
    corpus : Corpus
        The corpus.
    folder : Path
        The folder that will contain the corpus's folder.
    progress : callable, default=None
        A callback for each received block.

    Returns
    -------
    Path
        The corpus's folder.
    """
    if not corpus.can_be_got:
        raise MissingData(
            f"the corpus {corpus.name} cannot be got from here: get it from {corpus.home}, put its "
            f"files into a folder called {corpus.name}, and set LASO_DATA to the folder that holds "
            f"{corpus.name}"
        )
    target = folder / corpus.name
    target.mkdir(parents=True, exist_ok=True)
    for file in corpus.files:
        if not is_whole(target / file.name, file):
            _get_file(file, target, progress or (lambda name, there, of: None))
    return target


def is_whole(path: Path, file: File) -> bool:
    """Return whether the file exists and has the expected size and checksum."""
    return path.is_file() and path.stat().st_size == file.bytes and _sha256(path) == file.sha256


def _get_file(file: File, target: Path, progress: Progress) -> None:
    part = target / (Path(file.url).name + PART)
    try:
        _fetch(file, part, progress)
    except (OSError, HTTPException) as error:
        raise MissingData(
            f"{file.url} cannot be got: {error}; what came of it is kept, and the same command "
            "goes on with it"
        ) from error
    path = target / file.name
    unpacked = _unpack(part, file)
    if not is_whole(unpacked, file):
        digest = _sha256(unpacked)
        unpacked.unlink()
        part.unlink(missing_ok=True)
        raise BadData(
            f"found a file of SHA-256 {digest}, expected {file.sha256} of {file.bytes} bytes; it "
            "was deleted",
            file=file.url,
        )
    unpacked.replace(path)
    part.unlink(missing_ok=True)


def _fetch(file: File, part: Path, progress: Progress) -> None:
    """Append the missing bytes; start over if the server does not support ranges."""
    there = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(file.url, headers={"User-Agent": "laso"})
    if there:
        request.add_header("Range", f"bytes={there}-")
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and there:  # nothing is missing
            return
        raise
    with response, part.open("ab" if response.status == 206 else "wb") as out:
        there = there if response.status == 206 else 0
        length = response.headers.get("Content-Length")
        whole = there + int(length) if length is not None else None
        while piece := response.read(BLOCK):
            out.write(piece)
            there += len(piece)
            progress(file.name, there, whole)
        if whole is not None and there < whole:
            raise OSError(f"it broke off after {there} of {whole} bytes")


def _unpack(part: Path, file: File) -> Path:
    if not file.url.endswith(".gz"):
        return part
    path = part.with_suffix(".unpacked")
    try:
        with gzip.open(part) as packed, path.open("wb") as out:
            # One byte more than expected shows that the file is too long, however long it is.
            left = file.bytes + 1
            while left and (piece := packed.read(min(BLOCK, left))):
                out.write(piece)
                left -= len(piece)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        pass  # the checksum of what was unpacked differs, which is an error
    return path


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
