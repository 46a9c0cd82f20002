"""``laso data`` against a server of our own: got, resumed, verified, refused."""

import gzip
import hashlib
import http.server
import json
import re
import threading
from typing import Any, ClassVar

import pytest

from laso import BadData, MissingData
from laso.data import find_corpus
from laso.data.download import get
from laso.data.registry import CORPORA, Corpus, File

TEXT = b"a X\nb Y\n\n" * 5000


class Home(http.server.BaseHTTPRequestHandler):
    """Serves what is in ``files``; breaks off after ``most`` bytes, ``ranges`` or not."""

    files: ClassVar[dict[str, bytes]] = {}
    most: int | None = None
    ranges = True
    asked: ClassVar[list[str | None]] = []

    def do_GET(self):
        data = self.files.get(self.path)
        wanted = self.headers.get("Range")
        type(self).asked.append(wanted)
        if data is None:
            self.send_error(404)
            return
        first = int(wanted[6:-1]) if wanted and self.ranges else 0
        if first >= len(data):
            self.send_error(416)
            return
        self.send_response(206 if first else 200)
        self.send_header("Content-Length", str(len(data) - first))
        self.end_headers()
        end = len(data) if self.most is None else first + self.most
        self.wfile.write(data[first:end])

    def log_message(self, *_):
        pass


@pytest.fixture
def home(monkeypatch):
    fresh: dict[str, Any] = {"files": {}, "most": None, "ranges": True, "asked": []}
    for name, value in fresh.items():
        monkeypatch.setattr(Home, name, value)
    monkeypatch.setenv("no_proxy", "*")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Home)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


def corpus(home, *, packed=False, sha256=None):
    Home.files["/a.txt"] = TEXT
    Home.files["/a.txt.gz"] = gzip.compress(TEXT)
    url = home + ("a.txt.gz" if packed else "a.txt")
    wanted = sha256 or hashlib.sha256(TEXT).hexdigest()
    return Corpus("mine", "a test", home, "CC0", (File("train.txt", wanted, len(TEXT), url),))


@pytest.mark.parametrize("packed", [False, True])
def test_a_corpus_is_got_once(home, tmp_path, packed):
    seen = []
    mine = corpus(home, packed=packed)
    folder = get(mine, tmp_path, lambda *report: seen.append(report))
    assert (folder / "train.txt").read_bytes() == TEXT
    assert [path.name for path in folder.iterdir()] == ["train.txt"]
    name, there, whole = seen[-1]
    assert (name, there) == ("train.txt", whole)
    assert get(mine, tmp_path) == folder
    assert len(Home.asked) == 1


@pytest.mark.parametrize("ranges", [True, False])
def test_what_broke_off_goes_on(home, tmp_path, monkeypatch, ranges):
    mine = corpus(home)
    monkeypatch.setattr(Home, "most", 10_000)
    with pytest.raises(MissingData, match=r"a.txt cannot be got.*goes on with it"):
        get(mine, tmp_path)
    monkeypatch.setattr(Home, "most", None)
    monkeypatch.setattr(Home, "ranges", ranges)
    assert (get(mine, tmp_path) / "train.txt").read_bytes() == TEXT
    assert Home.asked == [None, "bytes=10000-"]


def test_a_part_that_is_complete_is_taken(home, tmp_path):
    mine = corpus(home)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.txt.part").write_bytes(TEXT)
    assert (get(mine, tmp_path) / "train.txt").read_bytes() == TEXT


@pytest.mark.parametrize("packed", [False, True])
def test_another_file_is_refused_and_deleted(home, tmp_path, packed):
    mine = corpus(home, packed=packed, sha256="0" * 64)
    with pytest.raises(BadData, match=r"found a file of SHA-256 .* expected 0000"):
        get(mine, tmp_path)
    assert not list((tmp_path / "mine").glob("train*"))


def test_a_damaged_or_swollen_archive_is_refused(home, tmp_path):
    for data in (gzip.compress(TEXT)[:-9], b"no archive", gzip.compress(bytes(10**7))):
        mine = corpus(home, packed=True)
        Home.files["/a.txt.gz"] = data
        with pytest.raises(BadData, match="found a file of SHA-256"):
            get(mine, tmp_path)
        assert not list((tmp_path / "mine").iterdir())


def test_a_home_that_has_it_not(home, tmp_path):
    mine = corpus(home)
    Home.files.clear()
    with pytest.raises(MissingData, match="404"):
        get(mine, tmp_path)
    nowhere = Corpus("x", "", home, "", (File("a", "0" * 64, 1, "http://127.0.0.1:9/a"),))
    with pytest.raises(MissingData, match="cannot be got"):
        get(nowhere, tmp_path)


def test_the_command_gets_lists_and_finds(laso, home, tmp_path, monkeypatch):
    monkeypatch.setenv("LASO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LASO_DATA", str(tmp_path))
    monkeypatch.setitem(CORPORA, "mine", corpus(home))
    assert laso("data", "path", "mine").code == 5
    shown = laso("data", "get", "mine")
    folder = tmp_path / "cache" / "data" / "mine"
    assert (shown.code, shown.out, shown.err) == (0, f"{folder}\n", "")
    assert laso("data", "path", "mine").out == f"{folder}\n"
    (row,) = json.loads(laso("data", "list", "mine", "--json").out)
    assert (row["path"], row["licence"], row["bytes"]) == (str(folder), "CC0", len(TEXT))
    (tmp_path / "mine").mkdir()  # LASO_DATA comes first
    assert find_corpus("mine") == tmp_path / "mine"
    for name in CORPORA:
        assert f"{name}: " in laso("data", "list").out


def test_what_cannot_be_got_says_how(laso, tmp_path, monkeypatch):
    monkeypatch.setenv("LASO_CACHE", str(tmp_path))
    monkeypatch.delenv("LASO_DATA", raising=False)
    shown = laso("data", "get", "litbank_coref")
    assert shown.code == 5
    assert CORPORA["litbank_coref"].home in shown.err
    assert "laso data get conll2000" in laso("data", "path", "conll2000").err
    for wrong in (["what"], ["get"], ["get", "what"], ["path"]):
        assert laso("data", *wrong).code == 2


def test_every_entry_says_where_from_and_how_to_check():
    for entry in CORPORA.values():
        assert entry.home.startswith("https://")
        assert entry.licence
        assert entry.what
        for file in entry.files:
            assert re.fullmatch("[0-9a-f]{64}", file.sha256)
            assert file.bytes > 0
            assert file.url.startswith("https://")
        assert len({file.name for file in entry.files}) == len(entry.files)
    assert [name for name, entry in CORPORA.items() if not entry.can_be_got] == [
        "ud_tr_imst",
        "uner",
        "litbank_coref",
    ]


def test_the_registry_is_that_of_the_corpora_there():
    for entry in CORPORA.values():
        try:
            folder = find_corpus(entry.name)
        except MissingData:
            continue
        for file in entry.files:
            data = (folder / file.name).read_bytes()
            assert (len(data), hashlib.sha256(data).hexdigest()) == (file.bytes, file.sha256)
