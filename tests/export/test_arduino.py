"""The folder for Arduino, PlatformIO and Zephyr: its files are what these expect, and its example links."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import yaml

from cavity.export import Inputs, Trained, to_arduino
from cavity.packed import Confidence
from cavity.util.regular import NotAFile
from export.helpers import network, trained

STUB = Path(__file__).parent / "Arduino.h"
MAIN = """#include "Arduino.h"
static volatile long number;
Stream Serial = {&number};
unsigned long micros(void) { return 0; }
void setup(void);
void loop(void);
int main(void) { setup(); loop(); return 0; }
"""
UNO_FLASH, UNO_RAM = 32256, 2048


def models() -> dict[str, Trained]:
    names = ('quote" \\ */ ?', "b", "c")
    table = Trained(
        network((13, 25, 3)), Inputs.real(np.arange(13.0), np.full(13, 0.3)), names, confidence=Confidence(200, 7)
    )
    one = Trained(network((5, 3)), Inputs.real(), names)
    return {
        "label": dataclasses.replace(trained("label"), confidence=Confidence(200, 7, 180)),
        "table": table,
        "one": one,
    }


@pytest.mark.parametrize("name", models())
def test_the_example_links_for_an_uno(name: str, tmp_path) -> None:
    if shutil.which("avr-g++") is None:
        pytest.skip("there is no avr-g++ here (gcc-avr)")
    to_arduino(models()[name], tmp_path / "lib", prefix="gesture")
    build = tmp_path / "build"
    build.mkdir()
    shutil.copy(STUB, build / "Arduino.h")
    # The IDE puts this line above a sketch.
    sketch = '#include "Arduino.h"\n' + (tmp_path / "lib/examples/gesture/gesture.ino").read_text()
    (build / "sketch.cpp").write_text(sketch)
    (build / "main.cpp").write_text(MAIN)
    flags = [
        "-mmcu=atmega328p",
        "-Os",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-I",
        str(tmp_path / "lib/src"),
        "-I",
        str(build),
    ]
    sections = ["-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"]
    objects = []
    for compiler, standard, source in (
        ("avr-g++", "-std=gnu++11", build / "sketch.cpp"),
        ("avr-g++", "-std=gnu++11", build / "main.cpp"),
        ("avr-gcc", "-std=gnu11", tmp_path / "lib/src/gesture.c"),
    ):
        objects.append(str(build / f"{source.stem}.o"))
        subprocess.run([compiler, standard, *flags, *sections, "-c", source, "-o", objects[-1]], check=True)
    program = build / "program.elf"
    subprocess.run(["avr-g++", "-mmcu=atmega328p", *sections, *objects, "-lm", "-o", program], check=True)
    listed = subprocess.run(["avr-size", "-A", program], capture_output=True, text=True, check=True).stdout
    sizes = {line.split()[0]: int(line.split()[1]) for line in listed.splitlines() if line.startswith(".")}
    assert sizes[".text"] + sizes.get(".data", 0) < UNO_FLASH
    assert sizes.get(".data", 0) + sizes.get(".bss", 0) < UNO_RAM // 2


def test_what_the_three_systems_read(tmp_path) -> None:
    files = to_arduino(models()["label"], tmp_path / "my-lib")
    folder = tmp_path / "my-lib"
    assert {str(path.relative_to(folder)) for path in files} == {
        "library.properties", "keywords.txt", "library.json", "README.md", "src/my_lib.c", "src/my_lib.h",
        "examples/my_lib/my_lib.ino", "zephyr/module.yml", "zephyr/CMakeLists.txt", "zephyr/Kconfig",
    }  # fmt: skip
    lines = (folder / "library.properties").read_text().splitlines()
    properties = dict(line.split("=", 1) for line in lines)
    required = ["name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url", "architectures"]
    assert list(properties) == [*required, "includes"]
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", properties["name"])
    assert re.fullmatch(r"\d+\.\d+\.\d+", properties["version"])
    assert properties["includes"] == "my_lib.h"
    header = (folder / "src/my_lib.h").read_text()
    for line in (folder / "keywords.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            word, kind = line.split("\t")
            assert re.search(rf"\b{word}\b", header)
            assert kind in ("KEYWORD1", "KEYWORD2", "LITERAL1")
    declared = set(re.findall(r"\b(my_lib_\w+)\(", header))
    assert declared <= {line.split("\t")[0] for line in (folder / "keywords.txt").read_text().splitlines()}
    about = json.loads((folder / "library.json").read_text())
    assert about["name"] == properties["name"]
    assert (folder / "src" / about["headers"]).exists()
    module = yaml.safe_load((folder / "zephyr/module.yml").read_text())
    assert module["name"] == "my_lib"
    assert (folder / module["build"]["cmake"] / "CMakeLists.txt").exists()
    assert f"config {'MY_LIB'}\n\tbool" in (folder / module["build"]["kconfig"]).read_text()
    assert "CONFIG_MY_LIB" in (folder / "zephyr/CMakeLists.txt").read_text()
    assert (folder / "zephyr/../src/my_lib.c").exists()


def test_nothing_is_overwritten_and_no_link_followed(tmp_path) -> None:
    model, folder = models()["one"], tmp_path / "lib"
    to_arduino(model, folder)
    with pytest.raises(FileExistsError, match="already exists"):
        to_arduino(model, folder)
    (folder / "own.txt").write_text("mine")
    to_arduino(model, folder, force=True)
    assert (folder / "own.txt").read_text() == "mine"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.rmtree(folder / "src")
    (folder / "src").symlink_to(elsewhere)
    with pytest.raises(NotAFile, match="symbolic link"):
        to_arduino(model, folder, force=True)
    assert list(elsewhere.iterdir()) == []
    (tmp_path / "file").write_text("precious")
    with pytest.raises(NotADirectoryError, match="is a file"):
        to_arduino(model, tmp_path / "file", force=True)
    with pytest.raises(ValueError, match="prefix must be"):
        to_arduino(model, tmp_path / "other", prefix="1x")
    assert not (tmp_path / "other").exists()
