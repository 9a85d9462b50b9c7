"""Samples for prediction: in every form, standardised as in training; what does not fit is refused by name."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from cavity.data import DataError
from cavity.runs import read_samples
from cavity.runs.task import Task

TABLE = Task(2, ("a", "b"), None, torch.tensor([1.0, 2.0]), torch.tensor([2.0, 4.0]))
COLOUR = Task(12, ("a", "b"), (3, 2, 2), torch.full((12,), 0.5), torch.full((12,), 0.25))
GREY = Task(4, ("a", "b"), (1, 2, 2), torch.tensor([0.5]), torch.tensor([0.25]))
ROWS = np.array([[3.0, 2.0], [1.0, 6.0]])
STANDARD = [[1.0, 0.0], [0.0, 1.0]]


def test_tables_with_and_without_a_label(tmp_path):
    file = tmp_path / "x.csv"
    for text in ("a,b\n3,2\n1,6\n", "a;label;b\n3;yes;2\n\n1;no;6\n"):
        file.write_text(text)
        x, names = read_samples(file, TABLE)
        assert x.tolist() == STANDARD
        assert list(names) == ["0", "1"]


def test_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    file = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": ROWS[:, 0], "b": ROWS[:, 1], "label": ["u", "v"]}), file)
    assert read_samples(file, TABLE).x.tolist() == STANDARD
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(DataError, match="not a readable parquet"):
        read_samples(file, TABLE)


def test_arrays(tmp_path):
    file = tmp_path / "x.npz"
    np.savez(file, x=ROWS)
    assert read_samples(file, TABLE).x.tolist() == STANDARD
    # Bytes are pictures only where the network was trained on pictures.
    np.savez(file, X=ROWS.astype(np.uint8))
    assert read_samples(file, TABLE).x.tolist() == STANDARD


def test_pictures_in_every_form_are_the_same(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (5, 2, 2, 3), dtype=np.uint8)
    expected = torch.from_numpy((pixels.transpose(0, 3, 1, 2).reshape(5, 12) / 255 - 0.5) / 0.25).float()
    file = tmp_path / "x.npz"
    for x in (pixels, pixels.transpose(0, 3, 1, 2), pixels / 255):
        np.savez(file, x=x)
        torch.testing.assert_close(read_samples(file, COLOUR).x, expected)
    folder = tmp_path / "images"
    (folder / "sub").mkdir(parents=True)
    for number, picture in enumerate(pixels):
        Image.fromarray(picture).save(folder / ("sub" if number else "") / f"{number}.png")
    x, names = read_samples(folder, COLOUR)
    assert names == ["0.png", "sub/1.png", "sub/2.png", "sub/3.png", "sub/4.png"]
    torch.testing.assert_close(x, expected)
    torch.testing.assert_close(read_samples(folder / "0.png", COLOUR).x, expected[:1])
    grey = read_samples(folder, GREY)
    assert grey.x.shape == (5, 4)


def test_what_does_not_fit(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_samples(tmp_path / "none.csv", TABLE)
    cases = {
        "a.csv": ("a,b,c,d\n1,2,3,4\n", TABLE, "has 4 columns, the network takes 2"),
        "b.csv": ("a,b\n1,x\n", TABLE, "column 'b' holds texts, the network takes numbers"),
        "c.csv": ("a,b\n1\n", TABLE, "line 2 has 1 fields where the header has 2"),
        "d.csv": ("a,b\n", TABLE, "holds 0 rows"),
        "e.csv": ("a,b\n1,nan\n", TABLE, "not finite"),
        "f.csv": ("a,b,c\n1,2,3\n", TABLE, "label"),
        "g.txt": ("hello", TABLE, "cannot be read"),
        "h.npz": ("hello", TABLE, "not a readable .npz"),
        "i.png": ("hello", GREY, "not a readable PNG"),
        "j.png": ("hello", TABLE, "trained on tables"),
    }
    for name, (text, task, message) in cases.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(DataError, match=message):
            read_samples(tmp_path / name, task)
    np.savez(tmp_path / "k.npz", z=ROWS)
    with pytest.raises(DataError, match="holds z; expected x"):
        read_samples(tmp_path / "k.npz", TABLE)
    np.savez(tmp_path / "l.npz", x=np.zeros((3, 5)))
    with pytest.raises(DataError, match="samples of 5 numbers, the network takes 2"):
        read_samples(tmp_path / "l.npz", TABLE)
    Image.new("L", (3, 2)).save(tmp_path / "m.png")
    with pytest.raises(DataError, match="is 3×2, the network takes 2×2"):
        read_samples(tmp_path / "m.png", GREY)
    Image.fromarray(np.full((2, 2), 40_000, np.uint16)).save(tmp_path / "n.png")
    with pytest.raises(DataError, match="only 8 bits per channel"):
        read_samples(tmp_path / "n.png", GREY)
    Image.new("RGBA", (2, 2)).save(tmp_path / "o.png")
    with pytest.raises(DataError, match="the network takes images of 4 channels"):
        read_samples(tmp_path / "o.png", Task(16, ("a", "b"), (4, 2, 2), torch.zeros(1), torch.ones(1)))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no PNG images"):
        read_samples(tmp_path / "empty", GREY)
