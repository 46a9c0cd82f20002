"""Sequence labelling; BIO (section 4.1) turns chunks (label, start, end) into labels and back."""

from itertools import pairwise
from typing import Any

from laso import Model, Node, Problem, beam, fit, perceptron

SENTENCES = """the/DT old/JJ man/NN can/MD see/VB a/DT can/NN of/IN fish/NN
they/PRP fish/VBP and/CC we/PRP man/VBP the/DT boats/NNS"""


def columns(line: str) -> Any:
    return tuple(zip(*(token.split("/") for token in line.split()), strict=True))


def to_chunks(tags: Any) -> tuple[tuple[str, int, int], ...]:  # each O word is a chunk
    starts = [i for i, (last, tag) in enumerate(pairwise(["O", *tags])) if tag != f"I-{last[2:]}"]
    return tuple((tags[i][2:] or "O", i, j) for i, j in pairwise([*starts, len(tags)]))


def to_bio(chunks: Any) -> list[str]:
    return ["O" if b == "O" else f"{m}-{b}" for b, i, j in chunks for m in "B".ljust(j - i, "I")]


class Tagging(Problem):  # x: the words; y: their labels; a state: the labels so far
    def __init__(self, labels: Any):
        self.labels = sorted(labels)

    def initial(self, x: Any) -> Any:
        return ()

    def operators(self, x: Any, state: Any) -> list[Any]:
        return self.labels

    def apply(self, x: Any, state: Any, operator: Any) -> Any:
        return (*state, operator)

    def is_goal(self, x: Any, state: Any) -> bool:
        return len(x) == len(state)

    def is_good(self, x: Any, y: Any, node: Node) -> bool:
        return bool(node.state == y[: len(node.state)])

    def features(self, x: Any, state: Any, operator: Any) -> list[str]:
        word, before = x[len(state)], state[-1] if state else "^"
        return [f"{operator} {name}" for name in (word, "-" + word[-2:], "after " + before)]


def train() -> Model:
    data = [columns(line) for line in SENTENCES.splitlines()]
    return fit(Tagging({t for _, y in data for t in y}), data, queue=beam(3), update=perceptron())


def main() -> None:
    x = ("we", "can", "see", "the", "old", "can")
    print(*map("/".join, zip(x, train().predict(x), strict=True)))


if __name__ == "__main__":
    main()
