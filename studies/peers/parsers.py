"""The parsers that ``studies.peers.parsing`` measures: each trains on CoNLL-U and parses sentences.

All see words, UPOS and XPOS; UDPipe also sees the morphological features of gold tags, which it is
made for, and so does laso's default. Each chooses its number of passes on the development data.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from laso.metrics.trees import tree_scores
from studies.measure import Settings
from studies.peers.systems import run_vw

Tree = list[tuple[int, str]]
COLUMNS = ("w", "pos", "xpos")  # names of the input columns
XPOS = 2  # the column that most templates use


class Token(NamedTuple):
    """The columns of a word that the parsers use."""

    form: str
    upos: str
    xpos: str
    feats: str
    head: int
    label: str


Sentence = list[Token]
Parse = Callable[[list[Sentence]], list[Tree]]


def read_trees(path: Path) -> list[Sentence]:
    """Return the sentences of a CoNLL-U file, without multi-word tokens and empty nodes."""
    from laso.data import read

    return [
        [Token(r[1], r[3], r[4], r[5], int(r[6]), r[7]) for r in block.tokens]
        for block in read(path, format="conllu")
        if block.tokens
    ]


def trees_of(sentences: list[Sentence]) -> list[Tree]:
    """Return the gold trees."""
    return [[(token.head, token.label) for token in sentence] for sentence in sentences]


def las(sentences: list[Sentence], predicted: list[Tree]) -> float:
    """Return the labelled attachment score."""
    return tree_scores(trees_of(sentences), predicted).las


class ParserSystem(Protocol):
    """A parser with configurations, each a table of settings; ``module`` is what it imports."""

    name: str
    module: str
    packages: Sequence[str]
    configs: Mapping[str, Settings]

    def train(self, train: Path, dev: Path, folder: Path, settings: Settings) -> None:
        """Train on a file, choose on another, and leave the model in a folder."""

    def load(self, folder: Path, settings: Settings) -> Parse:
        """Return the function that parses sentences with the model of a folder."""


# --------------------------------------------------------------------------- UDPipe 1


class UDPipe:
    """UDPipe 1: a small neural network over arc-standard configurations, dynamic oracle."""

    name, module = "udpipe", "ufal.udpipe"
    packages: Sequence[str] = ("ufal.udpipe",)
    usual = (
        "embedding_upostag=20;embedding_feats=20;embedding_xpostag=20;embedding_form=50;"
        "embedding_deprel=20;hidden_layer=200;batch_size=10;learning_rate=0.01;"
        "learning_rate_final=0.001;l2=0.5;transition_system=projective;"
        "transition_oracle=dynamic;structured_interval=8;use_gold_tags=1"
    )
    configs: Mapping[str, Settings] = {"10 iterations": {"options": f"iterations=10;{usual}"}}

    def train(self, train: Path, dev: Path, folder: Path, settings: Settings) -> None:
        """Train the parser alone; it keeps the best iteration on the development data."""
        from ufal import udpipe

        error = udpipe.ProcessingError()
        made = udpipe.Trainer.train(
            "morphodita_parsito",
            *(self._sentences(path.read_text(encoding="utf-8")) for path in (train, dev)),
            *("none", "none", settings["options"], error),
        )
        if error.occurred():
            raise RuntimeError(error.message)
        (folder / "model").write_bytes(made)

    def load(self, folder: Path, settings: Settings) -> Parse:
        """Return the function that parses sentences with its default beam of 5."""
        from ufal import udpipe

        model = udpipe.Model.load(str(folder / "model"))

        def parse(sentences: list[Sentence]) -> list[Tree]:
            trees = []
            for sentence in sentences:
                made = udpipe.Sentence()
                for token in sentence:
                    word = made.addWord(token.form)
                    word.upostag, word.xpostag = token.upos, token.xpos
                    word.feats = "" if token.feats == "_" else token.feats  # as its reader has it
                model.parse(made, "")
                trees.append([(word.head, word.deprel) for word in list(made.words)[1:]])
            return trees

        return parse

    def _sentences(self, text: str) -> Any:
        from ufal import udpipe

        reader, error = udpipe.InputFormat.newConlluInputFormat(), udpipe.ProcessingError()
        reader.setText(text)
        found, sentence = udpipe.Sentences(), udpipe.Sentence()
        while reader.nextSentence(sentence, error):
            found.append(sentence)
            sentence = udpipe.Sentence()
        if error.occurred():
            raise RuntimeError(error.message)
        return found


# --------------------------------------------------------------------------- spaCy


class Spacy:
    """spaCy's parser from scratch: a convolutional network over words, affixes, shapes and tags."""

    name, module = "spacy", "spacy"
    packages: Sequence[str] = ("spacy", "thinc")
    configs: Mapping[str, Settings] = {"cnn, 12 epochs": {"epochs": 12, "batch": 1000}}

    def train(self, train: Path, dev: Path, folder: Path, settings: Settings) -> None:
        """Train; keep the best epoch on the development data."""
        import random

        import spacy
        from spacy.training.batchers import minibatch_by_words
        from thinc.util import fix_random_seed

        fix_random_seed(0)
        nlp = spacy.blank("en")
        nlp.add_pipe("parser", config=self._config())
        sentences, held = read_trees(train), read_trees(dev)
        examples = list(self._examples(nlp, sentences))
        optimizer = nlp.initialize(lambda: examples)
        best, order = -1.0, random.Random(0)
        for _ in range(settings["epochs"]):
            order.shuffle(examples)
            for batch in minibatch_by_words(examples, settings["batch"]):
                nlp.update(list(batch), sgd=optimizer, drop=0.1, losses={})
            with nlp.use_params(optimizer.averages):
                found = las(held, self._parse(nlp, held))
                if found > best:
                    best = found
                    nlp.to_disk(folder / "model")

    def load(self, folder: Path, settings: Settings) -> Parse:
        """Return the function that parses sentences."""
        import spacy

        nlp = spacy.load(folder / "model")
        return lambda sentences: self._parse(nlp, sentences)

    def _config(self) -> dict[str, Any]:
        return {
            "min_action_freq": 1,
            "model": {
                "@architectures": "spacy.TransitionBasedParser.v2",
                "state_type": "parser",
                "extra_state_tokens": False,
                "hidden_width": 128,
                "maxout_pieces": 3,
                "use_upper": True,
                "tok2vec": {
                    "@architectures": "spacy.Tok2Vec.v2",
                    "embed": {
                        "@architectures": "spacy.MultiHashEmbed.v2",
                        "width": 96,
                        "attrs": ["NORM", "PREFIX", "SUFFIX", "SHAPE", "POS", "TAG"],
                        "rows": [5000, 1000, 2500, 2500, 100, 200],
                        "include_static_vectors": False,
                    },
                    "encode": {
                        "@architectures": "spacy.MaxoutWindowEncoder.v2",
                        "width": 96,
                        "depth": 4,
                        "window_size": 1,
                        "maxout_pieces": 3,
                    },
                },
            },
        }

    def _doc(self, nlp: Any, sentence: Sentence, **given: Any) -> Any:
        from spacy.tokens import Doc

        return Doc(
            nlp.vocab,
            words=[token.form for token in sentence],
            pos=[token.upos for token in sentence],
            tags=[token.xpos for token in sentence],
            **given,
        )

    def _examples(self, nlp: Any, sentences: list[Sentence]) -> Iterator[Any]:
        from spacy.training import Example

        for s in sentences:
            heads = [token.head - 1 if token.head else i for i, token in enumerate(s)]
            labels = [token.label for token in s]
            yield Example(self._doc(nlp, s), self._doc(nlp, s, heads=heads, deps=labels))

    def _parse(self, nlp: Any, sentences: list[Sentence]) -> list[Tree]:
        starts = ([i == 0 for i in range(len(s))] for s in sentences)
        docs = [self._doc(nlp, s, sent_starts=b) for s, b in zip(sentences, starts, strict=True)]
        trees = []
        for doc in nlp.get_pipe("parser").pipe(docs):
            heads = [0 if token.head.i == token.i else token.head.i + 1 for token in doc]
            trees.append([(h, t.dep_ if h else "root") for h, t in zip(heads, doc, strict=True)])
        return trees


