"""Run folders: repeated, stopped and resumed bit for bit; never overwritten by accident."""

from __future__ import annotations

import json
import shutil

import pytest
import torch

from cavity.runs import CheckpointError, Config, load_checkpoint, open_run, resume, train
from cavity.training.callbacks import Callback
from cavity.util.files import only_writer
from runs.helpers import TINY_DATA, assert_same_outcome, tiny

VARIANTS = {
    "mf": {},
    "bp": {"algorithm": "bp"},
    "bpi, two inner iterations": {"algorithm": "bpi", "inner_iterations": 2},
    "amp, gaussian, relu": {"algorithm": "amp", "weights": "gaussian", "activation": "relu"},
    "ternary, sparse, bias": {"weights": "ternary", "density": 0.5, "bias": True},
    "reinforced": {"reinforcement": 0.1, "reinforcement_step": 0.05},
    "three classes, sampled": {"output": "argmax-sampled", "data_options": {**TINY_DATA, "n_classes": 3}},
    "full batch": {"batch_size": 130},
    "thresholds": {"algorithm": "bp", "threshold": True},
    "convolutions": {
        "dataset": "digits",
        "data_options": None,
        "hidden": None,
        "layers": "white:4:3,conv:5:3,pool:2,dense:9",
        "threshold": True,
        "augment": "flip,shift:1",
        "batch_size": 400,
    },
}


class StopAt(Callback):
    """Stops training after that many steps in all."""

    def __init__(self, step):
        self.step = step

    def on_step(self, trainer, info):
        trainer.stop = trainer.steps == self.step


