"""``graphc run --stream``: samples of a file in blocks, and ``graphc bench --block``."""

from __future__ import annotations

import json
import wave
from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.cli import console
from graphc.cli.streaming import read, write
from graphc.nn import functional as F
from tests.cli.conftest import Graphc


class Smooth(nn.Module):
    """The mean of four samples, and every second one of them."""

    def __init__(self) -> None:
        super().__init__()
        self.filter = nn.Conv1d(1, 1, 4, stride=2, bias=False)

    def forward(self, x: gc.Tensor) -> gc.Tensor:
        return self.filter(F.pad(x, (3, 0)))


@pytest.fixture
def model(tmp_path: Path) -> Smooth:
    """A model whose stream is in the file ``smooth.gcm``, with steps of 8 samples."""
    gc.manual_seed(0)
    smooth = Smooth()
    stream = gc.stream(smooth, gc.zeros(1, 1, 64), dim=2, step=8)
    gc.export(stream.module, *stream.examples(), path=tmp_path / "smooth.gcm")
    return smooth


def test_blocks_of_a_file_give_the_whole_sequence(model: Smooth, tmp_path: Path, graphc: Graphc):
    samples = np.random.default_rng(0).standard_normal(83).astype(np.float32)
    np.save(tmp_path / "in.npy", samples)
    arguments = ("--stream", tmp_path / "in.npy", "--output", tmp_path / "out.npy")
    done = graphc("run", tmp_path / "smooth.gcm", *arguments, "--json")
    assert json.loads(done.out)["stream"] == {
        **{"block": 8, "calls": 10, "samples": 40, "rest": 3},
        "file": str(tmp_path / "out.npy"),
    }
    expected = model(gc.from_numpy(samples[:80].reshape(1, 1, -1))).detach().numpy().reshape(-1)
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected, atol=1e-6)


def test_sound_goes_in_and_out(model: Smooth, tmp_path: Path, graphc: Graphc):
    sound = np.sin(np.arange(160) / 5).astype(np.float32) / 2
    write(tmp_path / "in.wav", sound[None], 16000)
    done = graphc("run", tmp_path / "smooth.gcm", "--stream", tmp_path / "in.wav", "--output", tmp_path / "out.wav")
    assert done.code == console.OK and "20 calls of 8 samples" in done.out
    samples, rate = read(str(tmp_path / "out.wav"))
    assert rate == 8000  # one result for two samples
    expected = model(gc.from_numpy(read(str(tmp_path / "in.wav"))[0].reshape(1, 1, -1))).detach().numpy().reshape(-1)
    np.testing.assert_allclose(samples, expected[None], atol=1 / 32768)


@pytest.mark.parametrize("name", ["x.raw", "x.npy", "x.wav"])
def test_files_of_samples_are_read_as_written(name: str, tmp_path: Path):
    channels = 1 if name.endswith(".raw") else 2
    samples = (np.arange(-6, 6) / 8).astype(np.float32).reshape(channels, -1)
    write(tmp_path / name, samples, 48000)
    found, rate = read(str(tmp_path / name))
    assert rate == 48000 and np.array_equal(found, samples)


class Widened(nn.Module):
    """Stereo: the difference of both channels, and a running mean of each."""

    def __init__(self, time: int) -> None:
        super().__init__()
        self.time = time
        self.mix = nn.Buffer(gc.tensor([[1.0, -0.5], [0.25, 1.0]]))

    def forward(self, x: gc.Tensor) -> gc.Tensor:
        y = x if self.time == 2 else x.transpose(1, 2)
        y = self.mix @ F.avg_pool1d(F.pad(y, (2, 0)), 3, 1)
        return y if self.time == 2 else y.transpose(1, 2)


@pytest.mark.parametrize(("time", "step"), [(1, 5), (1, 8), (2, 5), (2, 8)])
def test_channels_go_in_and_out_together(time: int, step: int, tmp_path: Path, graphc: Graphc):
    shape = (1, 16, 2) if time == 1 else (1, 2, 16)
    net = Widened(time)
    stream = gc.stream(net, gc.zeros(*shape), dim=time, step=step)
    gc.export(stream.module, *stream.examples(), path=tmp_path / "wide.gcm")
    sound = (np.random.default_rng(0).standard_normal((2, 40)) / 9).astype(np.float32)
    write(tmp_path / "in.wav", sound, 16000)
    arguments = ("--stream", tmp_path / "in.wav", "--output", tmp_path / "out.npy", "--json")
    done = graphc("run", tmp_path / "wide.gcm", *arguments)
    assert json.loads(done.out)["stream"]["channels"] == 2
    sound = read(str(tmp_path / "in.wav"))[0]
    expected = net(gc.from_numpy(np.ascontiguousarray(sound if time == 2 else sound.T)[None])).numpy()[0]
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected if time == 2 else expected.T, atol=1e-6)


