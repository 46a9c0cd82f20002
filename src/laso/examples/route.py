"""Route finding: A* with the straight-line distance as h finds what best-first finds, sooner.

The highest score comes first, so costs are negative: the one feature, km, has the weight -1.
"""

from math import dist

from laso import Linear, Problem, a_star, best_first, closed_set, search
from laso.queues import MakeQueue
from laso.trace import trace_search

TOWNS = """Ashford 0 0, Birchley 30 40, Coldwell 60 10, Dunmere 70 60, Eastholm 110 30,
Farrow 120 80, Greywick 160 50, Hartsea -40 20, Inglesby -30 -40, Juniper 40 -50, Kelm 100 -40"""
ROADS = """Ashford Birchley 55, Ashford Coldwell 64, Ashford Hartsea 48, Ashford Inglesby 52,
Ashford Juniper 70, Birchley Dunmere 47, Birchley Hartsea 75, Coldwell Dunmere 60, Juniper Kelm 63,
Coldwell Eastholm 75, Coldwell Juniper 66, Dunmere Farrow 56, Eastholm Farrow 53, Eastholm Kelm 74,
Eastholm Greywick 58, Farrow Greywick 52, Inglesby Juniper 80"""
PLACE = {town: (int(x), int(y)) for town, x, y in map(str.split, TOWNS.split(","))}
KM = {(a, b): float(km) for a, b, km in map(str.split, ROADS.split(","))}
KM |= {(b, a): km for (a, b), km in KM.items()}
W = Linear({"km": -1.0})


class Route(Problem):  # x: (from, to); a state: the town reached; an operator: the next town
    def initial(self, x: tuple[str, str]) -> str:
        return x[0]

    def operators(self, x: tuple[str, str], state: str) -> list[str]:
        return [b for a, b in KM if a == state]

    def apply(self, x: tuple[str, str], state: str, operator: str) -> str:
        return operator

    def is_goal(self, x: tuple[str, str], state: str) -> bool:
        return state == x[1]

    def features(self, x: tuple[str, str], state: str, operator: str) -> dict[str, float]:
        return {"km": KM[state, operator]}

    def h(self, x: tuple[str, str], state: str) -> float:
        return -dist(PLACE[state], PLACE[x[1]])


def find(start: str, end: str, discipline: MakeQueue) -> tuple[list[str], float, int]:
    queue = closed_set(discipline, key=str)  # no town is visited twice
    goal = search(Route(), (start, end), W, queue)
    assert goal is not None, "every town can be reached"
    dequeued = len(trace_search(Route(), (start, end), W, queue))
    return [node.state for node in goal.path], -goal.g, dequeued


def main() -> None:
    for name, discipline in (("A*", a_star()), ("best-first", best_first())):
        towns, km, dequeued = find("Ashford", "Greywick", discipline)
        print(f"{name}: {' - '.join(towns)}, {km:.0f} km, {dequeued} nodes dequeued")


if __name__ == "__main__":
    main()
