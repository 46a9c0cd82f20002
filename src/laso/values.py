"""Queues, updates, strategies, weightings and kernels as values.

Two values with the same parameters are equal, and a value prints as the Python expression that
makes it. :func:`parse` reads such an expression, so that command lines and model files can name
values without running code.

>>> from laso import beam, perceptron, worst
>>> perceptron(weighting=worst, margin=1.0)
perceptron(weighting=worst, margin=1.0)
>>> parse("beam(5)") == beam(5)
True
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, TypeVar, cast

from laso.problem import shortened

F = TypeVar("F", bound=Callable[..., Any])

MAX_LENGTH = 1000  # characters of a text to parse
MAX_DEPTH = 10  # calls inside calls

CONSTANTS = (
    *("restart", "early", "delayed", "standard", "max_violation"),
    *("uniform", "loss_proportional", "worst"),
    *("depth", "own_key", "own_signature"),
)
CONSTRUCTORS = (
    *("beam", "greedy", "exact", "bounded_best_first", "best_first", "a_star"),
    *("depth_first", "breadth_first", "hill_climbing", "closed_set", "only_good"),
    *("perceptron", "alma", "passive_aggressive", "arow", "adagrad", "sgd", "lbfgs"),
    *("linear_kernel", "polynomial_kernel", "rbf_kernel"),
    "best_siblings",
)


class Value:
    """Mixin for frozen dataclasses: ``repr`` is the call that makes an equal value.

    Parameters that have their default are left out.

    Parameters
    ----------
    name : str, optional
        Class argument: the name that users call, if it is not that of the class.

    Examples
    --------
    >>> @dataclass(frozen=True, repr=False)
    ... class Window(Value, name="window"):
    ...     size: int
    ...     wide: bool = False
    >>> Window(3)
    window(3)
    >>> Window(3) == Window(3, wide=False)
    True
    """

    _name: ClassVar[str]

    def __init_subclass__(cls, *, name: str | None = None, **given: Any) -> None:
        super().__init_subclass__(**given)
        cls._name = name or cls.__name__

    def __repr__(self) -> str:
        arguments = []
        positional = True
        for field in fields(cast(Any, self)):
            value = getattr(self, field.name)
            if _is_default(field, value):
                positional = False
            elif positional and not field.kw_only:
                arguments.append(_text(value))
            else:
                arguments.append(f"{field.name}={_text(value)}")
        return f"{self._name}({', '.join(arguments)})"


@dataclass(frozen=True, repr=False)
class Named:
    """A function of the library that prints as its name; see :func:`named`.

    Parameters
    ----------
    function : callable
        The function that a call runs.
    """

    function: Callable[..., Any]

    def __post_init__(self) -> None:
        of = self.function
        vars(self).update(
            __name__=of.__name__,
            __qualname__=of.__qualname__,
            __module__=of.__module__,
            __doc__=of.__doc__,
            __wrapped__=of,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return self.function.__name__

    def __reduce__(self) -> str:
        """Copies and pickles refer to the module's own object, as those of functions do."""
        return self.function.__name__


def named(function: F) -> F:
    """Make a function of a module print as its name.

    Parameters
    ----------
    function : callable
        A function at the top level of a module.

    Returns
    -------
    Named
        An object that is called like the function.

    Examples
    --------
    >>> from laso import worst
    >>> worst
    worst
    """
    return cast(F, Named(function))


# --------------------------------------------------------------------------- values to text


def unparse(value: Any) -> str:
    """Write a value as text that :func:`parse` reads.

    Parameters
    ----------
    value : object
        A number, text, truth value or None, or a value of this library.

    Returns
    -------
    str
        The ``repr`` of the value.

    Raises
    ------
    ValueError
        A parameter of the value is none of these, such as a function of the user's own. The
        message names the parameter.

    Examples
    --------
    >>> from laso import beam
    >>> unparse(beam(5))
    'beam(5)'
    >>> unparse(beam(5, key=len))
    Traceback (most recent call last):
    ...
    ValueError: found key=<built-in function len> in beam(5, key=<built-in function len>), which \
cannot be saved: only functions and values of laso itself can
    """
    _check_known(value, "")
    return repr(value)


