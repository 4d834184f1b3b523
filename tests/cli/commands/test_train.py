"""graphc train: what it leaves, that it goes on with the same bits, and what it refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.cli import console
from graphc.cli.commands import train
from tests.cli.conftest import Graphc, Result
from tests.cli.field_check import mismatches
from tests.cli.trained import make_data, make_trainable

ROOT = Path(__file__).parents[2]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with a model and data."""
    make_trainable(tmp_path / "net.gcm")
    make_data(tmp_path / "train.npz")
    make_data(tmp_path / "valid.npz", 30, seed=2)
    return tmp_path


@pytest.fixture
def training(files: Path, graphc: Graphc) -> object:
    """Runs a training in the folder."""

    def run(*more: object, output: str = "out.gcm") -> Result:
        common = ["--data", files / "train.npz", "--shuffle", "--seed", 3, "--batch", 16]
        return graphc("train", files / "net.gcm", *common, "-o", files / output, *more)

    return run


def test_a_training_leaves_a_file_with_trained_weights(files: Path, training: Graphc):
    done = training("--epochs", 20, "--valid", files / "valid.npz")
    assert done.code == console.OK, done.err
    lines = done.out.splitlines()
    assert len(lines) == 21 and lines[0].startswith("epoch 1/20  step 7  loss ")
    assert lines[-1].startswith(f"{files}/out.gcm: 140 steps in ")
    assert float(lines[-2].split("valid.accuracy ")[1].split()[0]) > 0.8
    with np.load(files / "valid.npz") as valid:
        scores = gc.load(files / "out.gcm").entry("infer").run([valid["x"]])[0]
        assert (scores.argmax(1) == valid["y"]).mean() > 0.8


def test_measures_go_to_files_and_as_json_to_the_output(files: Path, training: Graphc):
    done = training("--epochs", 2, "--json", "--metrics", files / "m.jsonl", "--log", 3, "--valid", files / "valid.npz")
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert [line["event"] for line in lines] == ["step", "step", "epoch", "step", "step", "epoch", "done"]
    assert all(mismatches(line, train.JSON) == [] for line in lines)
    assert [json.loads(line) for line in (files / "m.jsonl").read_text().splitlines()] == lines[:-1]
    assert set(lines[2]) >= {"loss", "accuracy", "valid.accuracy", "seconds"}
    training("--epochs", 1, "--metrics", files / "m.csv")
    assert (files / "m.csv").read_text().startswith("event,step,epoch,loss,accuracy,seconds\nstep,1,1,")


def test_a_training_that_is_killed_and_resumed_gives_the_same_bits(files: Path, training: Graphc):
    common = ("--epochs", 3, "--every", 2)
    assert training(*common, "--checkpoint", files / "a", output="whole.gcm").code == 0
    command = [sys.executable, "-m", "graphc", "train", files / "net.gcm", "--data", files / "train.npz", "--shuffle"]
    command += ["--seed", 3, "--batch", 16, *common, "--checkpoint", files / "b", "-o", files / "out.gcm"]
    code = (
        "import os, signal, sys\nfrom graphc.cli.main import main\nfrom graphc.training import loop\n"
        "whole = loop.Training._after_step\n"
        "def after(self, values):\n"
        "    whole(self, values)\n"
        "    if self.progress.step == 11: os.kill(os.getpid(), signal.SIGKILL)\n"
        "loop.Training._after_step = after\nmain(sys.argv[1:])\n"
    )
    words = [sys.executable, "-c", code, *(str(word) for word in command[3:])]
    killed = subprocess.run(words, cwd=ROOT, capture_output=True, env={**os.environ, "GRAPHC_CACHE": "off"})
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    done = training(*common, "--checkpoint", files / "b", "--resume")
    assert done.code == 0 and "resuming after step 10 of 21" in done.err
    assert (files / "out.gcm").read_bytes() == (files / "whole.gcm").read_bytes()
    assert sorted(path.name for path in (files / "b").iterdir()) == [
        *(".lock", "step-000000018.npz", "step-000000020.npz", "step-000000021.npz")
    ]


