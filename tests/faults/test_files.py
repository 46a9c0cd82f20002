"""Files are written completely or not at all, and what killed processes leave is removed."""

import errno
import os
import stat
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest

from laso import BadModel, Checkpoint, Tagger, load_model
from laso.data import load_bundled, write_columns
from laso.engine.machine import as_names
from laso.estimators.learning import streaming
from laso.files import atomic, container, limits

TRAIN, TEST = load_bundled()
SMALL = TRAIN[:30]
posix = pytest.mark.skipif(os.name == "nt", reason="there are no such modes and links")


def names(folder):
    return sorted(each.name for each in folder.iterdir())


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_the_mode_of_the_old_file_stays(tmp_path, mode):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(mode)
    atomic.write_bytes(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@posix
def test_a_new_file_has_the_usual_mode(tmp_path):
    atomic.write_bytes(tmp_path / "ours", b"")
    (tmp_path / "usual").touch()
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode


@posix
@pytest.mark.parametrize("exists", [True, False])
def test_a_symbolic_link_is_followed(tmp_path, exists):
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    target, link = tmp_path / "there" / "file", tmp_path / "here" / "link"
    if exists:
        target.write_bytes(b"old")
    link.symlink_to(Path("..") / "there" / "file")
    atomic.write_bytes(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert names(tmp_path / "here") == ["link"]
    assert names(tmp_path / "there") == ["file"]


@posix
def test_a_device_and_a_pipe_are_written_to_directly(tmp_path):
    atomic.write_bytes(os.devnull, b"text")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    thread = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    thread.start()
    atomic.write_bytes(pipe, b"text")
    thread.join()
    assert read == [b"text"]
    assert names(tmp_path) == ["pipe"]


def test_errors_name_the_file_that_was_asked_for(tmp_path):
    with pytest.raises(OSError, match="none") as caught:
        atomic.write_bytes(tmp_path / "none" / "file", b"")
    assert caught.value.filename == str(tmp_path / "none" / "file")
    with pytest.raises(OSError, match="full") as caught, atomic.replacing(tmp_path / "file"):
        raise OSError(errno.ENOSPC, "full")
    assert (caught.value.filename, caught.value.errno) == (str(tmp_path / "file"), errno.ENOSPC)
    with pytest.raises(FileNotFoundError) as other, atomic.replacing(tmp_path / "file"):
        (tmp_path / "another").open()
    assert other.value.filename == str(tmp_path / "another")
    assert names(tmp_path) == []


def test_a_folder_is_not_replaced(tmp_path):
    with pytest.raises(OSError, match=tmp_path.name) as caught:
        atomic.write_bytes(tmp_path, b"")
    assert caught.value.filename == str(tmp_path)


# what is left behind

LEAVE = """
import os, sys
from pathlib import Path
from laso.files import atomic
path, file = atomic.new_file(Path(sys.argv[1]))
print(path.name, flush=True)
if sys.argv[2] == "wait":
    sys.stdin.read()
os._exit(0)
"""


def leave(folder, how):
    process = subprocess.Popen(
        [sys.executable, "-c", LEAVE, str(folder), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


@posix
def test_the_next_process_removes_what_a_killed_one_left_and_nothing_else(tmp_path):
    running, used = leave(tmp_path, "wait")
    ended, left = leave(tmp_path, "end")
    ended.communicate()
    mine, file = atomic.new_file(tmp_path)
    file.close()
    host = atomic.PATTERN.fullmatch(left)[1]  # type: ignore[index]
    kept = [
        used,
        mine.name,
        left.replace(host, "0" * 8),  # another machine's
        f"{left}.txt",
        f"my{left}",
        ".model.laso.0123456789ab",
    ]
    for name in kept:
        (tmp_path / name).touch()
    earlier = f".laso-{host}-{os.getpid()}-{'0' * 8}-{'0' * 8}.tmp"  # the same number, long ago
    (tmp_path / earlier).touch()
    atomic.write_bytes(tmp_path / "file", b"")
    assert names(tmp_path) == sorted([*kept, "file"])
    running.communicate()
    atomic.write_bytes(tmp_path / "file", b"")
    assert used not in names(tmp_path)


# what uses it


def test_a_checkpoint_that_fails_is_tried_again(tmp_path, monkeypatch):
    calls = []
    write = os.fsync

    def full(number):
        calls.append(number)
        if len(calls) <= 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(number)

    monkeypatch.setattr(os, "fsync", full)
    path = tmp_path / "run.laso"
    expected = Tagger(epochs=4, patience=9).fit(SMALL)
    model = Tagger(epochs=4, patience=9)
    with pytest.warns(RuntimeWarning, match="space left") as warned:
        model.fit(SMALL, checkpoint=Checkpoint(path, seconds=0.0))
    assert as_names(model.weights_) == as_names(expected.weights_)
    assert all(str(path) in str(each.message) for each in warned)
    assert len(warned) == 2  # the third epoch's was saved
    assert names(tmp_path) == ["run.laso"]
    again = load_model(path).resume(SMALL, epochs=4)
    assert as_names(again.weights_) == as_names(expected.weights_)


def test_a_checkpoint_that_is_not_due_is_not_tried(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Tagger(epochs=2).fit(SMALL, checkpoint=Checkpoint(tmp_path / "no" / "run", seconds=99.0))


def test_tag_leaves_the_old_output_if_it_fails(laso, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Tagger(epochs=1).fit(SMALL).save("tags.laso")
    write_columns("good.txt", [[token[:2] for token in sentence] for sentence in TEST])
    Path("bad.txt").write_text("a DT\nb\n")
    assert laso("tag", "tags.laso", "good.txt", "--output", "out.txt").code == 0
    before = Path("out.txt").read_bytes()
    assert laso("tag", "tags.laso", "good.txt", "bad.txt", "--output", "out.txt").code == 3
    assert Path("out.txt").read_bytes() == before
    assert laso("tag", "tags.laso", "good.txt", "--output", "good.txt").code == 0  # over its input
    assert Path("good.txt").read_bytes() == before
    assert sorted(os.listdir()) == ["bad.txt", "good.txt", "out.txt", "tags.laso"]


def test_a_store_serves_several_runs_and_leaves_no_files(tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "EXAMPLES_AT_A_TIME", 7)
    others: list[Tagger] = []

    def beside(progress):
        if not others:  # another run that begins and ends in the same folder
            others.append(Tagger(epochs=1))
            others[0].fit_stream(lambda: TRAIN[30:50], store=tmp_path / "new" / "s")

    store = tmp_path / "new" / "s"
    model = Tagger(epochs=2).fit_stream(lambda: SMALL, store=store, progress=beside)
    assert as_names(model.weights_) == as_names(Tagger(epochs=2).fit(SMALL).weights_)
    assert names(store) == []


def test_a_file_that_is_cut_short_while_it_is_read_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(container, "PART", 100)
    path = tmp_path / "model.laso"
    model = Tagger(epochs=1).fit(SMALL)
    model.save(path)
    whole, check = path.read_bytes(), limits.check_needs
    assert load_model(path).predict(TEST) == model.predict(TEST)

    def cut(*given):
        check(*given)
        os.truncate(path, len(whole) // 2)

    monkeypatch.setattr(container, "check_needs", cut)
    with pytest.raises(BadModel, match="cut short while it was read"):
        load_model(path)
