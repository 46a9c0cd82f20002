"""A child process can predict and learn, whatever the threads of its parent did at the fork."""

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import laso
from laso.locks import own_lock, shared_lock

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

PACKAGE = Path(laso.__file__).parent


def test_forks_while_threads_predict():
    run = subprocess.run(
        [sys.executable, "-m", "tests.faults.forks", "25"],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert json.loads(run.stdout) == {"forks": 25, "predicted": 25, "failed": 0, "hung": 0}


def test_every_lock_of_the_package_survives_a_fork():
    bare = re.compile(r"\b(?:R?Lock|Condition|Semaphore)\(|functools(?:\.| import .*)cached_prop")
    found = [
        file.name
        for file in PACKAGE.rglob("*.py")
        if file.name != "locks.py" and bare.search(file.read_text(encoding="utf-8"))
    ]
    assert not found, "expected locks of laso.locks"


def exit_code_in_child(work):
    pid = os.fork()
    if pid == 0:
        code = 2
        try:
            code = 0 if work() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("make", [shared_lock, own_lock])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forks with threads
def test_a_lock_that_another_thread_holds_is_free_in_the_child(make, monkeypatch):
    monkeypatch.setattr("laso.locks.WAIT", 0.01)
    lock, held, over = make(), threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            over.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        assert exit_code_in_child(lambda: lock.acquire(timeout=5)) == 0
        assert not lock.acquire(timeout=0.01)
    finally:
        over.set()
        thread.join()
    assert lock.acquire(timeout=5)


@pytest.mark.parametrize("make", [shared_lock, own_lock])
def test_a_lock_that_the_forking_thread_holds_stays_its_own(make):
    lock = make()

    def given_back():
        with lock:
            pass
        lock.release()
        return lock.acquire(timeout=5)

    with lock:
        assert exit_code_in_child(given_back) == 0
    assert lock.acquire(timeout=5)
