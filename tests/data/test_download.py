"""Downloads against a local server: good, broken, hostile."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import io
import lzma
import os
import ssl
import subprocess
import tarfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import requests

from cavity import data
from cavity.data import DataError, DataNotFound, download, registry
from cavity.data.download import Session
from cavity.data.store import contents
from data.helpers import cut, drip, packed, redirect, stall, whole

CONTENT = np.random.default_rng(1).bytes(300_000)
PACKED = packed(CONTENT)
PATH = "/one/file.bin.gz"


@pytest.fixture
def tiny(source, server, world):
    source({"file.bin": CONTENT}, (server.url("one/"), server.url("two/")))
    return world / "tiny" / "file.bin"


def leftovers(target):
    return [path.name for path in target.parent.iterdir() if path != target and path.suffix != ".lock"]


def test_a_missing_file_is_downloaded_once(server, tiny):
    server.answers[PATH] = [whole(PACKED)]
    assert data.fetch("tiny") == [tiny]
    assert tiny.read_bytes() == CONTENT
    assert leftovers(tiny) == []
    assert data.fetch("tiny") == [tiny]
    assert server.seen == [(PATH, None)]


def test_downloads_go_to_the_given_folder(server, tiny, tmp_path):
    server.answers[PATH] = [whole(PACKED)]
    assert data.fetch("tiny", tmp_path / "mine") == [tmp_path / "mine" / "tiny" / "file.bin"]


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
    assert tiny.read_bytes() == CONTENT


def test_a_later_call_resumes_where_the_last_one_stopped(server, tiny):
    server.answers[PATH] = [cut(PACKED, 100_000), lambda request: request.send_error(503)]
    with pytest.raises(DataNotFound, match="503"):
        data.fetch("tiny")
    assert not tiny.exists()
    server.seen.clear()
    server.answers[PATH] = [whole(PACKED)]
    data.fetch("tiny")
    assert server.seen == [(PATH, "bytes=100000-")]
    assert tiny.read_bytes() == CONTENT
    assert leftovers(tiny) == []


def test_a_server_without_ranges_starts_over(server, tiny):
    server.answers[PATH] = [cut(PACKED, 100_000), whole(PACKED, ranges=False)]
    data.fetch("tiny")
    assert tiny.read_bytes() == CONTENT


def test_a_complete_part_needs_no_more_bytes(server, tiny):
    server.answers[PATH] = [cut(PACKED, 1000), lambda request: request.send_error(503)]
    with pytest.raises(DataNotFound):
        data.fetch("tiny")
    (part,) = tiny.parent.glob("*.part")
    part.write_bytes(PACKED)
    server.answers[PATH] = [whole(PACKED)]
    data.fetch("tiny")
    assert tiny.read_bytes() == CONTENT


@pytest.mark.parametrize("length", [1000, 10 * len(PACKED)])
def test_a_part_of_another_file_is_thrown_away(server, tiny, length):
    server.answers[PATH] = [cut(PACKED, 1000), lambda request: request.send_error(503)]
    with pytest.raises(DataNotFound):
        data.fetch("tiny")
    (part,) = tiny.parent.glob("*.part")
    part.write_bytes(bytes(length))
    server.answers[PATH] = [whole(PACKED)]
    data.fetch("tiny")
    assert tiny.read_bytes() == CONTENT


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
    answer = requests.Response()
    answer.url, answer.status_code, answer.raw = f"{start}://example.org/a", 302, io.BytesIO()
    answer.headers["location"] = f"{end}://example.org/b"
    if allowed:
        assert Session().get_redirect_target(answer) == f"{end}://example.org/b"
    else:
        with pytest.raises(DataError, match="refused"):
            Session().get_redirect_target(answer)


def test_a_circle_of_redirects_ends(server, tiny):
    for path in (PATH, "/two/file.bin.gz"):
        server.answers[path] = [redirect(path)]
    with pytest.raises(DataNotFound, match="redirect"):
        data.fetch("tiny")
    assert len(server.seen) < 30


@pytest.fixture
def impatient(monkeypatch):
    """A second is long; what waits on the server's side is released at the end."""
    monkeypatch.setattr(download, "TIMEOUT", 0.2)
    monkeypatch.setattr(download, "PATIENCE", 0.5)
    released = threading.Event()
    yield released
    released.set()


@pytest.mark.parametrize("length", [0, 100_000])
def test_a_server_that_stalls_is_given_up(server, tiny, impatient, length):
    server.answers[PATH] = [stall(PACKED, length, impatient)]
    server.answers["/two/file.bin.gz"] = [whole(PACKED)]
    began = time.monotonic()
    assert data.fetch("tiny") == [tiny]
    assert time.monotonic() - began < 5
    assert tiny.read_bytes() == CONTENT


def test_a_server_that_never_answers_is_given_up(server, tiny, impatient):
    server.answers[PATH] = [lambda request: impatient.wait(30)]
    with pytest.raises(DataNotFound, match="timed out"):
        data.fetch("tiny")


def test_a_server_that_sends_a_byte_now_and_then_is_given_up(server, tiny, impatient):
    server.answers[PATH] = [drip(PACKED, 0.05, impatient)]
    with pytest.raises(DataNotFound, match=r"the server sent \d+ bytes in 0 seconds"):
        data.fetch("tiny")
    assert not tiny.exists()


