"""A problem of the user's own, one for many tests, so that it is compiled once for all of them."""

from laso import CompiledProblem, cost_of, mix
from laso.engine.layout import MAX_FEATURES, STATE_SIZE


class Tags(CompiledProblem):
    """Label items from left to right; missing a label may have a cost."""

    @staticmethod
    def limits(x, out):
        out[STATE_SIZE], out[MAX_FEATURES] = 2, 3

    @staticmethod
    def initial(x, state):
        state[0], state[1] = 0, -1

    @staticmethod
    def features(x, state, group, out):
        out.keys[0] = mix(1, x.items[state[0], 0])
        out.keys[1] = mix(2, state[1])
        out.keys[2] = 3
        return 3

    @staticmethod
    def apply(x, state, group, label, new):
        new[0], new[1] = state[0] + 1, label

    @staticmethod
    def is_goal(x, state):
        return state[0] == x.items.shape[0]

    @staticmethod
    def is_good(x, y, state, group, label):
        return y[state[0]] < 0 or y[state[0]] == label

    @staticmethod
    def loss(x, y, state, group, label, was_good, good):
        return cost_of(x, y[state[0]]) if was_good and not good else 0.0

    @staticmethod
    def signature(x, state, group, label):
        return label
