"""Trainings that are killed at random moments: the next run resumes, with the same result.

    python -m tests.faults.kills KILLS [SEED]

kills so many trainings, and prints how they went, as JSON.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from laso import LasoError, Tagger, load_model
from laso.data import load_bundled
from laso.files.atomic import PATTERN

EPOCHS = 40
SENTENCES = 120
# In the child: go on from the checkpoint if there is one, and save one after each epoch.
TRAIN = f"""
import sys
from pathlib import Path
from laso import Checkpoint, Tagger, load_model
from laso.data import load_bundled
path, model = Path(sys.argv[1]), Path(sys.argv[2])
data = load_bundled()[0][:{SENTENCES}]
checkpoint = Checkpoint(path, seconds=0.0)
print("begun", flush=True)
if path.exists():
    made = load_model(path).resume(data, epochs={EPOCHS}, checkpoint=checkpoint)
else:
    made = Tagger(epochs={EPOCHS}).fit(data, checkpoint=checkpoint)
made.save(model)
print("ended", flush=True)
"""


def expected() -> bytes:
    """Returns the file of a training that nothing killed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.laso"
        Tagger(epochs=EPOCHS).fit(load_bundled()[0][:SENTENCES]).save(path)
        return path.read_bytes()


def run(kills: int, seed: int = 0) -> dict[str, int]:
    """Kills so many trainings at random moments; counts what was lost."""
    draw = random.Random(seed)
    whole = expected()
    found = {"kills": 0, "runs": 0, "models lost": 0, "other results": 0, "left behind": 0}
    while found["kills"] < kills:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            while _killed(folder, draw.uniform(0.0, 0.9), kills - found["kills"]):
                found["kills"] += 1
                found["models lost"] += not _is_intact(folder / "run.laso")
            found["runs"] += 1
            found["other results"] += (folder / "model.laso").read_bytes() != whole
            found["left behind"] += any(PATTERN.fullmatch(each.name) for each in folder.iterdir())
    return found


def _killed(folder: Path, seconds: float, left: int) -> bool:
    """Trains, and kills it after so many seconds unless none is left; was it killed?"""
    process = subprocess.Popen(
        [sys.executable, "-c", TRAIN, str(folder / "run.laso"), str(folder / "model.laso")],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    if left:
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode in (0, -signal.SIGKILL)
    return process.returncode != 0


def _is_intact(path: Path) -> bool:
    """Returns whether a checkpoint can be loaded, if there is one."""
    try:
        return not path.exists() or load_model(path).n_iter_ > 0
    except LasoError:
        return False


if __name__ == "__main__":
    json.dump(run(*map(int, sys.argv[1:])), sys.stdout)