# --------------------------------------------------------------------------- Vowpal Wabbit


class VowpalWabbit:
    """Vowpal Wabbit's ``--search_task dep_parser``: arc-hybrid, greedy, learning to search."""

    name, module = "vowpalwabbit", "vowpalwabbit"
    packages: Sequence[str] = ("vowpalwabbit",)
    configs: Mapping[str, Settings] = {
        "dep_parser": {"passes": [1, 2, 3, 4, 6], "bits": 24, "search_rollout": "none"}
    }

    def train(self, train: Path, dev: Path, folder: Path, settings: Settings) -> None:
        """Train pass after pass; keep the best number of passes on the development data."""
        sentences, held = read_trees(train), read_trees(dev)
        labels = sorted({token.label for sentence in sentences for token in sentence})
        (folder / "labels.json").write_text(json.dumps(labels), encoding="utf-8")
        numbers = {label: i for i, label in enumerate(labels, start=1)}
        text = folder / "train.txt"
        self._write(text, sentences, numbers)
        n, best, done = len(labels), -1.0, 0
        for passes in settings["passes"]:
            made = folder / f"passes{passes}"
            start: list[str] = ["--initial_regressor", str(folder / f"passes{done}")]
            first = ["--search", str(n), "--search_task", "dep_parser", "--num_label", str(n)]
            first += ["--root_label", str(numbers["root"]), "--search_history_length", "3"]
            first += ["--search_alpha", "1e-4", "--search_rollout", settings["search_rollout"]]
            first += ["--old_style_labels"]
            run_vw(
                *(start if done else [*first, "--bit_precision", str(settings["bits"])]),
                *("--data", str(text), "--passes", str(passes - done), "--holdout_off"),
                *("--cache_file", str(folder / "cache"), "--kill_cache", "--save_resume"),
                *("--final_regressor", str(made)),
            )
            found = las(held, self._parse(made, labels, folder, held))
            if found > best:
                best = found
                (folder / "model").write_bytes(made.read_bytes())
            done = passes
        for path in (text, folder / "cache", *folder.glob("passes*")):
            path.unlink(missing_ok=True)

    def load(self, folder: Path, settings: Settings) -> Parse:
        """Return the function that parses sentences."""
        labels = json.loads((folder / "labels.json").read_text(encoding="utf-8"))
        return lambda sentences: self._parse(folder / "model", labels, folder, sentences)

    def _write(self, path: Path, sentences: list[Sentence], numbers: Mapping[str, int]) -> None:
        with path.open("w", encoding="utf-8") as file:
            for s in sentences:
                for token in s:
                    gold = (numbers[token.label] << 8) + token.head + 1 if numbers else 1
                    word = token.form.replace(":", "COLON").replace("|", "BAR").replace(" ", "_")
                    file.write(f"{gold} |w {word} |p {token.upos} |x {token.xpos}\n")
                file.write("\n")

    def _parse(
        self, model: Path, labels: list[str], folder: Path, sentences: list[Sentence]
    ) -> list[Tree]:
        text, found = folder / "test.txt", folder / "test.out"
        self._write(text, sentences, {})
        run_vw(
            *("--testonly", "--initial_regressor", str(model), "--data", str(text)),
            *("--predictions", str(found)),
        )
        lines = iter(found.read_text(encoding="utf-8").split())  # blank ones between sentences
        trees = []
        for s in sentences:
            pairs = [tuple(map(int, next(lines).split(":"))) for _ in s]
            root = next((i for i, (head, _) in enumerate(pairs, start=1) if not head), 0)
            # It stops before the last word where one tree is left, whose root is the likely head.
            trees.append([(h, labels[n - 1]) if h <= len(s) else (root, "punct") for h, n in pairs])
        for path in (text, found):
            path.unlink()
        return trees


