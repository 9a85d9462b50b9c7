"""What is built and installed: extras that errors name, versions of Python, and the runtime that needs NumPy alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import cavity

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RUNTIME = tomllib.loads((ROOT / "packaging" / "runtime" / "pyproject.toml").read_text())
#: ``cavity[river]`` and ``.[dev]``, in an error, a docstring, a page or the Makefile.
EXTRA = re.compile(r"(?:\bcavity|-e \"?\.)\[([a-z,]+)\]")


def test_extras_that_are_named_exist():
    texts = [*ROOT.glob("src/**/*.py"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md"), ROOT / "Makefile"]
    named = {extra for path in texts for found in EXTRA.findall(path.read_text()) for extra in found.split(",")}
    assert {"onnx", "parquet", "river", "sweep", "tensorboard", "dev", "dist"} <= named
    assert named <= set(PROJECT["optional-dependencies"])


def test_every_dependency_is_pinned():
    pinned = {line.split("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines()}
    wanted = [*PROJECT["dependencies"], *(one for extra in PROJECT["optional-dependencies"].values() for one in extra)]
    names = {re.match(r"[A-Za-z0-9-]+", one)[0].lower() for one in wanted}
    assert {name for name in names if name not in pinned and name.replace("-", "_") not in pinned} == set()


def versions(classifiers: list[str]) -> list[str]:
    return [found[1] for one in classifiers if (found := re.search(r"Python :: (3\.\d+)$", one))]


def test_versions_of_python_are_the_same_everywhere():
    assert versions(PROJECT["classifiers"]) == versions(RUNTIME["project"]["classifiers"])
    assert RUNTIME["project"]["requires-python"] == PROJECT["requires-python"]
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())["jobs"]
    assert jobs["tests"]["strategy"]["matrix"]["python"] == versions(PROJECT["classifiers"])


def test_workflows_call_targets_that_exist_and_only_publishing_may_write():
    yaml = pytest.importorskip("yaml")
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for path in (ROOT / ".github/workflows").glob("*.yml"):
        workflow = yaml.safe_load(path.read_text())
        assert workflow["permissions"] == {"contents": "read"}
        assert set(re.findall(r"make ([a-z]+)", path.read_text())) <= targets
        writers = [name for name, job in workflow["jobs"].items() if job.get("permissions")]
        assert writers == {"tests": [], "docs": ["deploy"], "publish": ["publish"]}[path.stem]


def test_the_version_is_the_same_everywhere():
    assert PROJECT["dynamic"] == RUNTIME["project"]["dynamic"] == ["version"]
    assert f"version: {cavity.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_runtime_has_all_that_packed_networks_need(tmp_path):
    """Its files in a folder of their own, with every library but NumPy out of reach."""
    for source, target in RUNTIME["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"].items():
        path = tmp_path / target
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to((ROOT / "packaging" / "runtime" / source).resolve())
    program = (
        "import sys\n"
        "known = {*sys.stdlib_module_names, 'numpy', 'cavity'}\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] not in known: raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "import importlib, pkgutil, cavity, cavity.packed\n"
        "for room in ('packed', 'util'):\n"
        "    package = importlib.import_module(f'cavity.{room}')\n"
        "    for module in pkgutil.iter_modules(package.__path__):\n"
        "        importlib.import_module(f'cavity.{room}.{module.name}')\n"
        "assert dir(cavity) == ['__version__', 'packed'], dir(cavity)\n"
        "cavity.packed.load\n"
        "try: cavity.mlp\n"
        "except ImportError as error: assert 'only runs packed networks: pip install cavity' in str(error)\n"
        "else: raise AssertionError\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    subprocess.run([sys.executable, "-P", "-c", program], env=environment, cwd=tmp_path, check=True)
