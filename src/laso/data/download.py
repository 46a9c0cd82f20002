"""Get a corpus from its home: what was begun goes on, what is not the file wanted is refused."""

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
PIECE = 1 << 16
PATIENCE = 30.0  # seconds without an answer

Progress = Callable[[str, int, int | None], None]
"""Called with a file's name, the bytes there are, and those there will be (None: not known)."""


def get(corpus: Corpus, folder: Path, progress: Progress | None = None) -> Path:
    """All files of a corpus in a folder of its name; those that are there and whole are kept."""
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
    """Is the file there, and is it the one wanted?"""
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
    unpacked = _unpacked(part, file)
    if not is_whole(unpacked, file):
        found = _sha256(unpacked)
        unpacked.unlink()
        part.unlink(missing_ok=True)
        raise BadData(
            f"found a file of SHA-256 {found}, expected {file.sha256} of {file.bytes} bytes; it "
            "was deleted",
            file=file.url,
        )
    unpacked.replace(path)
    part.unlink(missing_ok=True)


def _fetch(file: File, part: Path, progress: Progress) -> None:
    """Bytes from where the part ends; from the beginning if the home cannot do that."""
    there = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(file.url, headers={"User-Agent": "laso"})
    if there:
        request.add_header("Range", f"bytes={there}-")
    try:
        answer = urllib.request.urlopen(request, timeout=PATIENCE)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and there:  # nothing is missing
            return
        raise
    with answer, part.open("ab" if answer.status == 206 else "wb") as out:
        there = there if answer.status == 206 else 0
        length = answer.headers.get("Content-Length")
        whole = there + int(length) if length is not None else None
        while piece := answer.read(PIECE):
            out.write(piece)
            there += len(piece)
            progress(file.name, there, whole)
        if whole is not None and there < whole:
            raise OSError(f"it broke off after {there} of {whole} bytes")


def _unpacked(part: Path, file: File) -> Path:
    if not file.url.endswith(".gz"):
        return part
    path = part.with_suffix(".unpacked")
    try:
        with gzip.open(part) as packed, path.open("wb") as out:
            # One byte more than wanted tells that it is too long, whatever it would unpack to.
            left = file.bytes + 1
            while left and (piece := packed.read(min(PIECE, left))):
                out.write(piece)
                left -= len(piece)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        pass  # what came out is not what is wanted, and is told so
    return path


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
