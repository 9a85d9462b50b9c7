"""Writing and opening files among links, pipes, other writers, interrupts and kills."""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cavity.util import files, locks, regular
from cavity.util.files import append_line, held_names, only_writer, require_free, write_whole
from cavity.util.regular import NotAFile, open_own, open_regular, own_folder, read_regular, require_own

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links and pipes are POSIX's")
SRC = str(Path(files.__file__).parents[2])


@pytest.fixture
def victim(tmp_path):
    """A file outside the folder that is written."""
    path = tmp_path / "victim"
    path.write_text("keep")
    return path


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "folder"
    path.mkdir()
    return path


@pytest.fixture(autouse=True)
def at_once():
    """No test here may wait for a pipe: it would do so for ever."""

    def late(number, frame):
        raise TimeoutError("waited for a pipe")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def in_another_process(program: str, *arguments: object, **options) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": SRC}
    return subprocess.Popen([sys.executable, "-c", program, *map(str, arguments)], env=environment, **options)


@pytest.mark.parametrize("name", ["f", ".f.tmp", "f.tmp"])
@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_nothing_is_written_through_links(folder, victim, name, link):
    link(victim, folder / name)
    write_whole(folder / "f", b"new")
    assert victim.read_text() == "keep"
    assert (folder / "f").read_bytes() == b"new"
    assert not (folder / "f").is_symlink()
    assert names(folder) == sorted({name, "f"})


def test_a_link_to_nothing_makes_nothing(folder, tmp_path):
    (folder / "f").symlink_to(tmp_path / "nothing")
    write_whole(folder / "f", b"new")
    assert not (tmp_path / "nothing").exists()
    assert read_regular(folder / "f") == b"new"


def put(kind: str, path: Path) -> None:
    """Something that is not a file."""
    if kind == "a named pipe":
        os.mkfifo(path)
    elif kind == "a folder":
        path.mkdir()
    elif kind == "a socket":
        with socket.socket(socket.AF_UNIX) as made:
            # The path of a socket must be short.
            here = os.getcwd()
            os.chdir(path.parent)
            try:
                made.bind(path.name)
            finally:
                os.chdir(here)
    else:
        path.symlink_to(os.devnull)


@pytest.mark.parametrize("kind", ["a named pipe", "a folder", "a socket", "a device"])
def test_what_is_no_file_is_an_error_at_once(folder, kind):
    path = folder / "f"
    put(kind, path)
    with pytest.raises(OSError, match=rf"f could not be written \(is {kind}, not a file\)"):
        write_whole(path, b"new")
    with pytest.raises(NotAFile, match=f"is {kind}, not a file"):
        read_regular(path)
    with pytest.raises(OSError, match=r"could not be written \(is a"):
        append_line(path, "new")
    with pytest.raises(NotAFile), open_own(path, "ab"):
        pass
    assert names(folder) == ["f"]


def test_reading_follows_links_to_files(folder, victim):
    (folder / "f").symlink_to(victim)
    with open_regular(folder / "f") as stream:
        assert stream.read() == b"keep"
    with pytest.raises(FileNotFoundError):
        open_regular(folder / "none")


def test_lines_are_added_to_no_other_file(folder, victim):
    (folder / "link").symlink_to(victim)
    with pytest.raises(OSError, match=r"link could not be written \(is a symbolic link, not a file\)"):
        append_line(folder / "link", "new")
    os.link(victim, folder / "other name")
    append_line(folder / "other name", " it")
    append_line(folder / "other name", "too")
    assert (folder / "other name").read_text() == "keep it\ntoo\n"
    assert victim.read_text() == "keep"
    (folder / "nothing").symlink_to(folder / "not there")
    with pytest.raises(OSError, match="is a symbolic link"):
        append_line(folder / "nothing", "new")
    assert not (folder / "not there").exists()


def test_what_vanishes_while_it_is_looked_at_is_nothing(folder, monkeypatch):
    """Another process may remove a file between two looks, as SQLite does with its journal."""
    monkeypatch.setattr(os.path, "lexists", lambda path: True)
    monkeypatch.setattr(Path, "exists", lambda path: True)
    require_own(folder / "gone")
    regular.require_replaceable(folder / "gone")


def test_only_what_is_asked_for_is_made(folder):
    with pytest.raises(FileNotFoundError):
        open_own(folder / "f", "r+b", create=False)
    assert names(folder) == []
    with open_own(folder / "f", "r+b") as stream:
        assert stream.read() == b""


def test_what_is_written_in_place_has_one_name(folder, victim):
    os.link(victim, folder / "f")
    with pytest.raises(NotAFile, match="has other names"):
        open_own(folder / "f", "r+b")
    with pytest.raises(NotAFile, match="has other names"):
        require_own(folder / "f")
    require_own(folder / "none")
    assert victim.read_text() == "keep"


