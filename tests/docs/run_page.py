"""Run the blocks of one page in the current folder, in order: ``python tests/docs/run_page.py docs/tutorial.md``.

Python blocks share one namespace, shell blocks are scripts of their own, and warnings are errors. It stops at the first
block that fails or does not print what the page says.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import subprocess
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import Any

from blocks import Block, blocks

CHECKER = doctest.OutputChecker()


class Failure(Exception):
    """A block did not do what the page says."""


def run_python(block: Block, page: Path, namespace: dict[str, Any]) -> str:
    """What the block prints."""
    printed = io.StringIO()
    # Empty lines above the code give the numbers of the page's lines to a traceback.
    code = compile("\n" * block.line + block.code, str(page), "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)
    return printed.getvalue()


def run_shell(block: Block, folder: Path) -> str:
    """What the block prints; ``cavity`` is that of this interpreter."""
    environment = os.environ | {"PATH": os.pathsep.join([str(folder), os.environ["PATH"]])}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.code], env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise Failure(f"exit status {done.returncode}")
    return done.stdout


def check_output(said: str, printed: str) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    said = said.replace("…", "...")
    if not CHECKER.check_output(said, printed, flags):
        raise Failure(f"the page says\n{said}\nbut the block before printed\n{printed}")


def run(page: Path, folder: Path) -> None:
    """Run the page's blocks; Failure or the block's own exception, with the block's line."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    for block in blocks(page.read_text()):
        try:
            if block.title is not None:
                Path(block.title).write_text(block.code)
            elif block.runs:
                python = block.language == "python"
                printed = run_python(block, page, namespace) if python else run_shell(block, folder)
            elif block.kind == "output":
                check_output(block.code, printed)
        except Exception as error:
            traceback.print_exc()
            raise Failure(f"{page}, line {block.line}: the {block.language} block failed") from error


def main() -> int:
    warnings.simplefilter("error")
    # Raised inside torch 2.13 when its compiler is first used; nothing of ours calls it.
    warnings.filterwarnings("ignore", "`torch.jit.script_method` is deprecated", DeprecationWarning)
    sys.path.insert(0, os.getcwd())
    with tempfile.TemporaryDirectory() as folder:
        command = Path(folder) / "cavity"
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m cavity "$@"\n')
        command.chmod(0o755)
        try:
            run(Path(sys.argv[1]).resolve(), Path(folder))
        except Failure as failure:
            print(failure, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
