"""A BERT with random weights in a folder, and the same computed slowly, in float64."""

import json
import math
from itertools import chain

import numpy as np

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c", "##a", "##b", "##c", ".", ","]


def write_bert(folder, *, layers=2, heads=2, width=8, inner=12, places=24, seed=0):
    """Write the files of a BERT, and return its tensors and settings."""
    import safetensors.numpy
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    rng = np.random.default_rng(seed)

    def drawn(*shape):
        return rng.normal(0, 0.6, shape).astype(np.float32)

    tensors = {
        "embeddings.word_embeddings.weight": drawn(len(PIECES), width),
        "embeddings.position_embeddings.weight": drawn(places, width),
        "embeddings.token_type_embeddings.weight": drawn(2, width),
        "embeddings.LayerNorm.weight": drawn(width),
        "embeddings.LayerNorm.bias": drawn(width),
    }
    for i in range(layers):
        name = f"encoder.layer.{i}."
        for part in ("query", "key", "value"):
            tensors[f"{name}attention.self.{part}.weight"] = drawn(width, width)
            tensors[f"{name}attention.self.{part}.bias"] = drawn(width)
        for part, rows, columns in (
            ("attention.output", width, width),
            ("intermediate", inner, width),
            ("output", width, inner),
        ):
            tensors[f"{name}{part}.dense.weight"] = drawn(rows, columns)
            tensors[f"{name}{part}.dense.bias"] = drawn(rows)
        for part in ("attention.output", "output"):
            tensors[f"{name}{part}.LayerNorm.weight"] = drawn(width)
            tensors[f"{name}{part}.LayerNorm.bias"] = drawn(width)
    config = {
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": inner,
        "max_position_embeddings": places,
        "layer_norm_eps": 1e-12,
    }
    tokenizer = Tokenizer(
        models.WordPiece({piece: i for i, piece in enumerate(PIECES)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    folder.mkdir(parents=True, exist_ok=True)
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    tokenizer.save(str(folder / "tokenizer.json"))
    return tensors, config


def plain_forward(tensors, config, ids, layers):
    """The vectors of one sequence of pieces after some layers, as the paper on BERT has them."""
    weights = {name: np.asarray(value, np.float64) for name, value in tensors.items()}
    x = np.array(
        [
            weights["embeddings.word_embeddings.weight"][piece]
            + weights["embeddings.position_embeddings.weight"][place]
            + weights["embeddings.token_type_embeddings.weight"][0]
            for place, piece in enumerate(ids)
        ]
    )

    def linear(x, name):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(x, name):
        mean = x.mean(axis=1, keepdims=True)
        deviation = np.sqrt(
            ((x - mean) ** 2).mean(axis=1, keepdims=True) + config["layer_norm_eps"]
        )
        return (x - mean) / deviation * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def gelu(x):
        return np.vectorize(lambda v: v * (1 + math.erf(v / math.sqrt(2))) / 2)(x)

    x = norm(x, "embeddings.LayerNorm")
    size = config["hidden_size"] // config["num_attention_heads"]
    for i in range(layers):
        name = f"encoder.layer.{i}."
        query, key, value = (
            linear(x, f"{name}attention.self.{part}") for part in ("query", "key", "value")
        )
        heads = []
        for head in range(config["num_attention_heads"]):
            part = slice(head * size, (head + 1) * size)
            scores = np.exp(query[:, part] @ key[:, part].T / math.sqrt(size))
            heads.append(scores / scores.sum(axis=1, keepdims=True) @ value[:, part])
        attended = linear(np.concatenate(heads, axis=1), f"{name}attention.output.dense")
        x = norm(x + attended, f"{name}attention.output.LayerNorm")
        inner = gelu(linear(x, f"{name}intermediate.dense"))
        x = norm(x + linear(inner, f"{name}output.dense"), f"{name}output.LayerNorm")
    return x


def plain_vectors(tensors, config, words_of_pieces, layers):
    """The vector of each word, the mean of those of its pieces; a word is a list of pieces."""
    numbers = [[PIECES.index(piece) for piece in word] for word in words_of_pieces]
    ids = [PIECES.index("[CLS]"), *chain.from_iterable(numbers), PIECES.index("[SEP]")]
    x = plain_forward(tensors, config, ids, layers)
    vectors, place = [], 1
    for word in numbers:
        vectors.append(x[place : place + len(word)].mean(axis=0))
        place += len(word)
    return np.array(vectors)