def append(path: Path) -> None:
    append_line(path, "new")


def hold(path: Path) -> None:
    with only_writer(path.parent):
        pytest.fail("held what is no lock")


@pytest.mark.parametrize("swapped_in", ["link", "pipe", "hard link"])
@pytest.mark.parametrize("use", [append, hold, read_regular])
def test_an_exchange_between_the_look_and_the_opening(folder, victim, monkeypatch, swapped_in, use):
    """Whoever may write to the folder can replace a file just after it was looked at."""
    if (use, swapped_in) in {(hold, "hard link"), (read_regular, "link"), (read_regular, "hard link")}:
        pytest.skip("reading follows links, and nothing is written to a lock")
    path = folder / ".lock"
    path.write_text("")
    opened = os.open

    def late(name, *arguments, **options):
        if os.fspath(name) == str(path):
            path.unlink()
            if swapped_in == "pipe":
                os.mkfifo(path)
            else:
                (os.symlink if swapped_in == "link" else os.link)(victim, path)
        return opened(name, *arguments, **options)

    monkeypatch.setattr(regular.os, "open", late)
    with pytest.raises(OSError, match=r"link|a named pipe|No such device"):
        use(path)
    assert victim.read_text() == "keep"


def test_a_lock_is_a_file_and_stays_empty(folder, victim):
    os.link(victim, folder / ".lock")
    with only_writer(folder):
        assert victim.read_text() == "keep"
    (folder / ".lock").unlink()
    for kind in ("a named pipe", "a folder"):
        put(kind, folder / ".lock")
        with pytest.raises(NotAFile, match=f"is {kind}, not a file"), only_writer(folder):
            pass
        subprocess.run(["rm", "-r", folder / ".lock"], check=True)
    (folder / ".lock").symlink_to(victim)
    with pytest.raises(NotAFile, match="is a symbolic link, not a file"), only_writer(folder):
        pass


def test_a_lock_is_one_process_s_and_goes_with_it(folder):
    program = """
import sys, time, pathlib
from cavity.util.files import only_writer
with only_writer(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""
    with in_another_process(program, folder, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(OSError, match="is being written by another process"), only_writer(folder):
            pass
        process.kill()
    with only_writer(folder), pytest.raises(OSError, match="another process"), only_writer(folder):
        pass


def test_folders_within_a_folder_are_no_links(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    for target in ("elsewhere", "nothing"):
        (folder / target).symlink_to(tmp_path / target)
        with pytest.raises(NotAFile, match="is a symbolic link, not a folder"):
            own_folder(folder / target)
    assert own_folder(folder / "a" / "b").is_dir()
    assert own_folder(folder / "a" / "b").is_dir()
    assert not (tmp_path / "nothing").exists()


def test_a_new_file_has_the_mode_that_a_program_s_own_have(folder):
    (folder / "usual").write_text("")
    write_whole(folder / "f", b"")
    assert stat.S_IMODE((folder / "f").stat().st_mode) == stat.S_IMODE((folder / "usual").stat().st_mode)


@pytest.mark.parametrize("name", ["f", "ü" * 120, "f" * 250, "a\nb", ".f.0123456789abcdef.tmp"])
def test_temporary_names_differ_fit_and_are_known(folder, monkeypatch, name):
    seen = []
    replace = os.replace
    monkeypatch.setattr(files.os, "replace", lambda one, other: (seen.append(Path(one).name), replace(one, other)))
    for _ in range(2):
        write_whole(folder / name, b"new")
    assert len(set(seen)) == 2
    assert all(files.TEMPORARY.fullmatch(one) for one in seen)
    assert names(folder) == [name]


KILLED = """
import os, signal, sys, pathlib
from cavity.util import files
os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
files.write_whole(pathlib.Path(sys.argv[1]), b"never there")
"""


def test_what_a_killed_process_left_is_removed_and_counts_for_nothing(folder):
    path = folder / "f"
    for _ in range(2):
        with in_another_process(KILLED, path) as process:
            pass
        assert process.returncode == -signal.SIGKILL
    # The second removed what the first had left.
    assert len(names(folder)) == 1
    assert held_names(folder) == set()
    require_free(folder, "f", "choose another")
    write_whole(folder / "g", b"")
    assert len(names(folder)) == 2
    write_whole(path, b"new")
    assert names(folder) == ["f", "g"]


def test_what_another_process_is_writing_is_not_taken_for_left_behind(folder):
    program = """
import sys, time, pathlib
from cavity.util import files
write = files._write
def slowly(stream, content):
    print("writing", flush=True)
    sys.stdin.readline()
    write(stream, content)
