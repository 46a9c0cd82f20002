"""What the documents promise, in virtual environments with nothing of ours on any path."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from laso.data import load_bundled, write_columns
from tests.small_bert import write_bert

ROOT = Path(__file__).resolve().parent.parent
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
pytestmark = pytest.mark.skipif(
    not (ROOT / ".git").exists(), reason="needs a clone, to copy what git tracks"
)

# What each extra unlocks.
START = """
from pathlib import Path
from laso import Chunker, Tagger
from laso.data import load_bundled
new, model, out = (str(Path(name).resolve()) for name in ("new.txt", "tagger.laso", "out"))
Path(out).mkdir(exist_ok=True)
train, test = ([[(t[0], t[-1]) for t in s] for s in part] for part in load_bundled())
sentences, held_out = train[:60], test[:20]
"""
EXTRAS = {
    "plots": """
from laso.estimators.capabilities.precision_recall import curve, plot
tagger = Tagger(epochs=2, queue=1).fit(sentences)
X, y = ([[token[column] for token in s] for s in held_out] for column in (0, 1))
plot(curve(tagger, X, y, label="B-NP", biases=(-1, 0, 1)), "curve.png")
tagger.calibrate(held_out).reliability(held_out).plot("reliability.svg")
""",
    "lists": """
resources = ["names", "places", "abbreviations", "stop-words", "clusters", "lexicon"]
Chunker(epochs=1, queue=1, resources=resources).fit(sentences).save("lists.laso")
""",
    "encoder": """
from laso.encoders import load_encoder
words = [[word for word, _ in s] for s in sentences]
for _ in range(2):
    vectors = load_encoder("small-bert").encode(words)
assert vectors[0].shape == (len(words[0]), 8)
""",
    "serve": """
from http.client import HTTPConnection
from laso.serve.server import PageServer
from laso.serve.workbench import Workbench
server = PageServer(Workbench(Tagger(epochs=1, queue=1).fit(sentences)))
server.start()
for path in ("/", "/main.js", "/pictures.css"):
    connection = HTTPConnection("127.0.0.1", server.port)
    connection.request("GET", path, headers={"Authorization": f"Bearer {server.token}"})
    assert connection.getresponse().status == 200, path
server.close()
""",
    "dask": """
import joblib
from dask.distributed import Client
from laso.examples.label_folder import with_dask
def main():
    with Client(n_workers=2, threads_per_worker=1, dashboard_address=":0"):
        with joblib.parallel_config("dask", n_jobs=2):
            Tagger(epochs=2, queue=1, shards=2).fit(sentences).save(model)
        assert len(with_dask([new], model=model, out=out)) == 1
if __name__ == "__main__":
    main()
""",
    "ray": """
import joblib, ray
from ray.util.joblib import register_ray
from laso.examples.label_folder import with_ray
ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100_000_000)
register_ray()
with joblib.parallel_config("ray", n_jobs=2):
    Tagger(epochs=2, queue=1, shards=2).fit(sentences).save(model)
assert len(with_ray([new], model=model, out=out)) == 1
""",
}


def copy_of_the_tree(folder: Path) -> Path:
    """Return a copy of the files that git tracks."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).exists():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
    return folder


def blocks(document: str) -> list[str]:
    return PYTHON.findall((ROOT / document).read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Home:
    """A folder with an empty virtual environment, and a cache of compiled code."""

    folder: Path
    cache: Path

    def run(self, *command: str | Path, ends: int = 0, cwd: Path | None = None) -> str:
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "LASO_", "VIRTUAL_ENV", "COV_"))
        }
        program = self.folder / "venv" / "bin" / str(command[0])
        done = subprocess.run(
            [str(program if program.exists() else command[0]), *map(str, command[1:])],
            env={**environment, "LASO_CACHE": str(self.cache)},
            cwd=cwd or self.folder,
            capture_output=True,
            text=True,
        )
        assert done.returncode == ends, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout if ends == 0 else done.stderr

    def python(self, text: str, *, ends: int = 0) -> str:
        (self.folder / "program.py").write_text(text, encoding="utf-8")
        return self.run("python", "program.py", ends=ends)

    def install(self, what: str | Path) -> None:
        # Modules are compiled when they are imported.
        self.run("python", "-m", "pip", "install", "--no-compile", what)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of a run share, for the cache of compiled code."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "installed"


