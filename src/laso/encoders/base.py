"""What an encoder is: an object that turns the words of sentences into vectors.

Only ``encode`` is needed. An encoder of one's own, for example around another library::

    class Mine:
        name = "mine"                  # in model files; else the name of the class
        dimensions = 300               # else found out by encoding a word
        fingerprint = "..."            # a hash of what determines the vectors; else ""

        def encode(self, sentences):   # sequences of words
            return [...]               # an array (words, dimensions) for each sentence

An encoder that learns has ``learn(sentences, gradients)`` too; and, if it needs them,
``train(mode)`` for the beginning and the end of training, ``save(path, training=False)`` and
``load(path)``. A model without a fingerprint of its encoder cannot tell that it was given another
one, and its vectors are not kept on disk.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from laso.errors import BadFeature, counted

Array = np.ndarray[Any, Any]
Sentence = Sequence[str]
Progress = Callable[[int, int], object]
"""A callback with the number of words encoded so far, and of all."""


@runtime_checkable
class Encoder(Protocol):
    """An encoder of words as vectors.

    Examples
    --------
    >>> import numpy as np
    >>> class Lengths:
    ...     def encode(self, sentences):
    ...         return [np.array([[len(word)] for word in words]) for words in sentences]
    >>> isinstance(Lengths(), Encoder)
    True
    """

    def encode(self, sentences: Sequence[Sentence]) -> Sequence[Array]:
        """Return an array (words, dimensions) for each sentence."""
        ...


@runtime_checkable
class LearningEncoder(Encoder, Protocol):
    """An encoder that learns from the search.

    Examples
    --------
    >>> from laso.encoders import BertEncoder, LinearEncoder
    >>> issubclass(LinearEncoder, LearningEncoder), issubclass(BertEncoder, LearningEncoder)
    (True, False)
    """

    def learn(self, sentences: Sequence[Sentence], gradients: Sequence[Array]) -> object:
        """Move the vectors of the words in the directions of the gradients.

        The gradient of a word is the difference of the weights of the good and the bad steps that
        used its vector, so that the good steps' scores rise over those of the bad.
        """
        ...


def name_of(encoder: Encoder) -> str:
    """Return the name of an encoder for messages and model files.

    Examples
    --------
    >>> class Mine:
    ...     def encode(self, sentences): ...
    >>> name_of(Mine())
    'Mine'
    """
    return str(getattr(encoder, "name", "") or type(encoder).__name__)


def fingerprint_of(encoder: Encoder) -> str:
    """Return the hash of what determines an encoder's vectors, "" if it has none.

    Examples
    --------
    >>> class Mine:
    ...     def encode(self, sentences): ...
    >>> fingerprint_of(Mine())
    ''
    """
    return str(getattr(encoder, "fingerprint", "") or "")


def dimensions_of(encoder: Encoder) -> int:
    """Return the number of dimensions of an encoder's vectors.

    An encoder that does not say so encodes one word.

    Examples
    --------
    >>> import numpy as np
    >>> class Mine:
    ...     def encode(self, sentences):
    ...         return [np.zeros((len(words), 3)) for words in sentences]
    >>> dimensions_of(Mine())
    3
    """
    dimensions = getattr(encoder, "dimensions", None)
    return int(encoded(encoder, [["a"]])[0].shape[1] if dimensions is None else dimensions)


def encoded(
    encoder: Encoder, sentences: Sequence[Sentence], progress: Progress | None = None
) -> list[Array]:
    """Return the checked float32 vectors of sentences by any encoder.

    ``progress(done, total)`` is called with numbers of words, if the encoder supports that.

    Examples
    --------
    >>> class Mine:
    ...     def encode(self, sentences):
    ...         return [[[len(word), 1] for word in words] for words in sentences]
    >>> encoded(Mine(), [["a", "word"]])[0].tolist()
    [[1.0, 1.0], [4.0, 1.0]]
    """
    if progress is not None and "progress" in inspect.signature(encoder.encode).parameters:
        given = encoder.encode(sentences, progress=progress)  # type: ignore[call-arg]
    else:
        given = encoder.encode(sentences)
    name = name_of(encoder)
    if len(given) != len(sentences):
        found = counted(len(given), "array")
        raise BadFeature(f"found {found} of {name}, expected one for each of {len(sentences)}")
    dimensions = getattr(encoder, "dimensions", None)
    vectors = []
    for i, (words, values) in enumerate(zip(sentences, given, strict=True)):
        try:
            array = np.asarray(values, np.float32)
        except (TypeError, ValueError) as error:
            raise BadFeature(f"found no vectors of {name}: {error}", sentence=i + 1) from error
        if not len(words) and not array.size:
            array = np.zeros((0, int(dimensions or 0)), np.float32)
        dimensions = array.shape[-1] if dimensions is None and array.ndim == 2 else dimensions
        if array.shape != (len(words), dimensions):
            raise BadFeature(
                f"found an array of shape {array.shape} of {name}, expected "
                f"({len(words)}, {dimensions})",
                sentence=i + 1,
            )
        if not np.isfinite(array).all():
            token = int(np.argmin(np.isfinite(array).all(axis=1)))
            raise BadFeature(
                f"found a vector of {name} that is not finite", sentence=i + 1, token=token + 1
            )
        vectors.append(array)
    return vectors
