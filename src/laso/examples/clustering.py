"""Clustering: points join clusters one by one, in any order, so many paths lead to one output."""

from math import dist
from typing import Any

from laso import Model, Node, Problem, beam, fit, perceptron

Point = tuple[float, float]
Cluster = frozenset[Point]
Clusters = frozenset[Cluster]


def clusters(*groups: list[Point]) -> Clusters:
    return frozenset(map(frozenset, groups))


TRAINING = [
    clusters([(0, 0), (1, 0), (0, 1)], [(6, 6), (7, 6)]),
    clusters([(0, 5), (1, 5)], [(5, 0), (6, 1)], [(9, 9)]),
    clusters([(2, 2), (3, 2), (3, 3), (4, 3)], [(9, 1), (9, 2)]),
]
HELD_OUT = clusters([(1, 8), (1, 9), (2, 9)], [(5, 5), (6, 5)], [(8, 0), (9, 0)])


class Clustering(Problem):  # x: the set of points; y and a state: clusters of all, or some, of them
    def initial(self, x: Cluster) -> Clusters:
        return frozenset()

    def operators(self, x: Cluster, state: Clusters) -> list[tuple[Point, Cluster]]:
        left = sorted(x.difference(*state))
        return [(point, to) for point in left for to in (frozenset(), *sorted(state, key=sorted))]

    def apply(self, x: Cluster, state: Clusters, operator: tuple[Point, Cluster]) -> Clusters:
        point, to = operator  # the empty cluster stands for a new one
        return state - {to} | {to | {point}}

    def is_goal(self, x: Cluster, state: Clusters) -> bool:
        return x == frozenset().union(*state)

    def is_good(self, x: Cluster, y: Clusters, node: Node) -> bool:
        placed = frozenset().union(*node.state)
        return bool(node.state == {whole & placed for whole in y} - {frozenset()})

    def features(self, x: Cluster, state: Clusters, operator: Any) -> dict[str, float]:
        point, to = operator
        nearest = min((dist(point, p) for p in to or frozenset().union(*state)), default=10.0)
        return {"join": 1, "join far": nearest} if to else {"new": 1, "new far": nearest}


def train() -> Model:
    data = [(frozenset().union(*y), y) for y in TRAINING]
    return fit(Clustering(), data, queue=beam(5), update=perceptron())


def main() -> None:
    print(*sorted(map(sorted, train().predict(frozenset().union(*HELD_OUT)))), sep="\n")


if __name__ == "__main__":
    main()
