"""Install what ``make dist`` built into empty environments and use it there: ``python scripts/check_dist.py dist``.

One environment has the wheel of cavity: all blocks of README.md run in it, and a network is exported. The other has
cavity-runtime, and so NumPy and nothing else: it must give the same answers. Nothing of the checkout is on their path.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Answers of a network for digits, in the environment that trained it.
ANSWER = """
import numpy as np
import cavity
from sklearn.datasets import load_digits

net, x = cavity.packed.load("net.cavity"), load_digits().data
np.savez("answers.npz", x=x, classes=net.predict(x), confidence=net.confidence(x))
assert (net.predict(x) == load_digits().target).mean() > 0.9
"""
#: The same where there is no torch.
COMPARE = """
import importlib.metadata, importlib.util
import numpy as np
import cavity

installed = {each.name.lower() for each in importlib.metadata.distributions()} - {"pip", "setuptools"}
assert installed == {"cavity-runtime", "numpy"}, installed
assert dir(cavity) == ["__version__", "packed"], dir(cavity)
assert cavity.__version__ == importlib.metadata.version("cavity-runtime")
net, answers = cavity.packed.load("net.cavity"), np.load("answers.npz")
assert (net.predict(answers["x"]) == answers["classes"]).all()
assert (net.confidence(answers["x"]) == answers["confidence"]).all()
try:
    cavity.mlp
except ImportError as error:
    assert "pip install cavity" in str(error), error
else:
    raise AssertionError("a runtime that trains")
"""


def environment(folder: Path, wheel: Path) -> Path:
    """The interpreter of a new environment that has the wheel and what it needs."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(folder, *pip, "-c", ROOT / "constraints.txt", wheel)
    return python


def run(folder: Path, *words: object) -> None:
    """Run a program in a folder, without what the caller's Python would find; an error if it fails."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    subprocess.run([str(word) for word in words], cwd=folder, env=clean, check=True)


def only(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found.resolve()


def main() -> None:
    built = Path(sys.argv[1])
    whole, runtime = only(built, "cavity-*.whl"), only(built, "cavity_runtime-*.whl")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = environment(folder / "whole", whole)
        run(folder, python, ROOT / "tests" / "docs" / "run_page.py", ROOT / "README.md")
        command = python.with_name("cavity")
        run(folder, command, "train", "--hidden", "101", "--epochs", "5", "--out", "digits", "--quiet")
        run(folder, command, "export", "digits", "--out", "net.cavity")
        run(folder, python, "-c", ANSWER)
        run(folder, environment(folder / "runtime", runtime), "-c", COMPARE)
    print(f"{whole.name} runs README.md; {runtime.name} gives the same answers with NumPy alone")


if __name__ == "__main__":
    main()
