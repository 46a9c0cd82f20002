"""A BERT that learns inside the search, by torch: fine-tuned here, served by NumPy.

``learn`` gets the direction in which the vector of each word should move, and takes a step of AdamW
that moves it there. The matrices of torch see the pieces of all sentences one after the other, as
those of ``bert.py`` do; only attention is padded. ``save`` writes a folder that ``load_encoder``
reads without torch, with the same fingerprint.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from laso.encoders import weights
from laso.encoders.base import Array, Progress, Sentence
from laso.encoders.bert import PREFIXES
from laso.encoders.loading import load_encoder
from laso.encoders.pieces import Window, windows
from laso.encoders.pretrained import BertEncoder, fingerprint_by
from laso.encoders.schedule import Schedule
from laso.errors import BadModel
from laso.files.atomic import replacing

try:
    import torch
    from safetensors.torch import load_file, save
    from torch.nn import functional
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"the package {error.name} is not there: python -m pip install 'laso[torch]'",
        name=error.name,
    ) from error

STATE = "training.safetensors"
PIECES, PLACES, TYPES = (
    f"embeddings.{name}_embeddings.weight" for name in ("word", "position", "token_type")
)
PARTS = (
    *(f"attention.self.{name}" for name in ("query", "key", "value")),
    *("attention.output.dense", "attention.output.LayerNorm"),
    *("intermediate.dense", "output.dense", "output.LayerNorm"),
)
NORM = "embeddings.LayerNorm"
MOMENTS = ("exp_avg", "exp_avg_sq")
TOGETHER = 32  # sentences in a batch at most


class TorchEncoder:
    """The first layers of a BERT, fine-tuned inside the search.

    Parameters
    ----------
    encoder : str, path or BertEncoder, default="minilm"
        Where to begin: what ``load_encoder`` takes, a BERT. Its embeddings stay as they are.
    schedule : Schedule, default=None
        How fast it learns; None for the defaults.
    seed : int, default=0
        The seed of dropout.
    """

    def __init__(
        self,
        encoder: Any = "minilm",
        *,
        schedule: Schedule | None = None,
        seed: int = 0,
    ) -> None:
        below = load_encoder(encoder, cache=False)
        if not isinstance(below, BertEncoder):
            raise TypeError(f"found {type(below).__name__}, expected a BERT or a folder with one")
        self.below, self.schedule = below, Schedule() if schedule is None else schedule
        self.name, self.dimensions = f"tuned {below.name}", below.dimensions
        self.config = {**below.config, "num_hidden_layers": below.layer}
        self.tensors = self._read(below.folder / weights.TENSORS)
        self.steps = self.pending = 0
        self.optimizer = self._made_optimizer()
        self.is_training = False
        self._rng = torch.Generator().manual_seed(seed).get_state()
        self._graph: tuple[list[tuple[str, ...]], Any] | None = None
        self._fingerprint: tuple[int, str] | None = None

    def _read(self, path: Path) -> dict[str, Any]:
        """Return the tensors that the layers need, without the prefix of their names."""
        given = load_file(str(path))
        prefix = next((p for p in PREFIXES if f"{p}{PIECES}" in given), "")
        parts = [NORM, *(f"encoder.layer.{i}.{part}" for i in range(self.layers) for part in PARTS)]
        of_parts = (f"{part}.{kind}" for part in parts for kind in ("weight", "bias"))
        tensors = {}
        for name in (PIECES, PLACES, TYPES, *of_parts):
            if prefix + name not in given:
                raise BadModel(f"found no tensor {name}, expected those of a BERT", file=str(path))
            tensors[name] = given[prefix + name].to(torch.float32).contiguous()
            tensors[name].requires_grad_(name.startswith("encoder."))
        return tensors

    @property
    def layers(self) -> int:
        """The number of layers."""
        return int(self.config["num_hidden_layers"])

    @property
    def learned(self) -> dict[str, Any]:
        """The tensors that learning changes."""
        return {name: tensor for name, tensor in self.tensors.items() if tensor.requires_grad}

    @property
    def fingerprint(self) -> str:
        """A hash of what determines the vectors: that of the folder which ``save`` writes."""
        if self._fingerprint is None or self._fingerprint[0] != self.steps:
            digest = hashlib.sha256(self._bytes()).hexdigest()
            of_tokenizer = weights.sha256(self.below.folder / weights.TOKENIZER)
            made = fingerprint_by(self.config, self.layers, digest, of_tokenizer)
            self._fingerprint = self.steps, made
        return self._fingerprint[1]

    def _bytes(self) -> bytes:
        return bytes(save({name: tensor.detach() for name, tensor in self.tensors.items()}))

    # ----------------------------------------------------------------------- vectors

    def encode(
        self, sentences: Sequence[Sentence], progress: Progress | None = None
    ) -> list[Array]:
        """Return the vectors of the words of sentences, an array (words, dimensions) for each.

        After ``train()`` these have dropout, and ``learn`` of the same sentences goes back through
        them. Otherwise ``learn`` encodes the sentences again, with dropout of its own.
        """
        if self.is_training:
            with self._random():
                vectors = self._vectors(sentences, self.schedule.dropout)
            self._graph = [tuple(words) for words in sentences], vectors
            return _split(vectors.detach().numpy().copy(), sentences)
        found: list[Array] = [np.zeros((0, self.dimensions), np.float32)] * len(sentences)
        order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
        done, total = 0, sum(map(len, sentences))
        for begin in range(0, len(order), TOGETHER):
            places = order[begin : begin + TOGETHER]
            some = [sentences[i] for i in places]
            with torch.no_grad():
                arrays = _split(self._vectors(some, 0.0).numpy(), some)
            for i, array in zip(places, arrays, strict=True):
                found[i] = array
            done += sum(map(len, some))
            if progress is not None:
                progress(done, total)
        return found

    def _vectors(self, sentences: Sequence[Sentence], dropout: float) -> Any:
        """Return a tensor (words, dimensions): the mean of the pieces of each word."""
        parts: list[Window] = []
        words = 0
        for sentence in self.below.pieces.of(sentences):
            parts += windows(sentence, words, self.below.pieces)
            words += len(sentence)
        out = torch.zeros(words, self.dimensions)
        if not parts:
            return out
        x = self._forward([window.ids for window in parts], dropout)
        pieces, rows, begin = [], [], 0
        for window in parts:
            first, last = int(window.first[0]), int(window.first[-1] + window.counts[-1])
            pieces.append(np.arange(begin + first, begin + last))
            rows.append(np.repeat(window.row + np.arange(len(window.first)), window.counts))
            begin += len(window.ids)
        row = torch.from_numpy(np.concatenate(rows))
        counts = torch.zeros(words).index_add(0, row, torch.ones(len(row)))
        out = out.index_add(0, row, x[torch.from_numpy(np.concatenate(pieces))])
        return out / counts.clamp(min=1)[:, None]

    def _forward(self, sequences: list[Array], dropout: float) -> Any:
        """Return the vectors of all pieces, one sequence after the other."""
        lengths = np.array([len(each) for each in sequences])
        places = np.concatenate([np.arange(length) for length in lengths])
        longest, count = int(lengths.max()), len(lengths)
        padded = torch.from_numpy(np.repeat(np.arange(count) * longest, lengths) + places)
        there = torch.from_numpy(np.arange(longest) < lengths[:, None])[:, None, None]
        tensors, heads = self.tensors, int(self.config["num_attention_heads"])

        def linear(x: Any, name: str) -> Any:
            return functional.linear(x, tensors[f"{name}.weight"], tensors[f"{name}.bias"])

        def norm(x: Any, name: str) -> Any:
            scale, shift = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
            epsilon = float(self.config["layer_norm_eps"])
            return functional.layer_norm(x, (self.dimensions,), scale, shift, epsilon)

        def drop(x: Any) -> Any:
            return functional.dropout(x, dropout) if dropout else x

        def spread(x: Any) -> Any:
            rows = x.new_zeros(count * longest, self.dimensions).index_copy(0, padded, x)
            return rows.view(count, longest, heads, -1).transpose(1, 2)

        x = tensors[PIECES][torch.from_numpy(np.concatenate(sequences)).long()]
        x = x + tensors[PLACES][torch.from_numpy(places)] + tensors[TYPES][0]
        x = drop(norm(x, NORM))
        for i in range(self.layers):
            name = f"encoder.layer.{i}"
            query, key, value = (
                spread(linear(x, f"{name}.attention.self.{part}"))
                for part in ("query", "key", "value")
            )
            found = functional.scaled_dot_product_attention(
                query, key, value, attn_mask=there, dropout_p=dropout
            )
            found = found.transpose(1, 2).reshape(count * longest, -1)[padded]
            found = drop(linear(found, f"{name}.attention.output.dense"))
            x = norm(x + found, f"{name}.attention.output.LayerNorm")
            inner = functional.gelu(linear(x, f"{name}.intermediate.dense"))
            x = norm(x + drop(linear(inner, f"{name}.output.dense")), f"{name}.output.LayerNorm")
        return x

    @contextmanager
    def _random(self) -> Any:
        """Draw random numbers of this encoder's own, so that a run can be repeated and resumed."""
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self._rng)
            yield
            self._rng = torch.get_rng_state()

    # ----------------------------------------------------------------------- learning

    def train(self, mode: bool = True) -> TorchEncoder:
        """Begin to train, or end: then the gradients that wait make a last step."""
        self.is_training, self._graph = mode, None
        if not mode and self.pending:
            self._step()
        return self

    def learn(self, sentences: Sequence[Sentence], gradients: Sequence[Array]) -> None:
        """Move the vectors in the directions of the gradients; a step waits for its sentences."""
        if not any(map(len, sentences)):
            return
        keys = [tuple(words) for words in sentences]
        if self._graph is not None and self._graph[0] == keys:
            vectors = self._graph[1]
        else:
            with self._random():
                vectors = self._vectors(sentences, self.schedule.dropout)
        self._graph = None
        given = [np.asarray(each, np.float32).reshape(-1, self.dimensions) for each in gradients]
        direction = torch.from_numpy(np.concatenate(given))
        vectors.backward(-direction)
        self.pending += len(sentences)
        if self.pending >= self.schedule.sentences:
            self._step()

    def _made_optimizer(self) -> Any:
        """Return AdamW with a rate for each layer; only matrices become smaller by themselves."""
        groups: dict[tuple[int, bool], list[Any]] = {}
        for name, tensor in self.learned.items():
            groups.setdefault((int(name.split(".")[2]), tensor.ndim > 1), []).append(tensor)
        return torch.optim.AdamW(
            {
                "params": tensors,
                "share": self.schedule.layer_decay ** (self.layers - 1 - layer),
                "weight_decay": self.schedule.weight_decay if is_matrix else 0.0,
            }
            for (layer, is_matrix), tensors in groups.items()
        )

    def _step(self) -> None:
        factor = self.schedule.rate * self.schedule.factor(self.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = factor * group["share"]
        torch.nn.utils.clip_grad_norm_(list(self.learned.values()), self.schedule.longest)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.steps, self.pending = self.steps + 1, 0

    @property
    def batch(self) -> int:
        """The number of sentences that a loop should encode and learn at a time."""
        return min(self.schedule.sentences, TOGETHER)

    def state(self) -> dict[str, Any]:
        """Return what was learned, to ``restore`` that of the best epoch."""
        return {name: tensor.detach().clone() for name, tensor in self.learned.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what ``state`` returned; the optimiser goes on from where it is."""
        with torch.no_grad():
            for name, tensor in self.learned.items():
                tensor.copy_(state[name])
                tensor.grad = None
        self.pending, self._graph, self._fingerprint = 0, None, None

    # ----------------------------------------------------------------------- files

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_graph": None}

    def save(self, folder: str | os.PathLike[str], *, training: bool = False) -> Path:
        """Write a folder that ``load_encoder`` reads without torch.

        With ``training`` the state of the optimiser is there, too, so that ``load`` resumes. That
        is one file with all that was learned: a kill leaves the old state or the new one.
        """
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        with replacing(target / weights.TENSORS) as file:
            file.write(self._bytes())
        with replacing(target / weights.CONFIG) as file:
            file.write(json.dumps(self.config, indent=1).encode())
        source = self.below.folder / weights.TOKENIZER
        with source.open("rb") as read, replacing(target / weights.TOKENIZER) as file:
            shutil.copyfileobj(read, file)
        if training:
            state = {"rng": self._rng}
            for name, tensor in self.learned.items():
                state[f"tensor.{name}"] = tensor.detach()
                for kind in MOMENTS if tensor in self.optimizer.state else ():
                    state[f"{kind}.{name}"] = self.optimizer.state[tensor][kind]
                if tensor.grad is not None:
                    state[f"gradient.{name}"] = tensor.grad
            notes = {"steps": self.steps, "pending": self.pending}
            with replacing(target / STATE) as file:
                file.write(save(state, {"laso": json.dumps(notes)}))
        else:
            (target / STATE).unlink(missing_ok=True)  # that of an earlier run
        return target

    def load(self, folder: str | os.PathLike[str]) -> TorchEncoder:
        """Read what ``save`` wrote, with the state of the optimiser if it is there."""
        from safetensors import safe_open

        source = Path(folder)
        self.below = BertEncoder(source)
        self.config, self.tensors = dict(self.below.config), self._read(source / weights.TENSORS)
        self.optimizer, self._graph, self._fingerprint = self._made_optimizer(), None, None
        self.steps = self.pending = 0
        if (source / STATE).is_file():
            with safe_open(str(source / STATE), framework="pt") as file:
                notes = json.loads(file.metadata()["laso"])
                state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            self.steps, self.pending = int(notes["steps"]), int(notes["pending"])
            self._rng = state["rng"]
            for name, tensor in self.learned.items():
                with torch.no_grad():
                    tensor.copy_(state[f"tensor.{name}"])
                tensor.grad = state.get(f"gradient.{name}")
                if f"{MOMENTS[0]}.{name}" in state:
                    moments = {kind: state[f"{kind}.{name}"] for kind in MOMENTS}
                    steps = torch.tensor(float(self.steps))
                    self.optimizer.state[tensor] = {"step": steps, **moments}
        return self


def _split(vectors: Array, sentences: Sequence[Sentence]) -> list[Array]:
    """Return the rows of each sentence."""
    ends = np.cumsum([len(words) for words in sentences])
    return [vectors[end - len(words) : end] for words, end in zip(sentences, ends, strict=True)]
