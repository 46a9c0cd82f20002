"""Code of the cache is run only if nobody else can have written it."""

import hashlib
import logging
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from laso.engine import native
from laso.engine.layout import STEPS, Limit
from laso.engine.native import Kernels, cache, trust
from tests.engine_inputs import Segmenting, corpus_of

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there are no such owners and modes")

OTHER = 12345


@pytest.fixture
def warned(caplog):
    cache.warn_untrusted.cache_clear()
    with caplog.at_level(logging.WARNING, logger="laso.engine"):
        yield lambda: [record.getMessage() for record in caplog.records]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache of this user with one entry."""
    monkeypatch.setenv("LASO_CACHE", str(tmp_path / "cache"))
    made = cache.folder_for("Problem-0123")
    cache.save(made / "entry", "symbol", b"code")
    return made


def give_away(path, monkeypatch):
    """Lets a file be another user's."""
    if os.geteuid() == 0:
        os.chown(path, OTHER, OTHER, follow_symlinks=False)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: OTHER)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_folders_and_files_are_the_users_alone(folder, tmp_path, warned):
    old = os.umask(0)
    try:
        again = cache.folder_for("Problem-4567")
        cache.save(again / "entry", "symbol", b"code")
    finally:
        os.umask(old)
    for each in (folder, again, tmp_path / "cache", tmp_path / "cache" / "kernels"):
        assert mode(each) == 0o700
    for each in (folder / "entry", folder / "used", again / "entry", again / "used"):
        assert mode(each) == 0o600
    assert cache.read(folder / "entry") == ("symbol", b"code")
    assert warned() == []


def forged(path, code=b"evil"):
    """Other code with a checksum that fits."""
    payload = b"symbol\0" + code
    start = cache.MAGIC + hashlib.sha256(payload).digest()
    path.write_bytes(start + path.read_bytes()[len(start) : len(start) + 32] + payload)


def test_a_forged_file_with_a_checksum_that_fits_is_not_run(folder, warned):
    forged(folder / "entry")
    assert cache.read(folder / "entry") is None
    assert [str(folder / "entry") in each for each in warned()] == [True]
    assert "not signed" in warned()[0]


