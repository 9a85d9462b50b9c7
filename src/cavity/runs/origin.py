"""Where and with what a run was trained: a line of ``sessions.jsonl`` each time that its training begins or goes on.

Runs of versions that wrote no such file have no origins; nothing but reports reads them.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from cavity.util.files import write_whole
from cavity.util.plain import from_json
from cavity.util.regular import read_regular
from cavity.util.text import shown
from cavity.util.version import __version__

SESSIONS = "sessions.jsonl"
#: Sessions that are kept, the last ones: a run that is stopped every minute does not fill the disk with them.
MOST_SESSIONS = 100
#: Letters of a value, of which the longest is the name of a platform.
LONGEST = 300
#: Seconds after which a commit is not worth waiting for.
PATIENCE = 5.0


@dataclass(frozen=True)
class Origin:
    """One session: when it began, after how many epochs, on what machine, with what versions. ``commit`` is that of
    the library's code, with ``changed`` if the code was not what had been committed; empty if it is no checkout."""

    began: str
    epoch: int
    host: str
    system: str
    cores: int
    device: str
    threads: int
    python: str
    cavity: str
    torch: str
    numpy: str
    commit: str = ""
    changed: bool = False


def present(epoch: int, device: str, threads: int) -> Origin:
    """This process, about to train on from ``epoch``."""
    commit, changed = code_version()
    return Origin(
        began=datetime.now(UTC).isoformat(timespec="seconds"),
        epoch=epoch,
        host=platform.node(),
        system=f"{platform.system()} {platform.machine()}",
        cores=os.cpu_count() or 1,
        device=device,
        threads=threads,
        python=platform.python_version(),
        cavity=__version__,
        torch=_installed("torch"),
        numpy=_installed("numpy"),
        commit=commit,
        changed=changed,
    )


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # on the path without having been installed
        return str(getattr(sys.modules.get(package), "__version__", ""))


@cache
def code_version(folder: Path = Path(__file__).parent) -> tuple[str, bool]:
    """The commit of the code in ``folder``, and whether files there differ from it; ("", False) if it is no checkout.

    An installed copy may lie in a virtual environment within somebody else's checkout: git must know the files.
    """
    if not _git(folder, "ls-files"):
        return "", False
    return (_git(folder, "rev-parse", "HEAD") or "").strip(), bool(_git(folder, "status", "--porcelain", "--", "."))


def _git(folder: Path, *words: str) -> str | None:
    """What git says, None where there is no git or nothing for it to say. Variables that name another repository, as
    git sets them in hooks, are left out."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "--no-optional-locks", "-C", str(folder), *words]
    try:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def write_origin(run: Path, origin: Origin) -> None:
    """Add a session to a run's folder. What else a stranger put into the file, or behind a link in its place, is left
    out: nothing is copied that is not ours."""
    kept = [found for line in _lines(run / SESSIONS) if isinstance(found := _parsed(line), Origin)]
    lines = [json.dumps(asdict(one)) + "\n" for one in [*kept, origin][-MOST_SESSIONS:]]
    write_whole(run / SESSIONS, "".join(lines).encode())


def read_origins(run: Path) -> list[Origin]:
    """The sessions of a run, the first one first; empty for a run of an older version. ValueError for a file that is
    none of ours. A last line that a crash cut short does not count."""
    found: list[Origin] = []
    for line in _lines(run / SESSIONS):
        session = _parsed(line)
        if not isinstance(session, Origin):
            raise ValueError(f"{run / SESSIONS}: line {len(found) + 1} is not a session of a run: {session}")
        found.append(session)
    return found


def _lines(file: Path) -> list[bytes]:
    return read_regular(file).split(b"\n")[:-1] if os.path.lexists(file) else []


def _parsed(line: bytes) -> Origin | str:
    """The session in a line, or what is wrong with it."""
    try:
        return _checked(from_json(line))
    except (ValueError, TypeError, RecursionError) as error:
        return shown(error)


def _checked(values: Any) -> Origin:
    """An origin of values that anybody may have written; later versions may have more of them."""
    if not isinstance(values, dict):
        raise ValueError("it is not a table of names and values")
    kinds = {item.name: {"str": str, "int": int, "bool": bool}[str(item.type)] for item in fields(Origin)}
    for name, value in values.items():
        if name in kinds and type(value) is not kinds[name]:
            raise ValueError(f"{name} must be of type {kinds[name].__name__}, got {type(value).__name__}")
        if isinstance(value, str) and len(value) > LONGEST:
            raise ValueError(f"{name} must have at most {LONGEST} letters, got {len(value)}")
    return Origin(**{name: value for name, value in values.items() if name in kinds})
