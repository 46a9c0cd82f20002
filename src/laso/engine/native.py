"""Run compiled entry points without Numba.

Importing Numba and LLVM costs more memory and time than all the rest of this library, and only
compilation needs them. So the object code of an entry point is kept in a file, and this module
puts it into memory and calls it: a small linker for ELF objects of x86-64 Linux. Anything that it
does not know raises ``Unsupported``, and Numba does the work as it does elsewhere.

An entry point takes one pointer, to an array of int64: the number of its results and the results,
then the arguments, flattened. An array is its address, shape and strides; a real number its bits.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import mmap
import os
import pickle
import platform
import struct
import sys
import threading
from array import array
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FIRST = 8  # where the arguments begin
MAGIC = b"laso native 1\n"
PAGE = mmap.PAGESIZE
RETURNED = (0, -2)  # what a function compiled by Numba answers: a value, None

Function = Callable[[list[int]], Any]


class Unsupported(Exception):
    """Code, or a system, that this module cannot link."""


def possible() -> bool:
    """Is this a system whose objects can be linked?"""
    return sys.platform == "linux" and platform.machine() == "x86_64" and sys.maxsize > 1 << 32


# --------------------------------------------------------------------------- arguments


def described(arguments: Iterable[Any]) -> tuple[str, list[int]]:
    """The types of the arguments of a call, and the arguments as numbers."""
    kinds: list[str] = []
    numbers = [0] * FIRST
    for value in arguments:
        _describe(value, kinds, numbers)
    return " ".join(kinds), numbers


def _describe(value: Any, kinds: list[str], numbers: list[int]) -> None:
    if isinstance(value, np.ndarray):
        kinds.append(f"{value.dtype.str}{value.ndim}{_order(value.flags)}")
        numbers.append(value.ctypes.data)
        numbers += value.shape
        numbers += value.strides
    elif isinstance(value, tuple):
        kinds.append(f"{type(value).__qualname__}(")
        for part in value:
            _describe(part, kinds, numbers)
        kinds.append(")")
    else:
        kinds.append(type(value).__name__)
        real = isinstance(value, float | np.floating)
        numbers += struct.unpack("<q", struct.pack("<d", value)) if real else [int(value)]


def _order(flags: Any) -> str:
    """How an array lies in memory, as far as Numba's types tell it."""
    if flags.carray:
        return "C"
    order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
    return order + "r" * (not flags.writeable) + "u" * (not flags.aligned)


# --------------------------------------------------------------------------- files


def file_name(entry: str, signature: str) -> str:
    """The file for an entry point with arguments of these types."""
    return f"{entry}-{hashlib.sha256(signature.encode()).hexdigest()[:16]}.native"


