"""Word segmentation of unspaced text: a problem and a task of one's own for the compiled engine."""

from pathlib import Path

from laso import MAX_FEATURES, MAX_GROUPS, STATE_SIZE, CompiledProblem, Step, Task, mix

LONGEST = 12  # letters of a word


class Words(CompiledProblem):
    """State: where the next word begins, where the last one began. Group: the next word's length.

    Validity   the word ends within the text and is not too long
    Goodness   the gold segmentation has this word there
    Action     the word is covered
    """

    @staticmethod
    def limits(x, out):
        out[STATE_SIZE], out[MAX_GROUPS], out[MAX_FEATURES] = 2, LONGEST, 4

    @staticmethod
    def initial(x, state):
        state[0] = state[1] = 0

    @staticmethod
    def groups(x, state, out):
        n = min(LONGEST, x.items.shape[0] - state[0])
        for i in range(n):
            out[i] = i + 1
        return n

    @staticmethod
    def features(x, state, group, out):
        items, keys, start, end = x.items, out.keys, state[0], state[0] + group
        word = before = 1
        for i in range(start, end):
            word = mix(word, items[i, 0])
        for i in range(state[1], start):
            before = mix(before, items[i, 0])
        keys[0], keys[1], keys[2] = word, mix(word, before), mix(2, group)
        keys[3] = mix(mix(3, items[end - 1, 0]), items[end, 0] if end < items.shape[0] else -2)
        return 4

    @staticmethod
    def apply(x, state, group, label, new):
        new[0], new[1] = state[0] + group, state[0]

    @staticmethod
    def is_goal(x, state):
        return state[0] == x.items.shape[0]

    @staticmethod
    def is_good(x, y, state, group, label):
        return y[state[0]] == group

    @staticmethod
    def key(x, state, group, label):  # words that end at the same letter compete
        return state[0] + group

    @staticmethod
    def signature(x, state, group, label):  # where the last word began is all that the rest sees
        return group


class Segmentation(Task):
    """x: letters without spaces; y: the words."""

    name, problem, labels = "segmentation", Words, ("word",)

    def items(self, x):
        return list(x)

    def gold(self, x, y):  # at the first letter of each word its length
        return [n for word in y for n in [len(word), *[0] * (len(word) - 1)]]

    def decode(self, x, steps):
        rest = iter(x)
        return ["".join(next(rest) for _ in range(length)) for length, _ in steps]

    def describe(self, group, label):
        return Step("word", group)

    def read_file(self, path, *, labelled):  # for the command line: lines of words
        lines = [line.split() for line in Path(path).read_text(encoding="utf-8").splitlines()]
        return ["".join(words) for words in lines], lines


LINES = ["the cat sat on a mat", "a dog sat on the cat", "the mat is on the dog"]

if __name__ == "__main__":
    from laso import SearchEstimator

    X = [line.replace(" ", "") for line in LINES]
    model = SearchEstimator(Segmentation()).fit(X, [line.split() for line in LINES])
    print(model.predict(["thedogisonamat"]))
