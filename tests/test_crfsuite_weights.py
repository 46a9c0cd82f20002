"""lbfgs() against CRFsuite: at equal settings, the same weights."""

import numpy as np
import pytest

from laso import CRF

FEW = 30
SETTINGS = [(0.0, 1.0), (0.1, 0.1), (0.5, 0.0), (0.0, 0.1)]


def sentences(seed=0, n=FEW):
    """Sentences of dict features with values, some of them equal, and their labels."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        length = int(rng.integers(1, 9))
        words = rng.integers(0, 12, length)
        noise = rng.random(length)
        X.append(
            [
                {
                    "bias": 1.0,
                    f"w={word}": 1.0,
                    f"before={words[i - 1] if i else 'none'}": 0.5,
                    "size": float(np.float32(noise[i])),
                }
                for i, word in enumerate(words.tolist())
            ]
        )
        labels = [(word + (noise[i] > 0.8)) % 3 for i, word in enumerate(words.tolist())]
        y.append(["ABC"[label] for label in labels])
    return X, y


def crfsuite_weights(tmp_path, X, y, **parameters):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    for xs, ys in zip(X, y, strict=True):
        trainer.append(xs, ys)
    exact = {"epsilon": 1e-8, "delta": 1e-14, "max_iterations": 2000}
    trainer.set_params({**parameters, **exact})
    path = str(tmp_path / "model")
    trainer.train(path)
    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    info = tagger.info()
    return info.state_features, info.transitions


@pytest.mark.parametrize("transitions", [False, True])
@pytest.mark.parametrize("states", [False, True])
@pytest.mark.parametrize(("c1", "c2"), SETTINGS)
def test_the_weights_are_those_of_crfsuite(tmp_path, c1, c2, states, transitions):
    X, y = sentences()
    crf = CRF(
        c1=c1,
        c2=c2,
        all_possible_states=states,
        all_possible_transitions=transitions,
        max_iterations=2000,
        epsilon=1e-9,
        delta=0.0,
    )
    crf.fit(X, y)
    options = {"feature.possible_states": states, "feature.possible_transitions": transitions}
    gold = crfsuite_weights(tmp_path, X, y, c1=c1, c2=c2, **options)
    found = crf.state_features_, crf.transition_features_
    for ours, theirs in zip(found, gold, strict=True):
        for name in {*ours, *theirs}:
            assert ours.get(name, 0.0) == pytest.approx(theirs.get(name, 0.0), abs=1e-3)