@pytest.fixture
def home(tmp_path: Path, shared: Path) -> Home:
    made = Home(tmp_path / "empty", shared / "cache")
    made.folder.mkdir()
    made.run(sys.executable, "-m", "venv", "venv")
    return made


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a wheel and an sdist of a copy of the tree."""
    home = Home(tmp_path_factory.mktemp("builder"), tmp_path_factory.mktemp("unused"))
    home.run(sys.executable, "-m", "venv", "venv")
    try:
        home.install("hatchling")
    except AssertionError as error:
        pytest.skip(f"no package index is reachable: {error}")
    tree = copy_of_the_tree(home.folder / "tree")
    home.run("python", "-m", "hatchling", "build", "-d", home.folder / "dist", cwd=tree)
    return home.folder / "dist"


def check_readme(home: Home) -> None:
    """Run the five lines of README and its commands."""
    assert home.python(blocks("README.md")[0]) == "[['DET', 'NOUN', 'VERB']]\n"
    sentences = [[(token[0], token[-1]) for token in s] for part in load_bundled() for s in part]
    write_columns(home.folder / "train.txt", sentences[:60])
    write_columns(home.folder / "test.txt", sentences[-20:])
    write_columns(home.folder / "new.txt", [[(word,) for word, _ in s] for s in sentences[-20:]])
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^    (laso .*?)(?: #.*)?$", readme, re.MULTILINE)
    assert [command.split()[1] for command in commands] == ["train", "tag", "eval", "serve"]
    for command in commands[:-1]:  # the last one stays; its extra is looked at below
        assert home.run(*command.split())


def check_own_task(home: Home) -> None:
    """Run every snippet of the tutorial on tasks, and its command."""
    document = "docs/tutorial/your-own-task.md"
    snippets = blocks(document)
    assert "length: [3]" in home.python("\n".join(snippets))
    (home.folder / "my_module.py").write_text("\n".join(snippets[:2]), encoding="utf-8")
    (home.folder / "lines.txt").write_text("the cat sat on a mat\na dog sat on the cat\n" * 5)
    text = (ROOT / document).read_text(encoding="utf-8")
    (command,) = re.findall(r"^    (laso .*)$", text, re.MULTILINE)
    assert home.run(*command.split())


def test_pip_install_and_the_five_lines_of_readme(home, built):
    home.install(built.parent / "tree")
    assert home.python(blocks("README.md")[0]) == "[['DET', 'NOUN', 'VERB']]\n"


@pytest.mark.parametrize(
    ("archive", "pip", "extras"),
    [
        ("*.whl", "bundled", ["plots", "lists"]),
        ("*.tar.gz", "bundled", ["dask"]),
        ("*.whl", "newest", ["ray"]),
        ("*.tar.gz", "newest", ["encoder", "serve"]),
    ],
)
def test_installed_from_an_archive_the_documents_hold(home, built, archive, pip, extras):
    if pip == "newest":
        home.run("python", "-m", "pip", "install", "--upgrade", "pip")
    (path,) = built.glob(archive)
    home.install(path)
    assert str(home.folder / "venv") in home.python("import laso; print(laso.__file__)")
    check_readme(home)
    check_own_task(home)
    write_bert(home.folder / "small-bert")
    for extra in extras:
        program = START + EXTRAS[extra]
        if extra in ("plots", "lists", "encoder", "serve"):
            missing = home.python(program, ends=1).splitlines()[-1]
            assert f"python -m pip install 'laso[{extra}]'" in missing
        home.install(f"laso[{extra}] @ {path.as_uri()}")
        home.python(program)