def save(file: Path, symbol: str, code: bytes) -> None:
    """Write object code and the name of its function, at once or not at all."""
    payload = symbol.encode() + b"\0" + code
    part = file.with_name(f"{file.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        part.write_bytes(MAGIC + hashlib.sha256(payload).digest() + payload)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def read(file: Path) -> tuple[str, bytes] | None:
    """What ``save`` wrote; None if there is no such file, or not a whole one."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    begin = len(MAGIC) + hashlib.sha256().digest_size
    payload = content[begin:]
    if content[:begin] != MAGIC + hashlib.sha256(payload).digest():
        return None
    symbol, _, code = payload.partition(b"\0")
    return symbol.decode(), code


# --------------------------------------------------------------------------- linking


class Section(NamedTuple):
    """A section header of ELF-64."""

    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry_size: int


class Symbol(NamedTuple):
    """An entry of a symbol table; ``section`` may also be UNDEFINED or COMMON."""

    name: int
    info: int
    other: int
    section: int
    value: int
    size: int


HEADER, SECTION, SYMBOL, RELOCATION = "<16sHHIQQQIHHHHHH", "<IIQQQQIIQQ", "<IBBHQQ", "<QQq"
X86_64, RELOCATABLE = 62, 1
SYMBOLS, WITH_ADDENDS, ZEROS, WITHOUT_ADDENDS = 2, 4, 8, 9  # types of sections
IN_MEMORY, EXECUTABLE = 2, 4  # flags of sections
UNDEFINED, COMMON = 0, 0xFFF2
ABS64, PC32, PLT32, PC64 = 1, 2, 4, 24
THROUGH_TABLE = (9, 41, 42)  # GOTPCREL, GOTPCRELX, REX_GOTPCRELX
JUMP = bytes.fromhex("ff2500000000")  # to the address that follows
STUB = 16


def linked(symbol: str, code: bytes) -> Function:
    """The function of this name in object code, ready to be called."""
    try:
        return _function(*_Image(code).mapped(symbol))
    except (struct.error, LookupError, ValueError, OSError) as error:
        raise Unsupported(f"not an object that can be linked: {error!r}") from error


class _Image:
    """Object code with a place for everything: code and stubs, a page boundary, data, a table.

    A stub jumps to a function outside, which may be too far away for a call. The table has the
    address of each symbol. (The procedure linkage and global offset tables of a real linker.)
    """

    def __init__(self, code: bytes) -> None:
        ident, kind, machine, _, _, _, start, _, _, _, _, _, count, _ = struct.unpack_from(
            HEADER, code
        )
        if ident[:6] != b"\x7fELF\x02\x01" or (kind, machine) != (RELOCATABLE, X86_64):
            raise Unsupported("not a relocatable ELF object for x86-64")
        self.code = code
        headers = struct.iter_unpack(SECTION, code[start : start + 64 * count])
        self.sections = [Section(*header) for header in headers]
        (table,) = (section for section in self.sections if section.type == SYMBOLS)
        self.names = self._content(self.sections[table.link])
        self.symbols = [Symbol(*s) for s in struct.iter_unpack(SYMBOL, self._content(table))]
        self.end = 0
        self.places: dict[int, int] = {}  # of sections
        self._place_sections(EXECUTABLE)
        self.stubs = {
            i: self._room(STUB, STUB)
            for i, symbol in enumerate(self.symbols)
            if symbol.section == UNDEFINED and symbol.name
        }
        self.boundary = self._room(0, PAGE)
        self._place_sections(0)
        self.common = {
            i: self._room(symbol.size, symbol.value)
            for i, symbol in enumerate(self.symbols)
            if symbol.section == COMMON
        }
        self.table = self._room(8 * len(self.symbols), 8)

    def _content(self, section: Section) -> bytes:
        return self.code[section.offset : section.offset + section.size]

    def _room(self, size: int, align: int) -> int:
        place = -(-self.end // max(1, align)) * max(1, align)
        self.end = place + size
        return place

    def _place_sections(self, executable: int) -> None:
        for i, section in enumerate(self.sections):
            if section.flags & IN_MEMORY and section.flags & EXECUTABLE == executable:
                self.places[i] = self._room(section.size, section.align)

    def _name(self, symbol: Symbol) -> str:
        return self.names[symbol.name : self.names.index(b"\0", symbol.name)].decode()

    def mapped(self, wanted: str) -> tuple[int, mmap.mmap]:
        """The address of a function, once all is in memory; it is never writable and executable."""
        memory = mmap.mmap(-1, max(self.end, 1), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        for i, place in self.places.items():
            if self.sections[i].type != ZEROS:
                memory[place : place + self.sections[i].size] = self._content(self.sections[i])
        addresses = [self._address(i, base) for i in range(len(self.symbols))]
        for i, place in self.stubs.items():
            memory[place : place + STUB - 2] = JUMP + struct.pack("<Q", addresses[i])
        struct.pack_into(f"<{len(addresses)}Q", memory, self.table, *addresses)
        self._relocate(memory, base, addresses)
        protect = _libraries()[0].mprotect
        protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        if protect(base, self.boundary, mmap.PROT_READ | mmap.PROT_EXEC):
            raise Unsupported("the system refuses to make code executable")
        found = {self._name(s): at for s, at in zip(self.symbols, addresses, strict=True) if at}
        return found[wanted], memory

    def _address(self, i: int, base: int) -> int:
        symbol = self.symbols[i]
        if i in self.stubs:
            return _outside(self._name(symbol))
        if i in self.common:
            return base + self.common[i]
        if symbol.section in self.places:
            return base + self.places[symbol.section] + symbol.value
        return 0  # nothing that is in memory; a relocation that asks for it is refused

    def _relocate(self, memory: mmap.mmap, base: int, addresses: list[int]) -> None:
        for relocations in self.sections:
            if relocations.info not in self.places:
                continue
            if relocations.type == WITHOUT_ADDENDS:
                raise Unsupported("relocations without addends")
            if relocations.type != WITH_ADDENDS:
                continue
            for offset, info, addend in struct.iter_unpack(RELOCATION, self._content(relocations)):
                place = self.places[relocations.info] + offset
                target, kind, here = info >> 32, info & 0xFFFFFFFF, base + place
                if not addresses[target]:
                    raise Unsupported(f"relocation to {self._name(self.symbols[target])!r}")
                if kind == ABS64:
                    struct.pack_into("<Q", memory, place, addresses[target] + addend)
                elif kind == PC64:
                    struct.pack_into("<q", memory, place, addresses[target] + addend - here)
                elif kind in THROUGH_TABLE:
                    slot = base + self.table + 8 * target
                    struct.pack_into("<i", memory, place, slot + addend - here)
                elif kind == PLT32 and target in self.stubs:
                    stub = base + self.stubs[target]
                    struct.pack_into("<i", memory, place, stub + addend - here)
                elif kind in (PC32, PLT32) and target not in self.stubs:
                    struct.pack_into("<i", memory, place, addresses[target] + addend - here)
                else:
                    raise Unsupported(f"relocation of type {kind}")


@functools.cache
def _libraries() -> tuple[ctypes.CDLL, ...]:
    return ctypes.CDLL(None), ctypes.CDLL("libm.so.6")


def _outside(name: str) -> int:
    """The address of a function of the C library."""
    for library in _libraries():
        with contextlib.suppress(AttributeError):
            return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    raise Unsupported(f"a function {name!r} is needed")


# --------------------------------------------------------------------------- calls


class Failure(ctypes.Structure):
    """What a function compiled by Numba points to when it raises: the exception, pickled."""

    _fields_ = (("pickled", ctypes.c_void_p), ("size", ctypes.c_int32))


# Calls by ctypes release the interpreter's lock, so that threads run at once.
COMPILED = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.POINTER(Failure)), ctypes.c_void_p
)


def _function(address: int, memory: mmap.mmap) -> Function:
    start = COMPILED(address)

    def function(numbers: list[int]) -> tuple[int, ...] | None:
        block = array("q", numbers)
        failure = ctypes.POINTER(Failure)()
        status = start(ctypes.byref(ctypes.c_void_p()), failure, block.buffer_info()[0])
        if status not in RETURNED:
            raise _raised(failure)
        return tuple(block[1 : 1 + block[0]]) or None

    function.memory = memory  # type: ignore[attr-defined]  # as long as the function
    return function


def _raised(failure: Any) -> Exception:
    if not failure:
        return RuntimeError("compiled code has failed")
    info = failure.contents
    kind, arguments, _ = pickle.loads(ctypes.string_at(info.pickled, info.size))
    error: Exception = kind(*arguments)
    return error
