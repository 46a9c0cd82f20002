"""Chunking (section 4.1): a state is the tuple of the chunks so far, an operator one chunk more."""

from functools import lru_cache
from typing import Any, Self

from laso import Model, Node, beam, fit
from laso.examples.tagging import Tagging, columns, to_bio, to_chunks

__all__ = ["Chunking", "to_bio", "to_chunks", "words_covered"]
Chunk = tuple[str, int, int]  # label, start, end
SENTENCES = """the/DT/B-NP cat/NN/I-NP sat/VBD/B-VP on/IN/B-PP the/DT/B-NP red/JJ/I-NP mat/NN/I-NP
he/PRP/B-NP will/MD/B-VP see/VB/I-VP a/DT/B-NP dog/NN/I-NP today/NN/B-NP ././O
dogs/NNS/B-NP bark/VBP/B-VP at/IN/B-PP the/DT/B-NP cat/NN/I-NP ././O"""


def words_covered(node: Node) -> int:  # a beam's key: hypotheses compete that explain as much
    return int(node.state[-1][2]) if node.state else 0


class Chunking(Tagging):  # x: the tuple of pairs (word, part of speech); y: the tuple of chunks
    @classmethod
    def for_data(cls, data: Any) -> Self:
        return cls({(label, end - start) for _, y in data for label, start, end in y})

    def operators(self, x: Any, state: Any) -> list[Chunk]:
        start = state[-1][2] if state else 0
        return [(label, start, start + n) for label, n in self.labels if start + n <= len(x)]

    def is_goal(self, x: Any, state: Any) -> bool:
        return len(x) == (state[-1][2] if state else 0)

    def features(self, x: Any, state: Any, operator: Chunk) -> list[str]:
        names = within(x, *operator)
        return [f"{names[0]} after {state[-1][0] if state else '^'}", *names]


@lru_cache(maxsize=1000)  # the hypotheses about one sentence share what no state changes
def within(x: Any, label: str, start: int, end: int) -> list[str]:
    left, *tags, right = [tag for _, tag in (("", "^"), *x, ("", "$"))][start : end + 2]
    names = [f"first {tags[0]}", f"left {left}", f"right {right}", f"tags {' '.join(tags)}"]
    for i, (word, tag) in enumerate(x[start:end]):
        names += [f"{i} {b}" for b in dict.fromkeys((word, word.lower(), "-" + word[-3:], tag))]
    return [f"{label} {name}" for name in (*names, f"length {end - start}")]


def train() -> Model:
    rows = map(columns, SENTENCES.splitlines())
    data = [(tuple(zip(words, tags, strict=True)), to_chunks(bio)) for words, tags, bio in rows]
    return fit(Chunking.for_data(data), data, queue=beam(5, key=words_covered))


def main() -> None:
    words, tags = columns("she/PRP will/MD bark/VB at/IN the/DT red/JJ mat/NN ./.")
    for label, start, end in train().predict(tuple(zip(words, tags, strict=True))):
        print(label, *words[start:end])


if __name__ == "__main__":
    main()
