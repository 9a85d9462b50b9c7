"""Writing exported networks: all or nothing, and over existing files only with ``force``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from cavity.export.c import generate, prefix_of
from cavity.export.integers import describe
from cavity.export.trained import Trained
from cavity.packed.file import dumps
from cavity.util.files import write_whole

AnyPath = str | os.PathLike[str]


def to_packed(trained: Trained, path: AnyPath, *, force: bool = False) -> list[Path]:
    """One bit per weight, for ``cavity.packed.load``; returns the files written."""
    target = _free(Path(path), force)
    return _write({target: dumps(describe(trained))})


def to_c(trained: Trained, path: AnyPath, *, prefix: str | None = None, force: bool = False) -> list[Path]:
    """A C99 source at ``path`` (ending in .c, or without an ending) and its header beside it; names start with
    ``prefix``, by default the file's name."""
    path = Path(path)
    if path.suffix not in ("", ".c"):
        raise ValueError(f"path of a C source must end in .c, got {path}")
    source, header = (_free(path.with_suffix(suffix), force) for suffix in (".c", ".h"))
    texts = generate(describe(trained), prefix_of(path.stem) if prefix is None else prefix, header.name)
    return _write({header: texts[0].encode(), source: texts[1].encode()})


def to_onnx(
    trained: Trained, path: AnyPath, *, method: Literal["point", "bayes"] = "point", force: bool = False
) -> list[Path]:
    """An ONNX model: classes from the most probable weights ("point") or class probabilities ("bayes")."""
    from cavity.export.onnx import bayesian_model, point_model

    target = _free(Path(path), force)
    if method not in ("point", "bayes"):
        raise ValueError(f"method must be 'point' or 'bayes', got {method!r}")
    return _write({target: point_model(describe(trained)) if method == "point" else bayesian_model(trained)})


def _free(path: Path, force: bool) -> Path:
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give a file name")
    if path.exists() and not force:
        raise FileExistsError(f"{path} already exists: choose another name, or overwrite it with --force")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent} is not a folder: create it first")
    return path


def _write(contents: dict[Path, bytes]) -> list[Path]:
    for path, content in contents.items():
        write_whole(path, content)
    return list(contents)
