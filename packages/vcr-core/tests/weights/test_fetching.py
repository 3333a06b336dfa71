"""Weight files from a server of this machine: whole, broken off, wrong, absent."""

from __future__ import annotations

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest
from vcr_core.errors import ComponentUnavailable
from vcr_core.specs import WeightSpec
from vcr_core.weights.fetching import FetchFailed, fetch
from vcr_core.weights.places import default_folder, digest, find, located, places, verify

CONTENT = bytes(range(256)) * 12_000
SHA = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    asked: ClassVar[list[str | None]] = []
    break_at: ClassVar[int | None] = None
    ranges: ClassVar[bool] = True

    def do_GET(self):
        wanted = self.headers.get("Range")
        self.asked.append(wanted)
        if not self.path.endswith("net.pth"):
            self.send_error(404)
            return
        start = int(wanted[6:-1]) if wanted and self.ranges else 0
        if start >= len(CONTENT):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(CONTENT) - start))
        self.end_headers()
        stop, type(self).break_at = self.break_at, None
        self.wfile.write(CONTENT[start:stop])

    def log_message(self, *_):
        pass


@pytest.fixture
def address(monkeypatch):
    monkeypatch.delenv("VCR_OFFLINE", raising=False)
    monkeypatch.setattr(Handler, "asked", [])
    monkeypatch.setattr(Handler, "break_at", None)
    monkeypatch.setattr(Handler, "ranges", True)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def own_places(monkeypatch, tmp_path):
    monkeypatch.setenv("VCR_WEIGHTS_DIR", str(tmp_path / "default"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))


def weights(url, sha256=SHA, **more):
    return WeightSpec(variant="a", url=url, sha256=sha256, **more)


def test_a_file_arrives_whole_and_is_noted(address, tmp_path):
    seen = []
    spec = weights(f"{address}/net.pth")
    path = fetch(spec, tmp_path / "w", progress=lambda have, total: seen.append((have, total)))
    assert path.read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert sorted(p.name for p in (tmp_path / "w").iterdir()) == ["net.pth", "net.pth.sha256"]
    assert fetch(spec, tmp_path / "w") == path
    assert len(Handler.asked) == 1


@pytest.mark.parametrize("ranges", [True, False])
def test_what_broke_off_is_resumed_or_begun_anew(address, tmp_path, monkeypatch, ranges):
    monkeypatch.setattr(Handler, "ranges", ranges)
    monkeypatch.setattr(Handler, "break_at", 1_000_000)
    spec = weights(f"{address}/net.pth")
    with pytest.raises(FetchFailed, match=r"(?s)1000000 of 3072000 bytes.*Put it into"):
        fetch(spec, tmp_path)
    assert (tmp_path / "net.pth.part").stat().st_size == 1_000_000
    assert find(spec, (tmp_path,)) is None
    assert fetch(spec, tmp_path).read_bytes() == CONTENT
    assert Handler.asked == [None, "bytes=1000000-"]


def test_a_part_that_is_already_whole_is_fetched_anew(address, tmp_path):
    (tmp_path / "net.pth.part").write_bytes(CONTENT + b"more")
    assert fetch(weights(f"{address}/net.pth"), tmp_path).read_bytes() == CONTENT


def test_another_file_is_refused_and_not_kept(address, tmp_path):
    with pytest.raises(ComponentUnavailable, match="another file than the published one"):
        fetch(weights(f"{address}/net.pth", sha256="0" * 8), tmp_path)
    assert list(tmp_path.glob("net*")) == []


def test_mirrors_and_given_sources_are_tried_in_order(address, tmp_path):
    broken = f"{address}/gone/other.pth"
    spec = weights(broken, filename="net.pth", mirrors=(f"{address}/net.pth",))
    assert fetch(spec, tmp_path / "a").read_bytes() == CONTENT
    share = tmp_path / "share"
    share.mkdir()
    (share / "net.pth").write_bytes(CONTENT)
    Handler.asked.clear()
    assert fetch(spec, tmp_path / "b", sources=[str(share)]).read_bytes() == CONTENT
    assert fetch(spec, tmp_path / "c", sources=[share.as_uri()]).read_bytes() == CONTENT
    assert Handler.asked == []
    assert fetch(weights(broken, filename="net.pth"), tmp_path / "d", sources=[address])


def test_every_source_that_failed_is_named(address, tmp_path, monkeypatch):
    spec = weights(f"{address}/gone.pth", mirrors=("ftp://example.org/gone.pth",))
    with pytest.raises(FetchFailed) as caught:
        fetch(spec, tmp_path, sources=[str(tmp_path / "share")])
    for part in ("share", "no such file", "HTTP 404", "'ftp'"):
        assert part in str(caught.value)
    monkeypatch.setenv("VCR_OFFLINE", "1")
    Handler.asked.clear()
    with pytest.raises(FetchFailed, match="VCR_OFFLINE is set"):
        fetch(spec, tmp_path)
    assert Handler.asked == []


def test_a_page_is_no_file(tmp_path):
    spec = weights("https://drive.google.com/file/d/1/view", filename="net.pth")
    with pytest.raises(FetchFailed, match="a page and no file; download it with a browser"):
        fetch(spec, tmp_path)
    (tmp_path / "other.pth").write_bytes(CONTENT)
    found = fetch(spec, tmp_path / "w", sources=[str(tmp_path / "other.pth")])
    assert found.name == "net.pth"


def test_without_a_published_hash_the_first_download_counts(address, tmp_path):
    spec = weights(f"{address}/net.pth", sha256="")
    path = fetch(spec, tmp_path)
    assert verify(spec, path) == SHA
    path.write_bytes(CONTENT[:-1] + b"x")
    with pytest.raises(ComponentUnavailable, match="another file than the one that was fetched"):
        verify(spec, path)


def test_places_in_their_order(tmp_path):
    spec = weights("https://example.org/deep/net.pth?download=true")
    found = places(spec, (tmp_path / "mine",))
    assert found == [
        tmp_path / "mine" / "net.pth",
        default_folder() / "net.pth",
        tmp_path / "torch" / "hub" / "checkpoints" / "net.pth",
    ]
    assert located(spec).file == ""
    found[2].parent.mkdir(parents=True)
    found[2].write_bytes(CONTENT)
    assert located(spec).file == str(found[2])
    assert digest(found[2]) == SHA
    found[2].write_bytes(b"short")
    with pytest.raises(ComponentUnavailable, match="another file"):
        located(spec)
