"""The real data sets, where $CAVITY_DATA leads to them."""

from __future__ import annotations

import hashlib

import pytest
import torch

from cavity import data
from cavity.data import places, registry, store

# The digests these data sets are commonly published with; the package itself checks SHA-256.
MD5 = {
    "mnist": {
        "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
        "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
        "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
        "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
    },
    "fashion-mnist": {
        "train-images-idx3-ubyte": "f4a8712d7a061bf5bd6d2ca38dc4d50a",
        "train-labels-idx1-ubyte": "9018921c3c673c538a1fc5bad174d6f9",
        "t10k-images-idx3-ubyte": "8181f5470baa50b63fa0f6fddb340f0a",
        "t10k-labels-idx1-ubyte": "15d484375f8d13e6eb1aabb0c3f46965",
    },
    "cifar-10": {
        "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
        "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
        "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
        "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
        "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
        "test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
    },
}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """One cache for all tests here, so that CIFAR-10 is unpacked once."""
    return tmp_path_factory.mktemp("cache")


# Unpacking CIFAR-10 takes longer than all other tests of the data.
@pytest.fixture(params=["mnist", "fashion-mnist", pytest.param("cifar-10", marks=pytest.mark.slow)])
def name(request, real_data, world, unpacked, monkeypatch):
    monkeypatch.setattr(store, "cache_folder", lambda: unpacked)
    if not places.is_present(request.param, real_data):
        pytest.skip(f"$CAVITY_DATA has no {request.param}")
    return request.param


def test_contents_have_the_published_digests(name, real_data):
    contents = store.contents(name, real_data)
    assert {file: hashlib.md5(content).hexdigest() for file, content in contents.items()} == MD5[name]


PUBLISHED = {
    "mnist": ([0.1307], [0.3081]),
    "fashion-mnist": ([0.2860], [0.3530]),
    "cifar-10": ([0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]),
}


def test_samples_labels_and_statistics(name, real_data):
    dataset = data.load(name, data_dir=real_data)
    n_train = 50_000 if name == "cifar-10" else 60_000
    channels = 3 if name == "cifar-10" else 1
    assert dataset.image_shape == ((3, 32, 32) if name == "cifar-10" else (1, 28, 28))
    assert (len(dataset.x_train), len(dataset.x_test)) == (n_train, 10_000)
    assert dataset.n_features == torch.Size(dataset.image_shape).numel()
    assert dataset.classes == registry.SOURCES[name].classes
    assert torch.bincount(dataset.y_test).shape == (10,)
    if name != "mnist":
        assert (torch.bincount(dataset.y_train) == n_train // 10).all()
    for values, published in zip((dataset.mean, dataset.std), PUBLISHED[name], strict=True):
        assert torch.allclose(values.reshape(channels, -1)[:, 0], torch.tensor(published), atol=5e-5)
    by_channel = dataset.x_train.reshape(n_train, channels, -1)
    assert by_channel.mean((0, 2), dtype=torch.float64).abs().max() < 1e-5
    first = (dataset.x_train[0] * dataset.std + dataset.mean) * 255
    assert torch.allclose(first, first.round(), atol=1e-3)
    assert first.round().min() >= 0
    assert first.round().max() <= 255


def test_the_two_class_task(real_data, world):
    if not places.is_present("mnist", real_data):
        pytest.skip("$CAVITY_DATA has no mnist")
    dataset = data.load("mnist", data_dir=real_data, binary_task=True)
    assert dataset.y_train[:6].tolist() == [1, -1, -1, 1, 1, -1]  # 5, 0, 4, 1, 9, 2
    assert dataset.classes == ("even", "odd")
