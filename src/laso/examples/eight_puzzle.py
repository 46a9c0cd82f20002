"""The eight-puzzle, a space with cycles: A* solves a dozen boards and a narrow beam learns them."""

from laso import Linear, Model, Node, Problem, beam, best_first, breadth_first, fit, search
from laso.queues import closed_set, observed

Board = tuple[int, ...]  # the tiles 0 to 7 row by row, 8 for the gap; solved when in order
BOARDS = """041265378 012764358 017384652 138042675 124083675 820341675 312470865 028513674
132045678 041685723 012587364 431082675 | 235074618 124683705 302687451"""
TRAINING, HELD_OUT = ([tuple(map(int, b)) for b in part.split()] for part in BOARDS.split("|"))
FAR = [[abs(i // 3 - j // 3) + abs(i % 3 - j % 3) for j in range(9)] for i in range(9)]


class Puzzle(Problem):  # x: a board; y: moves that solve it; an operator: where the gap goes
    def initial(self, x: Board) -> Board:
        return x

    def operators(self, x: Board, state: Board) -> list[int]:
        return [place for place in range(9) if FAR[place][state.index(8)] == 1]

    def apply(self, x: Board, state: Board, operator: int) -> Board:
        return tuple({8: state[operator], state[operator]: 8}.get(tile, tile) for tile in state)

    def is_goal(self, x: Board, state: Board) -> bool:
        return state == tuple(range(9))

    def is_good(self, x: Board, y: list[int], node: Node) -> bool:
        return node.operators == y[: node.depth]

    def features(self, x: Board, state: Board, operator: int) -> dict[str, float]:
        tile, gap = state[operator], state.index(8)
        distance = FAR[gap][tile] - FAR[operator][tile]
        misplaced = int(gap != tile) - int(operator != tile)
        return {"moves": 1.0, "distance": distance, "misplaced": misplaced}


# The changes of the distance add up to it: with these weights best-first search is A*.
A_STAR = Model(Puzzle(), Linear({"moves": -1, "distance": -1}), closed_set(best_first(), key=tuple))
BREADTH_FIRST = Model(Puzzle(), Linear(), closed_set(breadth_first(), key=tuple))


def dequeued(model: Model, x: Board) -> list[Node]:
    nodes: list[Node] = []  # the last of them is the goal
    search(model.problem, x, model.w, observed(model.queue, lambda node, _: nodes.append(node)))
    return nodes


def train() -> Model:
    data = [(x, dequeued(A_STAR, x)[-1].operators) for x in TRAINING]
    return fit(Puzzle(), data, queue=closed_set(beam(3), key=tuple))


def main() -> None:
    model = train()
    for x in HELD_OUT:
        few, many = dequeued(model, x), dequeued(BREADTH_FIRST, x)
        print(f"{x}: {len(few)} nodes with learned weights, {len(many)} breadth-first")


if __name__ == "__main__":
    main()
