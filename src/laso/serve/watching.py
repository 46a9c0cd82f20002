"""A training as the page shows it: loss, held-out score and one search after each epoch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from laso.errors import LasoError
from laso.pictures.search import drawn, rounds_of

if TYPE_CHECKING:
    from laso.engine.epochs import Training
    from laso.engine.layout import WeightTable
    from laso.estimators import SearchEstimator

COLUMNS = 40  # rounds of a search that are drawn
NONE, RUNNING, ENDED = "none", "running", "ended"


@dataclass
class Watched:
    """What is known of a training; the thread that learns writes it, those that answer read it."""

    state: str = NONE
    text: str = ""  # what is done now
    sentence: int = 0  # the example whose search is shown
    epochs: list[dict[str, Any]] = field(default_factory=list)

    def begin(self, text: str) -> None:
        """Note what is done now."""
        self.state, self.text = RUNNING, text

    def end(self, text: str) -> None:
        """Note that the training has ended."""
        self.state, self.text = ENDED, text

    def after_epoch(
        self, model: SearchEstimator, examples: Callable[[], list[tuple[Any, Any]]]
    ) -> Callable[[Training, Callable[[], WeightTable]], None]:
        """Return what ``fit`` calls after each epoch of a model, to show a search of an example."""

        def told(training: Training, table: Callable[[], WeightTable]) -> None:
            row: dict[str, Any] = {"epoch": training.epoch, "loss": training.error_rate}
            row["score"] = training.scores[-1] if training.scores else None
            chosen = examples()
            if chosen:
                x, y = chosen[min(self.sentence, len(chosen) - 1)]
                row |= searched(model.draft.with_weights(table()), x, y)
            self.epochs.append(row)
            self.text = f"epoch {training.epoch}"

        return told

    def since(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return what has happened since the epochs that the page knows."""
        known = request.get("known", 0)
        chosen = request.get("sentence")
        if isinstance(chosen, int) and chosen >= 0:
            self.sentence = chosen
        rows = self.epochs[known if isinstance(known, int) else 0 :]
        return {"state": self.state, "text": self.text, "epochs": rows}


def searched(model: SearchEstimator, x: Any, y: Any) -> dict[str, Any]:
    """Return the picture of the search for an example, and how its gold path fared."""
    words = model.task_.words(x)
    try:
        search = rounds_of(model.trace(x, y, pruned=2), words)
    except LasoError as error:
        return {"verdict": str(error)}
    return {"picture": drawn(search, columns=COLUMNS, alone=False), "verdict": search["verdict"]}
