"""Where files are found, and what is made of those that are damaged."""

from __future__ import annotations

import gzip
import lzma
import subprocess
import sys

import pytest

import cavity
from cavity import data
from cavity.data import DataError, DataNotFound, places, registry, store
from cavity.data.packing import read_known
from data.helpers import known_file

CONTENT = bytes(range(256)) * 500


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_folders_are_searched_in_order(source, world, tmp_path, monkeypatch):
    source({"f.bin": CONTENT})
    monkeypatch.setenv("CAVITY_DATA", str(tmp_path / "env"))
    order = [tmp_path / "given", tmp_path / "env", world, places.DEBIAN]
    assert places.roots(tmp_path / "given") == tuple(order)
    for root in reversed(order):
        path = put(root / "tiny" / "f.bin", CONTENT)
        assert data.fetch("tiny", tmp_path / "given") == [path]


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
@pytest.mark.parametrize("folder", ["tiny", "."])
def test_plain_and_packed_files_are_found_in_either_layout(source, world, tmp_path, suffix, folder):
    made = source({"f.bin": CONTENT})
    pack = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}[suffix]
    path = put(tmp_path / folder / f"f.bin{suffix}", pack(CONTENT))
    assert places.find(made, made.files[0].name, tmp_path) == path
    assert store.contents("tiny", tmp_path) == {"f.bin": CONTENT}


def test_a_flat_folder_of_the_sibling_is_passed_over(world, tmp_path, tiny_mnist, monkeypatch):
    for name, content in tiny_mnist.items():
        put(tmp_path / f"{name}.gz", gzip.compress(content))
    fashion = registry.SOURCES["fashion-mnist"]
    assert places.is_present("mnist", tmp_path)
    assert not places.is_present("fashion-mnist", tmp_path)
    assert all(places.find(fashion, file.name, tmp_path) is None for file in fashion.files)


def test_where_lists_every_folder_and_what_is_there(source, world, tmp_path):
    source({"f.bin": CONTENT})
    path = put(tmp_path / "tiny" / "f.bin.gz", gzip.compress(CONTENT))
    assert data.where("tiny", tmp_path) == [
        data.Place("f.bin", path, True),
        data.Place("f.bin", world / "tiny" / "f.bin", False),
        data.Place("f.bin", places.DEBIAN / "tiny" / "f.bin", False),
    ]
    assert data.where("permuted-digits") == []


def test_available_says_what_needs_a_network(source, world, tmp_path):
    source({"f.bin": CONTENT})
    before = {entry.name: entry.present for entry in data.available(tmp_path)}
    assert before["digits"]
    assert before["teacher-student"]
    assert not before["tiny"]
    assert not before["cifar-10"]
    put(tmp_path / "f.bin", CONTENT)
    assert {entry.name: entry.present for entry in data.available(tmp_path)}["tiny"]


def test_an_archive_counts_as_present(source, world, tmp_path):
    source({"f.bin": CONTENT}, archive="set.tar.gz")
    put(tmp_path / "set.tar.gz", b"")
    assert places.is_present("tiny", tmp_path)
    assert data.fetch("tiny", tmp_path) == [tmp_path / "set.tar.gz"]


@pytest.mark.parametrize("call", [data.where, data.fetch, places.is_present, data.load])
def test_an_unknown_name_is_answered_with_the_known_ones(call, world):
    with pytest.raises(DataNotFound, match=r"digits.*fashion-mnist"):
        call("fashion-minst")


def test_what_needs_no_file_is_never_fetched():
    assert [data.fetch(name) for name in ("digits", "teacher-student", "permuted-digits")] == [[], [], []]


def test_xz_is_unpacked_once_and_a_damaged_copy_replaced(source, world, tmp_path, monkeypatch):
    made = source({"f.bin": CONTENT})
    put(tmp_path / "f.bin.xz", lzma.compress(CONTENT))
    assert store.contents("tiny", tmp_path) == {"f.bin": CONTENT}
    kept = world / "unpacked" / made.files[0].sha256
    assert kept.read_bytes() == CONTENT
    for wrong in (CONTENT[:-1] + b"!", CONTENT[:-1], b""):
        kept.write_bytes(wrong)
        assert store.contents("tiny", tmp_path) == {"f.bin": CONTENT}
        assert kept.read_bytes() == CONTENT
    with monkeypatch.context() as patch:
        patch.setattr(store, "read_known", lambda *_: pytest.fail("unpacked a second time"))
        assert store.contents("tiny", tmp_path) == {"f.bin": CONTENT}
    assert list(kept.parent.iterdir()) == [kept]


def test_a_cache_that_cannot_be_written_does_not_stop_anyone(source, world, tmp_path):
    source({"f.bin": CONTENT})
    put(tmp_path / "f.bin.xz", lzma.compress(CONTENT))
    world.write_text("a file where the folder would be")
    assert store.contents("tiny", tmp_path) == {"f.bin": CONTENT}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (CONTENT[:-1], "holds 127,999 bytes"),
        (CONTENT + b"!", "holds more bytes"),
        (CONTENT[:-1] + b"!", "SHA-256"),
        (gzip.compress(CONTENT)[:-10], "end"),
        (gzip.compress(CONTENT)[:-1] + b"!", "length|CRC"),
        (gzip.compress(CONTENT) + b"rubbish", "gzip"),
        (lzma.compress(CONTENT)[:-10], "end marker"),
        (lzma.compress(CONTENT) + b"rubbish", "bytes follow"),
        (lzma.compress(CONTENT)[:40] + bytes(40) + lzma.compress(CONTENT)[80:], "cannot be read"),
        (gzip.compress(bytes(100 << 20)), "holds more bytes"),
        (lzma.compress(bytes(100 << 20), preset=1), "holds more bytes"),
        (b"", "holds 0 bytes"),
    ],
)
def test_damaged_files_are_named_with_the_reason(tmp_path, content, reason):
    path = put(tmp_path / "file", content)
    with pytest.raises(DataError, match=rf"file: .*({reason})"):
        read_known(path, known_file("f.bin", CONTENT))


def test_an_xz_dictionary_of_gigabytes_is_not_allocated(tmp_path):
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 256 << 20, "preset": 0}]
    compressor = lzma.LZMACompressor(filters=filters)
    path = put(tmp_path / "file", compressor.compress(CONTENT) + compressor.flush())
    with pytest.raises(DataError, match=r"[Mm]emory"):
        read_known(path, known_file("f.bin", CONTENT))


def test_importing_the_room_brings_no_heavy_library():
    """In a process where the package around the room is empty, because it has its own reasons to import."""
    program = (
        "import sys, types; package = types.ModuleType('cavity'); package.__path__ = sys.argv[1:]; "
        "sys.modules['cavity'] = package; import cavity.data; "
        "heavy = {'torch', 'numpy', 'sklearn', 'pooch', 'PIL', 'rich', 'pyarrow', 'pandas'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program, *cavity.__path__], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