def test_ctrl_c_leaves_a_checkpoint(files: Path, training: Graphc, monkeypatch: pytest.MonkeyPatch):
    whole = train._Printer.step

    def interrupt(self: train._Printer, progress: object, loss: float) -> None:
        whole(self, progress, loss)  # type: ignore[arg-type]
        if progress.step == 5:  # type: ignore[attr-defined]
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(train._Printer, "step", interrupt)
    before = signal.getsignal(signal.SIGINT)
    done = training("--checkpoint", files / "run", "--epochs", 2)
    assert done.code == console.INTERRUPTED and "interrupted after step 5 of 14; --resume continues" in done.err
    assert (files / "run" / "step-000000005.npz").exists() and not (files / "out.gcm").exists()
    assert signal.getsignal(signal.SIGINT) is before
    done = training("--epochs", 2)
    assert done.code == console.INTERRUPTED and "nothing was saved" in done.err


def test_a_folder_with_checkpoints_is_not_begun_again(files: Path, training: Graphc):
    assert "no checkpoint in" in training("--checkpoint", files / "run", "--resume").err
    done = training("--checkpoint", files / "run")
    assert done.code == console.USAGE and "up to step 7" in done.err and "--resume" in done.err
    done = training("--checkpoint", files / "run", "--resume", "--lr", 0.5)
    assert done.code == console.MISMATCH and "belongs to another training: lr None and not 0.5" in done.err
    longer = training("--checkpoint", files / "run", "--resume", "--epochs", 2)
    assert longer.code == 0 and "resuming after step 7 of 14" in longer.err


def test_numbers_of_the_optimizer_are_set(files: Path, training: Graphc):
    assert training("--lr", 0.25, "--set", "beta1=0.5").code == 0
    state = gc.load(files / "out.gcm").state_dict()
    assert state["optimizer.group0.lr"].item() == 0.25 and state["optimizer.group0.beta1"].item() == 0.5
    done = training("--set", "momentum=0.5")
    assert done.code == console.MISMATCH and "no number 'momentum' that can be set" in done.err


def test_a_loss_that_is_no_number_stops(files: Path, training: Graphc):
    with np.load(files / "train.npz") as data:
        x, y = data["x"].copy(), data["y"]
    x[3] = np.inf
    np.savez(files / "train.npz", x=x, y=y)
    done = training()
    assert done.code == console.WRONG and "error: loss of step" in done.err and "--keep-going" in done.err
    assert not (files / "out.gcm").exists()
    done = training("--keep-going")
    assert done.code == console.OK and "loss not finite" in done.out


def test_tables_and_pairs_of_files(files: Path, graphc: Graphc):
    with np.load(files / "train.npz") as data:
        rows = [[*x, int(y)] for x, y in zip(data["x"].tolist(), data["y"], strict=True)]
        np.save(files / "x.npy", data["x"].astype(np.float64))
        np.save(files / "y.npy", data["y"].astype(np.int32))
    (files / "d.csv").write_text("\n".join(",".join(map(str, row)) for row in rows))
    written = []
    for words in (
        ["--data", files / "train.npz"],
        ["--data", files / "d.csv", "--columns", "x=0..5,y=6"],
        ["--images", files / "x.npy", "--labels", files / "y.npy"],
        ["--data", f"x={files}/x.npy,y={files}/y.npy"],
    ):
        done = graphc("train", files / "net.gcm", *words, "--seed", 1, "-o", files / "out.gcm")
        assert done.code == console.OK, done.err
        written.append((files / "out.gcm").read_bytes())
    assert len(set(written)) == 1
    assert "float64 becomes float32" in done.err and "int32 becomes int64" in done.err


