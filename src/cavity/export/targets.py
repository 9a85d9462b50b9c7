"""Writing exported networks: all or nothing, and over existing files only with ``force``.

Every function takes a ``Trained``, a run, a fitted estimator, or a network whose inputs are standardised already.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from cavity.export.arduino import library
from cavity.export.c import generate, prefix_of
from cavity.export.html import page
from cavity.export.integers import describe
from cavity.export.learning import Learn, grown, learning
from cavity.export.learning_c import generate_learning
from cavity.export.models import Model, as_trained
from cavity.export.python import module
from cavity.packed.file import dumps
from cavity.util.files import require_new, require_new_file, write_whole
from cavity.util.regular import own_folder

AnyPath = str | os.PathLike[str]
Method = Literal["point", "bayes"]


def to_packed(model: Model, path: AnyPath, *, force: bool = False) -> list[Path]:
    """One bit per weight, for ``cavity.packed.load``; returns the files written."""
    target = require_new_file(Path(path), force)
    return _write({target: dumps(describe(as_trained(model)))})


def to_c(
    model: Model, path: AnyPath, *, prefix: str | None = None, learn: Learn | None = None, force: bool = False
) -> list[Path]:
    """A C99 source at ``path`` (ending in .c, or without an ending) and its header beside it; names start with
    ``prefix``, by default the file's name. With ``learn``, two more files, NAME_learn.c and NAME_learn.h, let the
    device go on training the network."""
    path = _ending(Path(path), "c", "a C source")
    source, header = (require_new_file(path.with_suffix(suffix), force) for suffix in (".c", ".h"))
    trained, prefix = as_trained(model), prefix_of(path.stem) if prefix is None else prefix
    trained = trained if learn is None else grown(trained, learn)
    texts = generate(describe(trained), prefix, header.name, features=trained.features, tested=trained.tested)
    files = {header: texts[0].encode(), source: texts[1].encode()}
    if learn is not None:
        beside = path.with_name(f"{path.stem}_learn")
        source, learn_header = (require_new_file(beside.with_suffix(suffix), force) for suffix in (".c", ".h"))
        texts = generate_learning(learning(trained, learn), prefix, header.name, learn_header.name)
        files |= {learn_header: texts[0].encode(), source: texts[1].encode()}
    return _write(files)


def to_python(model: Model, path: AnyPath, *, force: bool = False) -> list[Path]:
    """A Python file that needs NumPy alone: ``predict``, ``scores``, ``confidence``; it also runs as a program."""
    target = require_new_file(_ending(Path(path), "py", "a Python file"), force)
    return _write({target: module(as_trained(model), target.stem).encode()})


def to_html(model: Model, path: AnyPath, *, force: bool = False) -> list[Path]:
    """One page that needs no network: draw or upload an image, or set the numbers of a row, and see the classes."""
    target = require_new_file(_ending(Path(path), "html", "a page"), force)
    return _write({target: page(as_trained(model), target.stem).encode()})


def to_arduino(model: Model, path: AnyPath, *, prefix: str | None = None, force: bool = False) -> list[Path]:
    """A folder that is an Arduino library, a PlatformIO library and a Zephyr module, with an example; names in C start
    with ``prefix``, by default the folder's name."""
    folder = Path(path)
    files = library(as_trained(model), prefix_of(folder.name) if prefix is None else prefix)
    return _write_folder(folder, {name: text.encode() for name, text in files.items()}, force)


def to_onnx(model: Model, path: AnyPath, *, method: Method = "point", force: bool = False) -> list[Path]:
    """An ONNX model: classes from the most probable weights ("point") or class probabilities ("bayes")."""
    from cavity.export.onnx import bayesian_model, point_model

    target = require_new_file(Path(path), force)
    if method not in ("point", "bayes"):
        raise ValueError(f"method must be 'point' or 'bayes', got {method!r}")
    trained = as_trained(model)
    return _write({target: point_model(describe(trained)) if method == "point" else bayesian_model(trained)})


def require_free(format: str, path: AnyPath, force: bool) -> None:
    """The errors that writing a format there would raise, before anything is computed for it."""
    path = Path(path)
    if format == "arduino":
        _require_folder(path, force)
    else:
        for suffix in {"c": (".c", ".h"), "python": (".py",), "html": (".html",)}.get(format, (path.suffix,)):
            require_new_file(path.with_suffix(suffix), force)


def _ending(path: Path, suffix: str, what: str) -> Path:
    """The path with its ending, which may be left out."""
    if path.suffix not in ("", f".{suffix}"):
        raise ValueError(f"path of {what} must end in .{suffix}, got {path}")
    return path.with_suffix(f".{suffix}")


def _require_folder(folder: Path, force: bool) -> None:
    require_new(folder, force)
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file: give the name of a folder")


def _write(contents: dict[Path, bytes]) -> list[Path]:
    for path, content in contents.items():
        write_whole(path, content)
    return list(contents)


def _write_folder(folder: Path, contents: dict[str, bytes], force: bool) -> list[Path]:
    """The files of a folder, by their names within it; what else is in it stays."""
    _require_folder(folder, force)
    for name in sorted({str(Path(name).parent) for name in contents}):
        own_folder(folder / name)
    return _write({folder / name: content for name, content in contents.items()})