def test_headers_that_never_end_are_given_up(server, tiny, impatient):
    def answer(request):
        with contextlib.suppress(OSError):
            for byte in b"HTTP/1.0 200 OK\r\nX: " + b"a" * 1000:
                request.wfile.write(bytes([byte]))
                request.wfile.flush()
                if impatient.wait(0.05):
                    return

    server.answers[PATH] = [answer]
    began = time.monotonic()
    with pytest.raises(DataNotFound, match=r"file\.bin"):
        data.fetch("tiny")
    assert time.monotonic() - began < 10


@pytest.fixture
def secure(server, tmp_path, monkeypatch):
    """The server under https, with a certificate made for the test; returns a function that has it trusted."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    try:
        subprocess.run(["openssl", "req", "-x509", *kind, *names, *files], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"openssl makes no certificate here: {error}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.http.socket = context.wrap_socket(server.http.socket, server_side=True)
    return lambda: monkeypatch.setenv("SSL_CERT_FILE", str(certificate))


def test_https_is_verified_and_never_left(server, source, world, secure):
    url = server.url("one/").replace("http:", "https:")
    source({"file.bin": CONTENT}, (url,))
    server.answers[PATH] = [whole(PACKED)]
    with pytest.raises(DataNotFound, match="CERTIFICATE_VERIFY_FAILED"):
        data.fetch("tiny")
    assert server.seen == []
    secure()
    server.answers[PATH] = [redirect(server.url("elsewhere"))]
    with pytest.raises(DataError, match="refused to follow a redirect to http:"):
        data.fetch("tiny")
    server.answers[PATH] = [redirect("/within")]
    server.answers["/within"] = [whole(PACKED)]
    assert data.fetch("tiny") == [world / "tiny" / "file.bin"]


def test_a_body_that_says_it_is_packed_again_is_not_unpacked(server, tiny):
    def bomb(request):
        content = packed(bytes(10_000_000))
        request.send_response(200)
        request.send_header("Content-Encoding", "gzip")
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)

    server.answers[PATH] = [bomb]
    with pytest.raises(DataError, match=r"holds more bytes where file\.bin has 300,000"):
        data.fetch("tiny")
    assert leftovers(tiny) == []


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
    assert tiny.read_bytes() == CONTENT


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
        (member("//server/evil", b"x"), "outside"),
        (member("set/./../../evil", b"x"), "outside"),
        (member("set/a.bin/../../../evil", kind=tarfile.DIRTYPE), "outside"),
        (member("set", kind=tarfile.SYMTYPE, link=".."), "link"),
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


def parts_of(tiny: Path) -> list[Path]:
    return list(tiny.parent.glob("*.part"))


@pytest.mark.skipif(os.name != "posix", reason="links are POSIX's")
@pytest.mark.parametrize("put", [os.symlink, os.link], ids=["link", "other name"])
def test_a_part_that_leads_elsewhere_is_not_written(server, tiny, tmp_path, put):
    """The name of a part can be foreseen: in a folder that others fill, it may be a link."""
    server.answers[PATH] = [cut(PACKED, 1000), lambda request: request.send_error(503)]
    with pytest.raises(DataNotFound):
        data.fetch("tiny")
    (part,) = parts_of(tiny)
    victim = tmp_path / "victim"
    victim.write_bytes(PACKED[:500])
    part.unlink()
    put(victim, part)
    server.answers[PATH] = [whole(PACKED)]
    with pytest.raises(OSError, match=r"file\.bin could not be written \((is a symbolic link|has other names)"):
        data.fetch("tiny")
    assert victim.read_bytes() == PACKED[:500]
    assert not tiny.exists()


@pytest.mark.skipif(os.name != "posix", reason="pipes are POSIX's")
def test_pipes_where_a_download_goes(server, tiny):
    tiny.parent.mkdir(parents=True)
    os.mkfifo(tiny)
    server.answers[PATH] = [whole(PACKED)]
    with pytest.raises(OSError, match=r"file\.bin could not be written \(is a named pipe, not a file\)"):
        data.fetch("tiny")
    tiny.unlink()
    # Without its lock a download goes on: the digest guards the result.
    os.mkfifo(tiny.with_name(f".{tiny.name}.lock"))
    assert data.fetch("tiny") == [tiny]
    assert tiny.read_bytes() == CONTENT


@pytest.mark.skipif(os.name != "posix", reason="links are POSIX's")
def test_a_file_that_is_a_link_is_replaced_and_its_target_kept(server, tiny, tmp_path):
    tiny.parent.mkdir(parents=True)
    (tmp_path / "victim").write_text("keep")
    tiny.symlink_to(tmp_path / "nothing")
    tiny.with_name(f".{tiny.name}.lock").symlink_to(tmp_path / "victim")
    server.answers[PATH] = [whole(PACKED)]
    assert data.fetch("tiny") == [tiny]
    assert not tiny.is_symlink()
    assert not (tmp_path / "nothing").exists()
    assert (tmp_path / "victim").read_text() == "keep"