@pytest.mark.parametrize("bits", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_not_run(folder, warned, bits, monkeypatch):
    monkeypatch.setattr(trust, "_is_private", lambda group: False)
    (folder / "entry").chmod(bits)
    assert cache.read(folder / "entry") is None
    assert f"{folder / 'entry'} can be changed by others" in warned()[0]


def test_a_file_of_another_user_is_not_run(folder, warned, monkeypatch):
    give_away(folder / "entry", monkeypatch)
    assert cache.read(folder / "entry") is None
    assert f"{folder / 'entry'} belongs to another user" in warned()[0]


def test_a_link_is_not_followed_to_code(folder, tmp_path, warned):
    (folder / "entry").rename(tmp_path / "elsewhere")
    (folder / "entry").symlink_to(tmp_path / "elsewhere")
    assert cache.read(folder / "entry") is None
    assert f"{folder / 'entry'} is a link" in warned()[0]


@pytest.mark.parametrize("place", ["folder", "kernels", "cache", "above"])
@pytest.mark.parametrize("how", ["mode", "owner"])
def test_a_folder_that_others_may_fill_is_not_used(folder, warned, place, how, monkeypatch):
    part = {"folder": folder, "kernels": folder.parent, "cache": folder.parents[1]}.get(
        place, folder.parents[2]
    )
    if how == "mode":
        part.chmod(0o777)
    else:
        give_away(part, monkeypatch)
    try:
        own = cache.folder_for("Problem-0123")
    finally:
        part.chmod(0o700)
    assert own != folder
    assert mode(own) == 0o700
    assert len(warned()) == 1
    if os.geteuid() == 0:
        assert str(part) in warned()[0]
    assert not (own / "entry").exists()


def test_a_sticky_folder_above_is_fine_and_links_there_are_judged(tmp_path, monkeypatch, warned):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (tmp_path / "mine").mkdir(mode=0o700)
    (shared / "link").symlink_to(tmp_path / "mine")
    monkeypatch.setenv("LASO_CACHE", str(shared / "link"))
    assert cache.folder_for("Problem-0123").parents[1] == shared / "link"
    assert warned() == []
    if os.geteuid() == 0:
        give_away(shared / "link", monkeypatch)
        assert cache.folder_for("Problem-0123").parents[1] != shared / "link"
        assert f"{shared / 'link'} belongs to another user" in warned()[0]


def test_links_that_lead_in_a_circle_are_refused(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert "too many links" in str(trust.untrusted(tmp_path / "a"))


def test_a_group_of_one_user_is_no_other():
    import grp
    import pwd

    user = pwd.getpwuid(os.geteuid())
    names = {each.gr_gid: each for each in grp.getgrall()}
    trust._is_private.cache_clear()
    for number, group in names.items():
        own = number == user.pw_gid and group.gr_name == user.pw_name
        expected = number == 0 or (own and set(group.gr_mem) <= {user.pw_name})
        assert trust._is_private(number) == expected
    assert not trust._is_private(max(names) + 1)


SHARED = """
import os, sys
os.setgid(12345); os.setuid(12345)
os.environ["HOME"] = sys.argv[2]
from pathlib import Path
from laso.engine.native import cache
print(cache.read(Path(sys.argv[1])))
"""


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="needs the administrator")
def test_what_the_administrator_has_compiled_is_trusted_like_a_program(monkeypatch):
    import tempfile

    with tempfile.TemporaryDirectory() as top:  # pytest's own folders are for one user alone
        os.chmod(top, 0o755)
        monkeypatch.setenv("LASO_CACHE", f"{top}/cache")
        folder = cache.folder_for("Problem-0123")
        cache.save(folder / "entry", "symbol", b"code")
        cache.save(folder / "other", "symbol", b"code")
        for each in (folder, *folder.parents[:2]):
            each.chmod(0o755)
        (folder / "entry").chmod(0o644)
        (folder / "other").chmod(0o666)
        found = [
            subprocess.run(
                [sys.executable, "-c", SHARED, str(folder / name), top],
                capture_output=True,
                text=True,
                check=False,
            )
            for name in ("entry", "other")
        ]
        readable = "Permission denied" not in found[0].stderr  # the interpreter may be private
        if readable and found[0].returncode == 0:
            assert found[0].stdout.strip() == "('symbol', b'code')"
            assert found[1].stdout.strip() == "None"
            assert "can be changed by others" in found[1].stderr


# the key


@pytest.fixture
def config(tmp_path, monkeypatch):
    """The folders of a user who has no key yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user-cache"))
    trust.key.cache_clear()
    yield tmp_path / "config" / "laso"
    trust.key.cache_clear()


@pytest.mark.skipif(sys.platform != "linux", reason="the folders of a user are elsewhere")
class TestKey:
    def test_it_is_made_once_and_is_the_users_alone(self, config):
        first = trust.key()
        trust.key.cache_clear()
        assert trust.key() == first
        assert len(first) == trust.KEY_SIZE
        assert mode(config) == 0o700
        assert mode(config / trust.KEY_NAME) == 0o600
        assert [each.name for each in config.iterdir()] == [trust.KEY_NAME]

    def test_of_processes_that_begin_at_once_all_have_the_same(self, config):
        code = "from laso.engine.native import trust; print(trust.key().hex())"
        runs = [
            subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
            for _ in range(4)
        ]
        assert len({run.communicate()[0] for run in runs}) == 1

    def test_one_that_others_know_is_not_used(self, config, caplog, folder):
        first = trust.key()
        (config / trust.KEY_NAME).chmod(0o644)
        trust.key.cache_clear()
        assert trust.key() != first  # that of the cache folder
        assert cache.read(folder / "entry") is None

    def test_one_that_is_cut_short_is_not_used(self, config):
        trust.key()
        (config / trust.KEY_NAME).write_bytes(b"short")
        trust.key.cache_clear()
        assert trust.key() == trust._read_key(config.parents[1] / "user-cache/laso/compile.key")

    def test_without_any_folder_there_is_one_for_the_process(self, config, monkeypatch, caplog):
        for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
            monkeypatch.setenv(name, "/dev/null/nowhere")
        assert len(trust.key()) == trust.KEY_SIZE
        assert "compiling for this process only" in caplog.text


# the whole way


def test_forged_code_is_compiled_again(tmp_path, monkeypatch, warned):
    monkeypatch.setenv("LASO_CACHE", str(tmp_path))
    corpus = corpus_of([[[0]] * 4], [[]], [0])

    def limits():
        most = np.zeros(len(Limit), np.int64)
        kernels = Kernels(Segmenting, native.PLAIN)
        kernels("largest", corpus, np.array([0]), most, np.zeros(len(Limit), np.int64))
        return int(most[STEPS])

    expected = limits()
    (file,) = Path(tmp_path).glob("kernels/Segmenting.largest-*/*.native")
    forged(file)
    assert limits() == expected
    assert any(str(file) in message for message in warned())
    assert cache.read(file) is not None
