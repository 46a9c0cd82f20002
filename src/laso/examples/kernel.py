"""Kernels: marking where a bit differs from the one before it, an exclusive or at every step.

The features tell either bit, never both, so no weights separate right marks from wrong ones;
products of two features do, and a polynomial kernel of degree 2 has them all.
"""

from itertools import pairwise, product

from laso import Model, Node, Problem, alma, fit, greedy, perceptron, polynomial_kernel
from laso.training import Rule

Bits = tuple[int, ...]
RULES: dict[str, Rule] = {
    "perceptron, linear": perceptron(),
    "perceptron, kernel": perceptron(kernel=polynomial_kernel(2)),
    "ALMA, kernel": alma(kernel=polynomial_kernel(2)),
}


class Changes(Problem):  # x: bits; y and a state: for each bit but the first, 1 if it differs
    def initial(self, x: Bits) -> Bits:
        return ()

    def operators(self, x: Bits, state: Bits) -> Bits:
        return (0, 1)

    def apply(self, x: Bits, state: Bits, operator: int) -> Bits:
        return (*state, operator)

    def is_goal(self, x: Bits, state: Bits) -> bool:
        return len(state) == len(x) - 1

    def is_good(self, x: Bits, y: Bits, node: Node) -> bool:
        return bool(node.state == y[: len(node.state)])

    def features(self, x: Bits, state: Bits, operator: int) -> list[str]:
        i = len(state)
        return [f"{i}: last {x[i]}, mark {operator}", f"{i}: this {x[i + 1]}, mark {operator}"]


def changes(x: Bits) -> Bits:
    return tuple(a ^ b for a, b in pairwise(x))


DATA = [(x, changes(x)) for x in product((0, 1), repeat=4)]


def train(rule: Rule) -> Model:
    return fit(Changes(), DATA, queue=greedy(), update=rule, epochs=50, average=False)


def main() -> None:
    for name, rule in RULES.items():
        model = train(rule)
        right = sum(model.predict(x) == y for x, y in DATA)
        print(f"{name}: {right} of {len(DATA)} right, converged: {model.converged}")


if __name__ == "__main__":
    main()