@pytest.mark.parametrize("step", [1, 2])
def test_channels_that_may_be_samples_are_refused(step: int, tmp_path: Path, graphc: Graphc):
    stream = gc.stream(Widened(2), gc.zeros(1, 2, 16), dim=2, step=step)
    gc.export(stream.module, *stream.examples(), path=tmp_path / "wide.gcm")
    np.save(tmp_path / "in.npy", np.zeros((2, 8), np.float32))
    arguments = ("--stream", tmp_path / "in.npy", "--output", tmp_path / "out.npy")
    done = graphc("run", tmp_path / "wide.gcm", *arguments)
    assert done.code == console.USAGE and "2 may be channels or samples" in done.err


def test_each_channel_begins_a_sequence(model: Smooth, tmp_path: Path, graphc: Graphc):
    samples = np.random.default_rng(0).standard_normal((2, 80)).astype(np.float32)
    np.save(tmp_path / "in.npy", samples)
    arguments = ("--stream", tmp_path / "in.npy", "--output", tmp_path / "out.npy", "--per-channel")
    assert "20 calls of 8 samples" in graphc("run", tmp_path / "smooth.gcm", *arguments).out
    expected = model(gc.from_numpy(samples[:, None])).detach().numpy()[:, 0]
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected, atol=1e-6)
    done = graphc("run", tmp_path / "smooth.gcm", *arguments[:3], tmp_path / "out.raw", "--per-channel")
    assert done.code == console.USAGE and "a .raw file holds one channel, not 2" in done.err


def test_what_cannot_be_fed_is_refused(model: Smooth, tmp_path: Path, graphc: Graphc):
    with wave.open(str(tmp_path / "stereo.wav"), "wb") as sound:
        sound.setparams((2, 2, 48000, 0, "NONE", ""))
        sound.writeframes(bytes(400))
    np.save(tmp_path / "short.npy", np.zeros(3, np.float32))
    cases = {
        ("stereo.wav", "out.wav"): "has 2 channels, and input x takes one",
        ("short.npy", "out.wav"): "has 3 samples, and a call takes 8",
        ("sound.ogg", "out.wav"): "cannot read",
    }
    for (source, target), message in cases.items():
        arguments = ("--stream", tmp_path / source, "--output", tmp_path / target)
        done = graphc("run", tmp_path / "smooth.gcm", *arguments)
        assert done.code == console.USAGE and message in done.err
    done = graphc("run", tmp_path / "smooth.gcm", "--stream", tmp_path / "short.npy")
    assert done.code == console.USAGE and "writes one file" in done.err
    gc.export(nn.Linear(4, 4), gc.zeros(2, 4), path=tmp_path / "rows.gcm")
    arguments = ("--stream", tmp_path / "short.npy", "--output", tmp_path / "out.npy")
    done = graphc("run", tmp_path / "rows.gcm", *arguments)
    assert done.code == console.USAGE and "f32[2,4], and the file has 1 channels" in done.err


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("damaged.wav", b"RIFFxxxx", "is not a .wav file of PCM samples"),
        ("damaged.npy", b"xx", "damaged.npy"),
        ("odd.raw", bytes(33), "has 33 bytes, not a multiple of 4"),
        ("two.npy", np.zeros((2, 64), np.float32), "two.npy has 2 channels, and input x takes one"),
        ("three.npy", np.zeros((2, 2, 64), np.float32), "is float32[2, 2, 64]"),
        ("complex.npy", np.zeros(64, np.complex64), "is complex64[64]"),
    ],
)
@pytest.mark.usefixtures("model")
def test_damaged_files_are_refused(
    name: str, content: bytes | np.ndarray, message: str, tmp_path: Path, graphc: Graphc
):
    if isinstance(content, bytes):
        (tmp_path / name).write_bytes(content)
    else:
        np.save(tmp_path / name, content)
    arguments = ("--stream", tmp_path / name, "--output", tmp_path / "out.npy")
    done = graphc("run", tmp_path / "smooth.gcm", *arguments)
    expected = console.DAMAGED if isinstance(content, bytes) else console.USAGE
    assert done.code == expected and message in done.err


def test_calls_are_paced_by_samples(model: Smooth, tmp_path: Path, graphc: Graphc):
    arguments = ("--rate", "8000", "--block", "8", "--duration", "0.2", "--warmup", "0.01")
    done = graphc("bench", tmp_path / "smooth.gcm", *arguments, "--json")
    figures = json.loads(done.out)["call"]
    assert figures["real-time"] == pytest.approx(0.001 / figures["p50"])
    assert 0 <= figures["late"] <= figures["calls"] and figures["calls"] <= 210
    text = graphc("bench", tmp_path / "smooth.gcm", *arguments).out
    assert "times real time" in text and "took longer than their samples" in text
    refused = graphc("bench", tmp_path / "smooth.gcm", "--block", "8")
    assert refused.code == console.USAGE and "needs the rate" in refused.err