def _check_known(value: Any, place: str) -> None:
    """Raise if parse does not know the value or one of its parameters."""
    if value is None or isinstance(value, (bool, Integral, Real, str)):
        return
    names = known()
    if isinstance(value, Named) and names.get(value.function.__name__) is value:
        return
    if isinstance(value, Value) and names.get(value._name) is type(value):
        assert is_dataclass(value)
        for field in fields(value):
            part = getattr(value, field.name)
            _check_known(part, f"{field.name}={part!r} in {value!r}")
        return
    raise ValueError(
        f"found {place or repr(value)}, which cannot be saved: only functions and values of laso "
        "itself can"
    )


def _is_default(field: Field[Any], value: Any) -> bool:
    return field.default is not MISSING and (value is field.default or value == field.default)


def _text(value: Any) -> str:
    """The ``repr`` of a parameter, NumPy's numbers and infinity as Python can read them."""
    if isinstance(value, bool):
        return repr(value)
    if isinstance(value, Integral):
        return repr(int(value))
    if isinstance(value, Real):
        number = float(value)
        return repr(number) if math.isfinite(number) else f"float('{number}')"
    return repr(value)


# --------------------------------------------------------------------------- text to values


def parse(text: str) -> Any:
    """Read a value from its ``repr``; nothing but the constructors of this library is called.

    Parameters
    ----------
    text : str
        A number, quoted text, True, False or None; a strategy, weighting or key by its name; or a
        call of a queue, update or kernel with such arguments.

    Returns
    -------
    object
        The value.

    Raises
    ------
    ValueError
        The text is anything else, or the constructor refuses its arguments.

    Examples
    --------
    >>> parse("perceptron(weighting=worst, margin=1.0)")
    perceptron(weighting=worst, margin=1.0)
    >>> parse("closed_set(best_first(), key=own_signature)")
    closed_set(best_first(), key=own_signature)
    """
    if not isinstance(text, str):
        raise ValueError(f"found {type(text).__name__}, expected text")
    if len(text) > MAX_LENGTH:
        raise ValueError(f"found {len(text)} characters, expected at most {MAX_LENGTH}")
    try:
        return _value(ast.parse(text.strip(), mode="eval").body, 0)
    except (SyntaxError, ValueError, TypeError, ArithmeticError) as error:
        why = f": {error}" if str(error) and not isinstance(error, SyntaxError) else ""
    except (RecursionError, MemoryError):  # what Python's parser says of deep nesting
        why = ": it is nested too deeply"
    raise ValueError(
        f"found {shortened(text)}, expected a number or a call of one of "
        f"{', '.join(CONSTRUCTORS)}, or one of {', '.join(CONSTANTS)}{why}"
    )


def _value(node: ast.expr, nesting: int) -> Any:
    if nesting > MAX_DEPTH:
        raise ValueError("it is nested too deeply")
    if isinstance(node, ast.Constant) and isinstance(
        node.value, (bool, int, float, str, type(None))
    ):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _value(node.operand, nesting + 1)
        if isinstance(number, (int, float)) and not isinstance(number, bool):
            return -number
    if isinstance(node, ast.Name):
        if node.id in CONSTANTS:
            return known()[node.id]
        if node.id in CONSTRUCTORS:
            raise ValueError(f"{node.id} needs parentheses, as in {node.id}(...)")
        raise ValueError(f"there is no {node.id!r}")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _called(node.func.id, node, nesting)
    raise ValueError("it is none of these")


def _called(name: str, node: ast.Call, nesting: int) -> Any:
    if name not in CONSTRUCTORS and name != "float":
        raise ValueError(f"{name!r} cannot be called")
    given = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise ValueError("arguments cannot be unpacked")
        if keyword.arg in given:
            raise ValueError(f"{keyword.arg} is given twice")
        given[keyword.arg] = _value(keyword.value, nesting + 1)
    arguments = [_value(argument, nesting + 1) for argument in node.args]
    if name == "float":  # as infinity is written
        if arguments not in (["inf"], ["-inf"]) or given:
            raise ValueError("float can only be called as float('inf') or float('-inf')")
        return float(arguments[0])
    try:
        return known()[name](*arguments, **given)
    except TypeError as error:
        raise ValueError(str(error).replace(".__init__()", "()")) from None


def known() -> dict[str, Any]:
    """The names that texts may use, with what they mean."""
    import laso

    return {name: getattr(laso, name) for name in (*CONSTANTS, *CONSTRUCTORS)}
