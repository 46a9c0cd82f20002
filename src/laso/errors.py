"""The errors that users meet, all of them ``LasoError``, and how they quote what was found."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, Self

QUOTED = 60  # characters of a value that a message shows
LONGEST = 2000  # characters of a message
LISTED = 30  # names that a message lists


class LasoError(Exception):
    """Base class of all errors of this library."""


class SearchFailed(LasoError):
    """A search emptied its queue before it dequeued a goal."""


class Unreachable(LasoError):
    """The problem's operators cannot reach the gold output that training needs."""


class MissingData(LasoError):
    """A corpus is missing; the message says where the search looked and how to get the corpus."""


class InputError(LasoError, ValueError):
    """Base class of the errors about input; the attributes say where the input is wrong.

    Parameters
    ----------
    message : str
        What was found and what was expected, without the position.
    file : str, optional
        The name of the file.
    line : int, optional
        The number of the line in the file, counted from 1.
    sentence : int, optional
        The number of the sentence in the data, counted from 1.
    token : int, optional
        The number of the token in the sentence, counted from 1.

    Examples
    --------
    >>> error = BadData("found no label", sentence=3, token=2)
    >>> print(error)
    sentence 3, token 2: found no label
    >>> print(error.at(file="train.txt", line=17))
    train.txt:17: found no label
    """

    def __init__(
        self,
        message: str = "",
        *,
        file: str | None = None,
        line: int | None = None,
        sentence: int | None = None,
        token: int | None = None,
    ):
        message = cut(message)
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line
        self.sentence = sentence
        self.token = token

    def at(
        self,
        *,
        file: str | None = None,
        line: int | None = None,
        sentence: int | None = None,
        token: int | None = None,
    ) -> Self:
        """Return the same error with further position fields; None keeps a field as it is."""
        # Not by copy(): libraries change for all exceptions how they are copied (tblib does).
        error = type(self).__new__(type(self), *self.args)
        vars(error).update(vars(self))
        given = {"file": file, "line": line, "sentence": sentence, "token": token}
        vars(error).update({name: value for name, value in given.items() if value is not None})
        return error.with_traceback(self.__traceback__)

    def __str__(self) -> str:
        counted = [("sentence", self.sentence), ("token", self.token)]
        if self.line is not None:
            where = f"line {self.line}" if self.file is None else f"{self.file}:{self.line}"
        else:
            inside = ", ".join(f"{name} {n}" for name, n in counted if n is not None)
            where = ": ".join(filter(None, (self.file, inside)))
        return f"{where}: {self.message}" if where else self.message


class BadData(InputError):
    """A file, a sentence or a label is malformed."""


class BadFeature(InputError):
    """A feature value, heuristic or score is not a finite number."""


class BadTemplate(InputError):
    """A feature template cannot be parsed; the message quotes the template and the error."""


class BadModel(InputError):
    """A model file is damaged, truncated, or was not written by this library."""


class BadProblem(LasoError):
    """A method of a compiled problem breaks a promise or leaves an array; the message names it."""


class OutOfMemory(LasoError, MemoryError):
    """An input or a model needs more memory than there is; the message says how much."""


class WorkerLost(LasoError):
    """A worker of a parallel training died, lacks memory or files, or has another version."""


def quoted(value: Any, *, limit: int = QUOTED) -> str:
    """Return the repr of a value for a message, truncated to ``limit`` characters."""
    # A string is cut first: the repr of a long one may be four times as long.
    is_long = isinstance(value, (str, bytes)) and len(value) > limit
    try:
        text = repr(value[:limit] if is_long else value)
    except Exception:  # the repr of somebody else's object, or of very deep nesting
        text = f"a {type(value).__name__}"
    return text if len(text) <= limit and not is_long else text[: limit - 3] + "..."


def span(low: float, high: float) -> str:
    """Return what a number should be, also where nothing is between its two bounds."""
    return f"{low} to {high}" if low <= high else f"at least {low}, but at most {high} is allowed"


def out_of_reach(y: object, state: object, operators: int) -> str:
    """Return why no path leads to an output: what is_good says of a state and of its successors."""
    return (
        f"the output {quoted(y)} cannot be reached: is_good says that state {quoted(state)} leads "
        "to it, but "
        + (
            f"none of its {operators} operators leads to a y-good state"
            if operators
            else "operators returned nothing for it and it is no goal"
        )
    )


def cut(message: str, *, limit: int = LONGEST) -> str:
    """Return a message, truncated to ``limit`` characters."""
    return message if len(message) <= limit else message[: limit - 3] + "..."


def counted(n: int, noun: str) -> str:
    """Return a number with its noun: "1 column", "2 columns"."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def listed(names: Iterable[Any], *, limit: int = LISTED) -> str:
    """Return names with commas between them for a message: the first ``limit``, each truncated."""
    rest = iter(names)
    shown = [cut(str(name), limit=QUOTED) for name in islice(rest, limit)]
    more = sum(1 for _ in rest)
    return ", ".join([*shown, f"... ({more} more)"] if more else shown)