def test_batches_of_one_size_leave_the_rest_out(tmp_path: Path, graphc: Graphc):
    make_trainable(tmp_path / "net.gcm", batch=8)
    make_data(tmp_path / "d.npz", 20)
    words = ["train", tmp_path / "net.gcm", "--data", tmp_path / "d.npz", "-o", tmp_path / "out.gcm"]
    done = graphc(*words, "--valid", tmp_path / "d.npz")
    assert done.code == console.OK and "step 2  loss" in done.out
    done = graphc(*words, "--batch", 4)
    assert done.code == console.MISMATCH and "batches of 8, not of 4" in done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--data, or --images and --labels"),
        (["--images", "a.gz"], "--data, or --images and --labels"),
        (["--data", "none.npz", "--resume"], "--checkpoint FOLDER"),
        (["--data", "none.npz", "--measure", "mse"], "--valid DATA"),
        (["--data", "none.npz"], "no such file or folder of data"),
        (["--data", "none.npz", "--epochs", "0"], "not a positive integer"),
        (["--data", "none.npz", "--set", "lr"], "not NAME=NUMBER"),
    ],
)
def test_arguments_that_do_not_go_together(words: list[str], message: str, files: Path, graphc: Graphc):
    done = graphc("train", files / "net.gcm", *words, "-o", files / "out.gcm")
    assert done.code == console.USAGE and message in done.err


def test_files_that_cannot_be_trained(files: Path, graphc: Graphc):
    gc.export(nn.Linear(6, 3), gc.zeros(4, 6), path=files / "plain.gcm")
    done = graphc("train", files / "plain.gcm", "--data", files / "train.npz", "-o", files / "out.gcm")
    assert done.code == console.MISMATCH and "the file has no entries that train" in done.err
    done = graphc("train", files / "net.gcm", "--entry", "infer", "--data", files / "train.npz", "-o", files / "o.gcm")
    assert done.code == console.MISMATCH and "writes no parameters" in done.err and "--entry train_step" in done.err
    done = graphc("train", files / "net.gcm", "--data", files / "train.npz", "-o", files / "out.onnx")
    assert done.code == console.USAGE and "must be a .gcm file" in done.err
    np.savez(files / "other.npz", a=np.zeros(3))
    done = graphc("train", files / "net.gcm", "--data", files / "other.npz", "-o", files / "out.gcm")
    assert done.code == console.MISMATCH and "has no x, y" in done.err


def test_patience_and_the_best_epoch(files: Path, training: Graphc):
    more = ("--valid", files / "valid.npz", "--measure", "cross_entropy,f1", "--lr", 0.5, "--epochs", 12)
    done = training(*more, "--patience", 2, "--keep-best", "--plot", files / "h.svg", "--json")
    assert done.code == console.OK, done.err
    rows = [line for line in map(json.loads, done.out.splitlines()) if line["event"] == "epoch"]
    losses = [row["valid.cross_entropy"] for row in rows]
    best = int(np.argmin(losses)) + 1
    assert len(rows) == best + 2 < 12
    assert f"stopped after epoch {best + 2}: valid.cross_entropy was best in epoch {best}" in done.err
    assert f"the weights are those of epoch {best}" in done.err
    with np.load(files / "valid.npz") as valid:
        scores = gc.tensor(gc.load(files / "out.gcm").entry("infer").run([valid["x"]])[0])
        assert float(nn.functional.cross_entropy(scores, gc.tensor(valid["y"]))) == pytest.approx(min(losses), rel=1e-5)
    assert f"best epoch, {best}" in (files / "h.svg").read_text()


def test_the_best_epoch_outlives_an_interruption(files: Path, training: Graphc):
    more = ("--valid", files / "valid.npz", "--lr", 0.3, "--keep-best")
    assert training(*more, "--epochs", 5, output="whole.gcm").code == 0
    assert training(*more, "--epochs", 3, "--checkpoint", files / "run").code == 0
    assert training(*more, "--epochs", 5, "--checkpoint", files / "run", "--resume").code == 0
    assert (files / "out.gcm").read_bytes() == (files / "whole.gcm").read_bytes()


def test_goals_and_pictures_that_are_refused(files: Path, training: Graphc):
    for more, message in (
        (("--goal", "loss"), "--goal chooses the best epoch"),
        (("--goal", "most:loss", "--keep-best"), "'most:loss' does not name a column"),
        (("--plot", files / "none" / "h.svg"), "is in no existing folder"),
        (("--goal", "valid.loss", "--patience", 1), "there is no column 'valid.loss'"),
    ):
        done = training(*more)
        assert done.code in (console.USAGE, console.MISMATCH) and message in done.err
