"""Downloads against a local server: good, broken, hostile."""

from __future__ import annotations

import dataclasses
import gzip
import io
import lzma
import tarfile
import threading
import urllib.request
from email.message import Message

import numpy as np
import pytest

from cavity import data
from cavity.data import DataError, DataNotFound, registry
from cavity.data.download import _Redirects
from cavity.data.store import contents
from data.helpers import cut, packed, redirect, whole

CONTENT = np.random.default_rng(1).bytes(300_000)
PACKED = packed(CONTENT)
PATH = "/one/file.bin.gz"


@pytest.fixture
def tiny(source, server, world):
    source({"file.bin": CONTENT}, (server.url("one/"), server.url("two/")))
    return world / "tiny" / "file.bin.gz"


def leftovers(target):
    return [path.name for path in target.parent.iterdir() if path != target and path.suffix != ".lock"]


def test_a_missing_file_is_downloaded_once(server, tiny):
    server.answers[PATH] = [whole(PACKED)]
    assert data.fetch("tiny") == [tiny]
    assert tiny.read_bytes() == PACKED
    assert leftovers(tiny) == []
    assert data.fetch("tiny") == [tiny]
    assert server.seen == [(PATH, None)]


def test_downloads_go_to_the_given_folder(server, tiny, tmp_path):
    server.answers[PATH] = [whole(PACKED)]
    assert data.fetch("tiny", tmp_path / "mine") == [tmp_path / "mine" / "tiny" / "file.bin.gz"]


def test_a_folder_that_cannot_be_made_falls_back_to_the_cache(server, tiny, tmp_path):
    (tmp_path / "file").write_text("in the way")
    server.answers[PATH] = [whole(PACKED)]
    assert data.fetch("tiny", tmp_path / "file") == [tiny]


@pytest.mark.parametrize("pack", [lambda c: gzip.compress(c, 1), lzma.compress, bytes], ids=["gz", "xz", ""])
def test_a_container_packed_again_is_accepted(server, tiny, pack):
    server.answers[PATH] = [whole(pack(CONTENT))]
    assert data.fetch("tiny") == [tiny]


def test_a_broken_connection_is_resumed(server, tiny):
    server.answers[PATH] = [cut(PACKED, 100_000), whole(PACKED)]
    data.fetch("tiny")
    assert server.seen == [(PATH, None), (PATH, "bytes=100000-")]
    assert tiny.read_bytes() == PACKED


def test_a_later_call_resumes_where_the_last_one_stopped(server, tiny):
    server.answers[PATH] = [cut(PACKED, 100_000), lambda request: request.send_error(503)]
    with pytest.raises(DataNotFound, match="503"):
        data.fetch("tiny")
    assert not tiny.exists()
    server.seen.clear()
    server.answers[PATH] = [whole(PACKED)]
    data.fetch("tiny")
    assert server.seen == [(PATH, "bytes=100000-")]
    assert tiny.read_bytes() == PACKED
    assert leftovers(tiny) == []


def test_a_server_without_ranges_starts_over(server, tiny):
    server.answers[PATH] = [cut(PACKED, 100_000), whole(PACKED, ranges=False)]
    data.fetch("tiny")
    assert tiny.read_bytes() == PACKED


def test_a_complete_part_needs_no_more_bytes(server, tiny):
    server.answers[PATH] = [cut(PACKED, 1000), lambda request: request.send_error(503)]
    with pytest.raises(DataNotFound):
        data.fetch("tiny")
    (part,) = tiny.parent.glob("*.part")
    part.write_bytes(PACKED)
    server.answers[PATH] = [whole(PACKED)]
    data.fetch("tiny")
    assert tiny.read_bytes() == PACKED


@pytest.mark.parametrize("length", [1000, 10 * len(PACKED)])
def test_a_part_of_another_file_is_thrown_away(server, tiny, length):
    server.answers[PATH] = [cut(PACKED, 1000), lambda request: request.send_error(503)]
    with pytest.raises(DataNotFound):
        data.fetch("tiny")
    (part,) = tiny.parent.glob("*.part")
    part.write_bytes(bytes(length))
    server.answers[PATH] = [whole(PACKED)]
    data.fetch("tiny")
    assert tiny.read_bytes() == PACKED


@pytest.mark.parametrize(
    "content",
    [packed(CONTENT[:-1] + b"!"), packed(CONTENT[:-1]), PACKED[:-200] + bytes(200), b"<html>no</html>", b""],
    ids=["one byte", "too short", "damaged", "html", "empty"],
)
def test_wrong_content_is_refused_and_removed(server, tiny, content):
    server.answers[PATH] = [whole(content)]
    with pytest.raises(DataError, match=r"file\.bin"):
        data.fetch("tiny")
    assert not tiny.exists()
    assert leftovers(tiny) == []


def test_truncation_without_a_declared_length_is_refused(server, tiny):
    server.answers[PATH] = [whole(PACKED[:1000], declare=False)]
    with pytest.raises(DataError, match="end"):
        data.fetch("tiny")
    assert leftovers(tiny) == []


@pytest.mark.parametrize("declare", [True, False])
def test_too_many_bytes_are_refused_before_they_fill_the_disk(server, tiny, declare):
    server.answers[PATH] = [whole(bytes(2 * len(CONTENT)), declare=declare)]
    with pytest.raises(DataError, match="refused"):
        data.fetch("tiny")
    assert leftovers(tiny) == []