files._write = slowly
files.write_whole(pathlib.Path(sys.argv[1]), b"theirs")
"""
    with in_another_process(program, folder / "f", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"writing\n"
        write_whole(folder / "f", b"ours")
        assert read_regular(folder / "f") == b"ours"
        assert len(names(folder)) == 2
        process.communicate(b"\n")
    assert process.returncode == 0
    assert names(folder) == ["f"]
    assert read_regular(folder / "f") == b"theirs"


def test_a_file_that_was_taken_before_it_was_locked_is_written_again(folder, monkeypatch):
    """The moment between making a temporary file and locking it: another process may remove it."""
    take, removed = locks.take, []

    def late(descriptor, **options):
        if not removed:
            (removed_one,) = folder.iterdir()
            removed_one.unlink()
            removed.append(removed_one)
        return take(descriptor, **options)

    monkeypatch.setattr(files, "take", late)
    write_whole(folder / "f", b"new")
    assert removed
    assert names(folder) == ["f"]
    assert read_regular(folder / "f") == b"new"


def test_a_disk_without_locks(folder, monkeypatch):
    def refuse(descriptor, **options):
        raise OSError("no locks here")

    monkeypatch.setattr(files, "take", refuse)
    (folder / ".f.0123456789abcdef.tmp").write_text("another's, for all we know")
    write_whole(folder / "f", b"new")
    assert names(folder) == [".f.0123456789abcdef.tmp", "f"]


WRITER = """
import sys, pathlib
from cavity.util.files import write_whole
path, letter, times = pathlib.Path(sys.argv[1]), sys.argv[2].encode(), int(sys.argv[3])
for number in range(times):
    write_whole(path, letter * (50_000 + 50_000 * (number % 3)))
"""


@pytest.mark.parametrize("times", [40, pytest.param(2000, marks=pytest.mark.slow)])
def test_several_writers_and_a_reader(folder, times):
    """Nobody fails, and what is read is always all that one of them wrote once."""
    path = folder / "f"
    write_whole(path, b"z" * 50_000)
    writers = [in_another_process(WRITER, path, letter, times, stderr=subprocess.PIPE) for letter in "abc"]
    reads = 0
    while any(writer.poll() is None for writer in writers):
        content = read_regular(path)
        reads += 1
        assert len(content) in (50_000, 100_000, 150_000)
        assert content == content[:1] * len(content)
        time.sleep(0.001)
    for writer in writers:
        said = writer.communicate()[1].decode()
        assert (writer.returncode, said) == (0, "")
    assert reads > times / 4
    assert names(folder) == ["f"]


# Between opening a file and entering its block, an interrupt leaves closing it to the garbage collector.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <_io.FileIO:pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_at_every_line_leaves_the_old_file_or_the_new_one(folder):
    """Ctrl-C placed at each line that ``write_whole`` comes through."""
    path, own = folder / "f", {files.__file__, regular.__file__, locks.__file__}
    lines, outcomes = 0, set()
    while True:
        path.write_bytes(b"old")
        left = lines

        def trace(frame, event, argument):
            nonlocal left
            if frame.f_code.co_filename not in own:
                return None
            if event == "line":
                left -= 1
                if left < 0:
                    sys.settrace(None)
                    raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            write_whole(path, b"new")
            break
        except KeyboardInterrupt:
            lines += 1
        finally:
            sys.settrace(before)
        outcomes.add(path.read_bytes())
        assert names(folder) == ["f"], f"line {lines}"
    assert outcomes == {b"old", b"new"}
    assert lines > 20
    assert path.read_bytes() == b"new"


#: What writes, or opens to write; and what waits for a pipe where a file is read.
DIRECT = re.compile(r"""\.(write_text|write_bytes|read_bytes|read_text|savefig)\(|\bopen\(""")
#: Where that is done: here, on streams in memory, on files that are the system's, the package's own, or a moment old.
ALLOWED = {
    ("util/regular.py", "open("),
    ("util/files.py", "open("),
    ("report/plots.py", ".savefig("),
    ("report/inline.py", ".savefig("),
    ("report/page.py", ".read_text("),
    ("data/download.py", ".write_bytes("),
    ("data/images.py", "open("),
    ("data/npz.py", "open("),
    ("data/packing.py", "open("),
    ("engine/allocation.py", ".read_text("),
    ("studies/bench/table.py", ".read_text("),
    ("studies/sweep/study.py", ".read_bytes("),
    ("cli/__init__.py", "open("),
}


def test_files_are_opened_in_one_place():
    """Whoever opens a file directly follows links and waits for pipes."""
    package = Path(files.__file__).parents[1]
    found = {
        (path.relative_to(package).as_posix(), match[0])
        for path in package.rglob("*.py")
        for match in DIRECT.finditer(path.read_text(encoding="utf-8"))
    }
    assert found - ALLOWED == set()
