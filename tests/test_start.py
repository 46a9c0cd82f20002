"""What a process imports to label: neither Numba nor scikit-learn nor SciPy."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from laso import Tagger

HEAVY = {"numba", "scipy", "sklearn", "pandas", "joblib"}
NEEDLESS = {"concurrent", "decimal", "email", "safetensors", "socket", "typer", "rich"}
LABEL = """
import json, sys
from laso import load_model
labels = load_model(sys.argv[1]).predict([["the", "cat", "sleeps"]])
print(json.dumps([labels, sorted({name.partition(".")[0] for name in sys.modules})]))
"""
COMMAND = """
import json, sys
sys.argv = ["laso", "tag", *sys.argv[1:]]
from laso.cli import main
try:
    main()
finally:
    found = {name.partition(".")[0] for name in sys.modules}
    print(json.dumps(sorted(found)), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    X = [["the", "cat", "sleeps"], ["a", "dog", "barks"]]
    y = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"]]
    file = tmp_path_factory.mktemp("start") / "model.laso"
    tagger = Tagger(epochs=3).fit(X, y)
    tagger.predict(X)  # so that all code is in the cache
    tagger.save(file)
    return str(file)


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)


def test_labelling_imports_little(model):
    labels, found = json.loads(run(LABEL, model).stdout)
    assert labels == [["DET", "NOUN", "VERB"]]
    assert not (HEAVY | NEEDLESS) & {*found}


def test_the_command_imports_little(model, tmp_path):
    (tmp_path / "text.txt").write_text("the\ncat\nsleeps\n\n")
    process = run(COMMAND, model, str(tmp_path / "text.txt"))
    assert process.stdout.split() == ["the", "DET", "cat", "NOUN", "sleeps", "VERB"]
    assert not HEAVY & {*json.loads(process.stderr.splitlines()[-1])}


def test_python_m_laso_is_the_command_line():
    """Where the script is not on the path, as after ``pip install --user``."""
    command = [sys.executable, "-m", "laso", "--version"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.startswith("laso ")
    usage = subprocess.run([*command[:3], "--help"], capture_output=True, text=True, check=True)
    assert usage.stdout.lstrip().startswith("Usage: laso ")
