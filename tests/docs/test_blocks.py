"""Every code block of README.md and of the site is run, or says why it is not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from docs.blocks import ROOT, RUN, SHOWN, Block, blocks, pages
from docs.commands import check, commands

NAVIGATION = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
RUNNER = Path(__file__).with_name("run_page.py")
PAGES = {str(page.relative_to(ROOT)): blocks(page.read_text()) for page in pages()}
NOT_RUN = {f"{name}:{block.line}": block for name, there in PAGES.items() for block in there if block.kind == "not run"}


#: Pages with something to run in the order in which a reader meets them: README.md, then as in the navigation.
FOLLOWED = [
    name
    for name in ["README.md", *(f"docs/{page}" for page in re.findall(r"(\S+\.md)$", NAVIGATION, re.MULTILINE))]
    if any(block.runs for block in PAGES.get(name, ()))
]

#: What a reader tries first; the other pages take as long as all that is not slow, and the front page repeats README.
FIRST = ("README.md",)


# A page starts up to six processes that import torch; the limit is for a machine that is busy with something else.
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in FIRST else pytest.mark.slow)
        for name, there in PAGES.items()
        if any(block.runs for block in there)
    ],
)
def test_the_blocks_of_a_page_run(name, tmp_path):
    follow(name, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_pages_can_be_followed_one_after_the_other_in_one_folder(tmp_path):
    for name in FOLLOWED:
        follow(name, tmp_path)


def follow(name, folder):
    """Run a page in the folder."""
    # One thread, no display, and no data but what ships with scikit-learn: as on a reader's new machine.
    given = {key: value for key, value in os.environ.items() if key != "CAVITY_DATA"}
    environment = given | {"OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, RUNNER, ROOT / name],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{name}\n{done.stdout}{done.stderr}"


def test_no_two_pages_write_the_same_file():
    """Where a page would overwrite what another has left, the command refuses or the reader loses it."""
    writers = {}
    for name in FOLLOWED:
        for path in written(PAGES[name]):
            assert path not in writers, f"{name} and {writers[path]} both write {path}"
            writers[path] = name
    assert "docs/how-to/ship-to-c.md" in writers.values()


def written(there):
    """What a page's commands write (--out, -o), and its files with a title."""
    names = {block.title for block in there if block.title is not None}
    for block in there:
        if block.runs and block.language == "sh":
            for words in commands(block.code):
                names |= {after for before, after in pairwise(words) if before in ("--out", "-o")}
    return names


@pytest.mark.parametrize("name", PAGES)
def test_every_block_says_what_it_is(name):
    for block in PAGES[name]:
        known = block.language in RUN + SHOWN or block.title is not None
        assert known, f"{name}:{block.line}: {block.language or 'no language'} is neither run nor shown nor a file"
        assert block.kind != "output" or block.language == "text", f"{name}:{block.line}: output is a text block"


@pytest.mark.parametrize("place", NOT_RUN)
def test_a_block_that_is_not_run_has_a_reason_and_can_be_parsed(place):
    block = NOT_RUN[place]
    assert len(block.reason.split()) >= 2, f"{place}: say why it is not run: <!-- not run: REASON -->"
    if block.language == "python":
        compile(block.code, place, "exec")
    else:
        check(block.code)


PAGE = """
```python
print("one", 1)
```

<!-- output -->
```text
one …
```

- in a list:

    <!-- not run: needs a week -->
    ```sh
    cavity train --epochs 3 \\
      --quiet  # slowly
    ```

```c title="main.c"
int main(void) { return 0; }
```
"""


def test_blocks_are_found_with_their_comments():
    assert blocks(PAGE) == [
        Block(2, "python", 'print("one", 1)\n', None, None, ""),
        Block(7, "text", "one …\n", None, "output", ""),
        Block(14, "sh", "cavity train --epochs 3 \\\n  --quiet  # slowly\n", None, "not run", "needs a week"),
        Block(19, "c", "int main(void) { return 0; }\n", "main.c", None, ""),
    ]
    with pytest.raises(ValueError, match="line 1: the block is never closed"):
        blocks("```python\n1\n")


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("import warnings\nwarnings.warn('old')", "UserWarning"),
        ("print('two')", "the page says"),
    ],
)
def test_a_page_that_is_wrong_fails(code, problem, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"```python\n{code}\n```\n\n<!-- output -->\n```text\none\n```\n\n```sh\ntouch reached\n```\n")
    done = subprocess.run([sys.executable, RUNNER, page], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert problem in done.stderr
    assert not (tmp_path / "reached").exists()


def test_a_shell_block_that_fails_fails_the_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```sh\nfalse | true\ntrue\n```\n")
    done = subprocess.run([sys.executable, RUNNER, page], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "page.md, line 1: the sh block failed" in done.stderr


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("cavity train --epoch 3", "there is no option --epoch"),
        ("cavity fly", "no command cavity fly"),
        ("make coffee", "no target coffee"),
        ("python scripts/check_series.py --speed", "no option --speed"),
        ("rm -r everything", "no check knows"),
        ("cat a.txt && cavity fly", "no command cavity fly"),
        ("for s in 0 1; do cavity train --seeds $s; done", "there is no option --seeds"),
        ("for s in 0 1; do cavity train --seed $t; done", "seed"),
        ("for s in 0 1; do cavity train --seed $s", "no check knows"),
        ("avr-gccc -Os a.c", "no check knows"),
        ("apt-get install", "no check knows"),
    ],
)
def test_a_command_that_cannot_be_right_is_found(line, problem):
    with pytest.raises(ValueError, match=problem):
        check(line)


def test_commands_are_told_apart_and_loops_unrolled():
    assert commands("make lint && make test; pip install 'a;b'  # c; d") == [
        ["make", "lint"],
        ["make", "test"],
        ["pip", "install", "a;b"],
    ]
    assert commands("for s in 0 1; do cavity train --seed $s --out runs/a-$s; make all; done\nmake clean") == [
        ["cavity", "train", "--seed", "0", "--out", "runs/a-0"],
        ["make", "all"],
        ["cavity", "train", "--seed", "1", "--out", "runs/a-1"],
        ["make", "all"],
        ["make", "clean"],
    ]