@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS.keys())
def test_stopped_anywhere_and_resumed_is_the_same(tmp_path, options):
    whole = train(tiny(**options), tmp_path / "whole")
    steps = load_checkpoint(whole.path / "checkpoint.safetensors").trainer["steps"]
    for step in sorted({1, steps // 3, steps // 2, steps - 1}):
        path = tmp_path / f"stopped-{step}"
        train(tiny(**options), path, callbacks=[StopAt(step)])
        assert not open_run(path).finished
        resume(path)
        assert_same_outcome(whole.path, path)


def test_repeated_from_its_configuration_is_the_same(tmp_path):
    first = train(tiny(rho=None, output=None), tmp_path / "first")
    written = Config.from_toml(first.path / "config.toml")
    assert written == first.config
    assert None not in (written.hidden, written.output, written.threads, written.device)
    second = train(written, tmp_path / "second", checkpoint_seconds=0)
    assert_same_outcome(first.path, second.path)
    other = train(written.replace(seed=1), tmp_path / "other")
    assert not torch.equal(first.load_network().layers[0].mean, other.load_network().layers[0].mean)


def test_every_checkpoint_of_a_run_resumes_to_the_same(tmp_path):
    """Copies the folder at every step, as ``kill -9`` would leave it, and goes on from each copy."""
    copies = []

    class Copy(Callback):
        def on_step(self, trainer, info):
            copies.append(shutil.copytree(tmp_path / "whole", tmp_path / f"step-{trainer.steps}"))

        def on_epoch(self, trainer, record):
            copies.append(shutil.copytree(tmp_path / "whole", tmp_path / f"epoch-{trainer.epoch}"))

    whole = train(tiny(), tmp_path / "whole", callbacks=[Copy()], checkpoint_seconds=0)
    assert len(copies) == 3 * 4 + 3
    for copy in copies:
        resume(copy)
        assert_same_outcome(whole.path, copy)


def test_metrics_are_never_there_twice(tmp_path):
    path = tmp_path / "run"
    train(tiny(), path, callbacks=[StopAt(9)])
    file = path / "metrics.jsonl"
    lines = file.read_text().splitlines()
    assert len(lines) == 2
    # As after a crash: an epoch that the checkpoint does not know, and half a line.
    file.write_text("\n".join([*lines, lines[0], '{"epoch": 4, "tra']))
    assert [record.epoch for record in open_run(path).records] == [1, 2, 1]
    resume(path)
    assert [json.loads(line)["epoch"] for line in file.read_text().splitlines()] == [1, 2, 3]
    assert open_run(path).finished


def test_the_record_of_an_epoch(tmp_path):
    path = train(tiny(), tmp_path / "run").path
    record = json.loads((path / "metrics.jsonl").read_text().splitlines()[0])
    errors = ["train_error", "test_error", "train_error_bayes", "test_error_bayes"]
    others = ["test_nll", "test_ece", "seconds", "polarization", "overlap", "clamped", "train_nll"]
    assert list(record) == ["epoch", *errors, *others]
    assert all(0 <= record[name] <= 100 for name in errors)
    # 40 test samples: a percentage that is no fraction would not be a multiple of 2.5.
    assert record["test_error"] % 2.5 == 0
    assert len(record["polarization"]) == len(record["overlap"]) == 2


def test_killed_before_the_first_checkpoint(tmp_path):
    whole = train(tiny(), tmp_path / "whole")
    path = tmp_path / "run"
    path.mkdir()
    shutil.copy(whole.path / "config.toml", path)
    with pytest.raises(FileNotFoundError, match="has no checkpoint yet"):
        open_run(path).load_network()
    assert open_run(path).records == []
    resume(path)
    assert_same_outcome(whole.path, path)


def test_more_epochs_are_like_as_many_from_the_start(tmp_path):
    rho = (1.01, 0.9)
    longer = train(tiny(rho=rho, epochs=5), tmp_path / "longer")
    shorter = train(tiny(rho=rho, epochs=3), tmp_path / "shorter")
    resumed = resume(shorter.path, epochs=5)
    assert resumed.config == longer.config == open_run(shorter.path).config
    assert_same_outcome(longer.path, shorter.path)


def test_a_run_is_not_overwritten(tmp_path):
    path = train(tiny(), tmp_path / "run").path
    before = (path / "checkpoint.safetensors").read_bytes()
    with pytest.raises(FileExistsError, match=r"go on with it by --resume, choose another --out, or .* --force"):
        train(tiny(), path)
    assert (path / "checkpoint.safetensors").read_bytes() == before
    (path / "notes.txt").write_text("mine")
    train(tiny(seed=5), path, force=True)
    assert open_run(path).config.seed == 5
    assert len(open_run(path).records) == 3
    assert (path / "notes.txt").read_text() == "mine"


def test_an_empty_folder_is_free_a_file_is_not(tmp_path):
    (tmp_path / "empty").mkdir()
    train(tiny(epochs=1), tmp_path / "empty")
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError, match="is a file"):
        train(tiny(), tmp_path / "file", force=True)
    with pytest.raises(OSError, match="Not a directory"):
        train(tiny(), tmp_path / "file" / "run")


def test_without_a_folder_it_gets_a_new_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = [train(tiny(epochs=1)).path for _ in range(2)]
    assert [str(path) for path in paths] == ["runs/teacher-student-mf-1", "runs/teacher-student-mf-2"]


def test_two_processes_do_not_write_one_run(tmp_path):
    path = train(tiny(epochs=1), tmp_path / "run").path
    with only_writer(path), pytest.raises(OSError, match="is being written by another process"):
        resume(path, epochs=2)
    resume(path, epochs=2)


def test_a_changed_configuration_is_not_resumed(tmp_path):
    path = train(tiny(damping=0.8), tmp_path / "run").path
    config = open_run(path).config
    (path / "config.toml").write_text(config.replace(damping=0.5).to_toml())
    with pytest.raises(CheckpointError, match=r"was trained with damping = 0\.8, but config\.toml has 0\.5"):
        resume(path, epochs=4)


def test_a_damaged_checkpoint_is_left_as_it_is(tmp_path):
    path = train(tiny(), tmp_path / "run").path
    file = path / "checkpoint.safetensors"
    file.write_bytes(file.read_bytes()[:-5])
    damaged, metrics = file.read_bytes(), (path / "metrics.jsonl").read_bytes()
    with pytest.raises(CheckpointError, match="cut short or altered"):
        resume(path, epochs=9)
    assert file.read_bytes() == damaged
    assert (path / "metrics.jsonl").read_bytes() == metrics
    assert open_run(path).config.epochs == 3


def test_what_is_no_run(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a folder"):
        open_run(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"has no config\.toml"):
        open_run(tmp_path)
    with pytest.raises(ValueError, match="n_train"):
        train(Config(dataset="digits", data_options={"n_train": 3}), tmp_path / "run")
    with pytest.raises(ValueError, match="device 'gpu' cannot be used"):
        train(tiny(device="gpu"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_broken_line_among_the_metrics(tmp_path):
    path = train(tiny(epochs=1), tmp_path / "run").path
    (path / "metrics.jsonl").write_text('{"epoch": 1}\n')
    with pytest.raises(ValueError, match=r"metrics\.jsonl: line 1"):
        _ = open_run(path).records


def test_a_small_problem_gets_one_thread(tmp_path):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        run = train(tiny(threads=None, epochs=1), tmp_path / "run")
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert run.config.threads == 1


def test_threads_are_as_before(tmp_path):
    before = torch.get_num_threads()
    run = train(tiny(threads=before + 1, epochs=1), tmp_path / "run")
    assert run.config.threads == before + 1
    assert torch.get_num_threads() == before


def test_paths_in_the_configuration_mean_the_same_everywhere(tmp_path, monkeypatch):
    rows = ["a,b,label"] + [f"{i % 7},{i % 3},{'even' if i % 2 else 'odd'}" for i in range(60)]
    (tmp_path / "own.csv").write_text("\n".join(rows))
    monkeypatch.chdir(tmp_path)
    run = train(Config(dataset="own.csv", hidden=(5,), epochs=1, algorithm="mf"), tmp_path / "run")
    assert run.config.dataset == str(tmp_path / "own.csv")
    monkeypatch.chdir("/")
    assert open_run(run.path).load_dataset().classes == ("even", "odd")


def test_two_classes_as_label_or_as_argmax(tmp_path):
    label, argmax = (train(tiny(output=output, epochs=1), tmp_path / output) for output in ("label", "argmax"))
    assert set(label.load_dataset().y_train.tolist()) == {-1, 1}
    assert set(argmax.load_dataset().y_train.tolist()) == {0, 1}
    assert (label.load_network().outputs, argmax.load_network().outputs) == (1, 2)


def test_layers_are_checked_against_the_data(tmp_path):
    with pytest.raises(ValueError, match=r"input \(1, 8, 8\) -> conv:5:3 \(5, 6, 6\) -> conv:5:7"):
        train(Config(dataset="digits", layers="conv:5:3,conv:5:7"), tmp_path / "small")
    with pytest.raises(ValueError, match="the data are no images"):
        train(tiny(hidden=None, layers="conv:5:3"), tmp_path / "table")
    with pytest.raises(ValueError, match="augment is 'flip', but the data are no images"):
        train(tiny(augment="flip"), tmp_path / "augmented")
