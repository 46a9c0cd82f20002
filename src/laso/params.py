"""scikit-learn's conventions for estimators, without importing scikit-learn.

``import sklearn`` costs more time and memory than a small tagger does in all. Its ``clone``,
``GridSearchCV`` and ``cross_val_score`` ask for no more than what is here.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Iterable
from typing import Any, Self

from laso.errors import quoted


class Estimator:
    """Parameters are the arguments of ``__init__``, which only stores them.

    A subclass whose ``__init__`` takes further keywords (``**search``) has the keyword-only
    parameters of the class above it too.
    """

    @classmethod
    def _parameters(cls) -> dict[str, inspect.Parameter]:
        parameters: dict[str, inspect.Parameter] = {}
        for above in cls.__mro__:
            if "__init__" not in vars(above):
                continue
            given = inspect.signature(vars(above)["__init__"]).parameters.values()
            kinds = {each.kind for each in given}
            first = not parameters
            for each in given:
                is_taken = each.kind is each.KEYWORD_ONLY or first
                if is_taken and each.name != "self" and each.kind is not each.VAR_KEYWORD:
                    parameters.setdefault(each.name, each)
            if inspect.Parameter.VAR_KEYWORD not in kinds:
                break
        return parameters

    def __new__(cls, *args: Any, **given: Any) -> Self:
        """Raise TypeError for a parameter that there is not, with the one that was meant."""
        for name in given:
            known = cls.__signature__.parameters  # type: ignore[attr-defined]
            if name not in known:
                from difflib import get_close_matches

                meant = get_close_matches(name, known, 1)
                hint = f", did you mean {meant[0]}?" if meant else f": it has {', '.join(known)}"
                raise TypeError(f"{cls.__name__} has no parameter {name}{hint}")
        return super().__new__(cls)

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        cls.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            list(cls._parameters().values())
        )

    @classmethod
    def parameter_names(cls) -> list[str]:
        """The names of the parameters."""
        return list(cls._parameters())

    @classmethod
    def default_parameters(cls) -> dict[str, Any]:
        """The defaults of the parameters by name."""
        return {name: each.default for name, each in cls._parameters().items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name (none has parameters of its own, so ``deep`` changes nothing)."""
        return {name: getattr(self, name) for name in self.parameter_names()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name."""
        names = self.parameter_names()
        for name, value in params.items():
            if name not in names:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(names)}"
                )
            setattr(self, name, value)
        return self

    def require(self, learned: str) -> None:
        """Raise NotFittedError before ``fit`` has set what it learns."""
        if not hasattr(self, learned):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"this {type(self).__name__} has not been fitted: call fit first")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            input_tags=InputTags(two_d_array=False, string=True, dict=True),
            no_validation=True,  # X is a list of sentences, which scikit-learn cannot validate
        )

    def __repr__(self) -> str:
        defaults = self._parameters()
        changed = {
            name: value
            for name, value in self.get_params().items()
            if not (value is defaults[name].default or value == defaults[name].default)
        }
        inside = ", ".join(f"{name}={value!r}" for name, value in changed.items())
        return f"{type(self).__name__}({inside})"


def check_parameters(task: Any, checks: Iterable[tuple[str, bool, str]]) -> None:
    """Raise ValueError for the first parameter that is not as expected: (name, is it, expected)."""
    for name, good, expected in checks:
        if not good:
            raise ValueError(f"{name} must be {expected}, found {quoted(getattr(task, name))}")


def is_whole(value: Any, least: int, most: float = math.inf) -> bool:
    """Whether a value is an integer, no smaller than ``least`` and no larger than ``most``."""
    if isinstance(value, bool):
        return False
    try:
        return least <= operator.index(value) <= most
    except TypeError:
        return False


def is_n_jobs(value: Any) -> bool:
    """Whether a value is a number of workers as joblib counts them."""
    return value is None or (is_whole(value, -1000, 10**6) and value != 0)
