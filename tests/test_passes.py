import os
import signal

import numpy as np

from laso import Progress
from laso.data import load_bundled
from laso.engine import layout as at
from laso.estimators import Tagger


def test_ctrl_c_ends_between_two_examples_and_keeps_what_was_learned():
    train, test = load_bundled()
    before = signal.getsignal(signal.SIGINT)
    seen: list[Progress] = []

    def press(report: Progress) -> None:
        seen.append(report)
        if len(seen) == 3:  # in the middle of the second epoch
            os.kill(os.getpid(), signal.SIGINT)

    tagger = Tagger(epochs=5, queue=1).fit(train, progress=press)
    assert signal.getsignal(signal.SIGINT) is before
    assert [report.epoch for report in seen] == [1, 1, 2]
    assert tagger.interrupted_
    assert tagger.n_iter_ == 1
    assert tagger.training_ is not None
    table = tagger.training_.table
    assert table.ints[at.TICKS] == 400 + 256
    rows = int(table.ints[at.ROWS])
    assert sorted(table.slots[:, 1][table.slots[:, 1] > 0]) == list(range(1, rows + 1))
    assert np.isfinite(tagger.weights_.v).all()
    assert tagger.score(test) > 0.8


def test_the_order_of_an_epoch_depends_on_seed_and_epoch_alone():
    from laso.engine.epochs import Plan

    plan = Plan(seed=3)
    assert plan.order(2, 50).tolist() == Plan(seed=3, epochs=2).order(2, 50).tolist()
    assert plan.order(2, 50).tolist() != plan.order(3, 50).tolist()
    assert plan.order(2, 50).tolist() != Plan(seed=4).order(2, 50).tolist()
    assert sorted(plan.order(2, 50).tolist()) == list(range(50))
    assert Plan(seed=None).order(7, 5).tolist() == [0, 1, 2, 3, 4]