# --------------------------------------------------------------------------- laso

DEFAULT = "defaults"
CHOSEN: Mapping[str, Settings] = {
    DEFAULT: {DEFAULT: True},
    "beam 1": {
        "queue": 1,
        "update": "passive_aggressive(weighting=worst)",
        "oracle": "dynamic",
        "epochs": 12,
    },
    "beam 8": {"queue": 8, "epochs": 10},
    "beam 8, clusters": {"queue": 8, "epochs": 10, "clusters": True},
    "beam 8, suffixes": {"queue": 8, "epochs": 10, "suffixes": True},
    "beam 8, suffixes, clusters": {"queue": 8, "epochs": 10, "suffixes": True, "clusters": True},
}
"""Parameters of ``Parser``, and some of our own: its own columns and templates, else those of words
and tags, with templates of clusters and of suffixes."""
AVERAGED = ("beam 1", "beam 8, clusters", "beam 8, suffixes", "beam 8, suffixes, clusters")
MODELS = 3
"""Configurations of which several models, with different seeds, are averaged; how many."""
FROZEN, OF, CHANGED = "beam 8, frozen", "beam 8", 0.05
"""A configuration that freezes the model of another; the fraction of trees of development data that
may change."""


class Laso:
    """``laso.Parser``; the number of epochs is chosen on the development data."""

    name, module = "laso", "laso"
    packages: Sequence[str] = ("laso", "numba", "numpy")
    configs: Mapping[str, Settings] = (
        {
            f"{name}, seed {seed}": {**settings, "seed": seed}
            for name, settings in CHOSEN.items()
            for seed in range(3)
        }
        | {
            f"{FROZEN}, seed {seed}": {"of": f"{OF}, seed {seed}", "changed": CHANGED}
            for seed in range(3)
        }
        | {
            f"{name}, average of {MODELS}, seed {seed}": {
                **CHOSEN[name],
                "seeds": [MODELS * seed + i for i in range(MODELS)],
            }
            for name in AVERAGED
            for seed in range(3)
        }
    )

    def train(self, train: Path, dev: Path, folder: Path, settings: Settings) -> None:
        """Train and keep the best epoch on the development data, or freeze what was trained."""
        from laso import Parser, average_models
        from laso.tasks.parsing import templates
        from laso.values import parse

        if "source" in settings:
            model = Parser.load(Path(settings["source"]) / "model")
            inputs = [[token[: len(COLUMNS)] for token in s] for s in read_trees(dev)]
            model.freeze(inputs, changed=settings["changed"]).save(folder / "model")
            return
        given = {name: parse(v) if name == "update" else v for name, v in settings.items()}
        makers = {"clusters": templates.cluster_templates, "suffixes": templates.suffix_templates}
        added = [
            t for name, make in makers.items() if given.pop(name, False) for t in make(COLUMNS[0])
        ]
        if not given.pop(DEFAULT, False):
            given["features"] = [*templates.default_templates(COLUMNS, XPOS), *added]
            given["columns"] = COLUMNS
        seeds = given.pop("seeds", None)
        if seeds is None:
            Parser(**given, threads=1).fit(train, dev=dev).save(folder / "model")
            return
        parts = {seed: folder / f"seed{seed}" for seed in seeds}
        for seed, path in parts.items():  # in files, which hold nothing to go on learning with
            Parser(**given, seed=seed, threads=1).fit(train, dev=dev).save(path)
        average_models([Parser.load(path) for path in parts.values()]).save(folder / "model")
        for path in parts.values():
            path.unlink()

    def load(self, folder: Path, settings: Settings) -> Parse:
        """Return the function that parses sentences."""
        from laso import Parser

        model = Parser.load(folder / "model")
        model.threads = 1
        n = len(model.task_.encoder_.names)

        def parse(sentences: list[Sentence]) -> list[Tree]:
            return model.predict([[token[:n] for token in s] for s in sentences])

        return parse


SYSTEMS: dict[str, ParserSystem] = {
    system.name: system for system in (UDPipe(), Spacy(), VowpalWabbit(), Laso())
}