@pytest.mark.parametrize(
    "first", [[], [whole(packed(CONTENT[1:]))], [redirect("file:///etc/passwd")]], ids=["404", "bad", "file"]
)
def test_the_second_mirror_helps_out(server, tiny, first):
    server.answers[PATH] = first
    server.answers["/two/file.bin.gz"] = [whole(PACKED)]
    assert data.fetch("tiny") == [tiny]
    assert [path for path, _ in server.seen] == [PATH, "/two/file.bin.gz"]


@pytest.mark.parametrize("target", ["file:///etc/hostname", "ftp://127.0.0.1/file", "data:text/plain,x"])
@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_redirects_to_other_schemes_are_refused(server, tiny, target, code):
    server.answers[PATH] = [redirect(target, code)]
    with pytest.raises(DataError, match=r"refused to follow a redirect to \w+:"):
        data.fetch("tiny")


def test_redirects_within_http_are_followed(server, tiny):
    server.answers[PATH] = [redirect(server.url("elsewhere"), 301)]
    server.answers["/elsewhere"] = [redirect("/relative", 307)]
    server.answers["/relative"] = [whole(PACKED)]
    assert data.fetch("tiny") == [tiny]


@pytest.mark.parametrize(
    ("start", "end", "allowed"), [("http", "https", True), ("https", "https", True), ("https", "http", False)]
)
def test_redirects_never_leave_https(start, end, allowed):
    request = urllib.request.Request(f"{start}://example.org/a")
    arguments = (request, None, 302, "Found", Message(), f"{end}://example.org/b")
    if allowed:
        assert _Redirects().redirect_request(*arguments).full_url == f"{end}://example.org/b"
    else:
        with pytest.raises(DataError, match="refused"):
            _Redirects().redirect_request(*arguments)


def test_without_a_network_the_error_says_which_file_goes_where(server, tiny, world):
    server.close()
    with pytest.raises(DataNotFound) as caught:
        data.fetch("tiny")
    assert isinstance(caught.value, FileNotFoundError)
    for part in ("file.bin.gz", str(world / "tiny"), "$CAVITY_DATA", server.url("one/"), server.url("two/")):
        assert part in str(caught.value)


def test_two_at_once_download_once(server, tiny):
    server.answers[PATH] = [whole(PACKED)]
    threads = [threading.Thread(target=data.fetch, args=("tiny",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.seen == [(PATH, None)]
    assert tiny.read_bytes() == PACKED


def test_a_downloaded_data_set_is_loaded(server, world, tiny_mnist, monkeypatch):
    made = dataclasses.replace(registry.SOURCES["mnist"], mirrors=(server.url("m/"),))
    monkeypatch.setitem(registry.SOURCES, "mnist", made)
    for name, content in tiny_mnist.items():
        server.answers[f"/m/{name}.gz"] = [whole(packed(content))]
    dataset = data.load("mnist")
    assert dataset.x_train.shape == (40, 784)
    assert dataset.x_test.shape == (20, 784)
    assert dataset.y_train[:3].tolist() == [0, 1, 2]


FILES = {"a.bin": CONTENT, "b.bin": CONTENT[::-1]}


def tar(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for info, content in members:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def member(name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = ""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info, content


GOOD = [member("set", kind=tarfile.DIRTYPE), *(member(f"set/{name}", FILES[name]) for name in FILES)]


@pytest.fixture
def tiny_archive(source, server, world):
    source(FILES, (server.url(),), "set.tar.gz")
    return world / "tiny" / "set.tar.gz"


def test_an_archive_is_downloaded_read_and_kept_unpacked(server, tiny_archive, world):
    server.answers["/set.tar.gz"] = [whole(tar(*GOOD, member("set/readme.html", b"hello")))]
    assert contents("tiny") == FILES
    assert len(list((world / "unpacked").iterdir())) == 2
    assert contents("tiny") == FILES
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        (member("../evil", b"x"), "outside"),
        (member("set/../../evil", b"x"), "outside"),
        (member("/etc/evil", b"x"), "outside"),
        (member("..\\evil", b"x"), "outside"),
        (member("C:evil", b"x"), "outside"),
        (member("set/c.bin", kind=tarfile.SYMTYPE, link="/etc/passwd"), "link"),
        (member("set/c.bin", kind=tarfile.LNKTYPE, link="../../evil"), "link"),
        (member("set/c.bin", kind=tarfile.CHRTYPE), "device"),
        (member("set/c.bin", kind=tarfile.FIFOTYPE), "device"),
        (member("set/big", bytes(3 << 20)), "more than the data set can hold"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_hostile_archives_are_refused(server, tiny_archive, world, extra, reason, first):
    server.answers["/set.tar.gz"] = [whole(tar(*([extra, *GOOD] if first else [*GOOD, extra])))]
    with pytest.raises(DataError, match=reason):
        data.fetch("tiny")
    assert leftovers(tiny_archive) == []
    assert not tiny_archive.exists()
    assert not list(world.parent.rglob("evil"))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (tar(*GOOD[:-1]), r"lacks b\.bin"),
        (tar(*GOOD[:-1], member("set/b.bin", CONTENT)), "SHA-256"),
        (tar(*GOOD[:-1], member("set/b.bin", bytes(10))), "holds 10 bytes"),
        (tar(*GOOD)[:-1000], "archive"),
        (b"not an archive", "archive"),
        (tar(*GOOD, *(member(f"set/{i}") for i in range(200))), "100 members"),
    ],
    ids=["missing", "wrong", "short", "truncated", "text", "many"],
)
def test_archives_with_other_content_are_refused(server, tiny_archive, content, reason):
    server.answers["/set.tar.gz"] = [whole(content)]
    with pytest.raises(DataError, match=reason):
        data.fetch("tiny")
    assert not tiny_archive.exists()
