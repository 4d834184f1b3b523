"""Streams on the command line: feed a file to a model block by block."""

from __future__ import annotations

import argparse
import wave
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base.dtypes import BY_NAME
from graphc.base.errors import ArtifactError
from graphc.base.sizes.size import is_size
from graphc.cli import console
from graphc.cli.arrays import read_array
from graphc.cli.progress import Progress
from graphc.files.container import replacing

if TYPE_CHECKING:
    from graphc.files.manifest import TensorSpec
    from graphc.models.model_file import LoadedModel

FORMS = ".wav (16 bits), .npy, or .raw (f32, little-endian)"
_PCM_BYTES, _PCM_STEPS = 2, 32768
"""Bytes of a sample in a .wav file, and steps from 0 to full scale."""


def run(options: argparse.Namespace, model: LoadedModel) -> int:
    """Feed the samples of a file to a model whose calls take a block of them, and write what it returns."""
    if len(options.output) != 1 or options.input or options.expect or options.taps or options.print_top:
        raise console.UsageError(
            "--stream takes its input from a file, and writes one file", remedy="pass --stream in.wav --output out.wav"
        )
    block, results = _block(model.inputs, "input"), _block(model.outputs, "output")
    samples, rate = read(options.stream)
    calls, rest = divmod(len(samples), block)
    if not calls:
        raise console.UsageError(f"{options.stream} has {len(samples)} samples, and a call takes {block}")
    dtype, shape = BY_NAME[model.inputs[0].dtype].numpy, tuple(int(n) for n in model.inputs[0].shape)
    blocks = samples[: calls * block].astype(dtype).reshape(calls, *shape)
    found = np.empty((calls, results), BY_NAME[model.outputs[0].dtype].numpy)
    with Progress("running", calls, "blocks") as progress:
        for number, samples_of_call in enumerate(blocks):
            found[number] = np.asarray(model.run([samples_of_call])[0]).reshape(-1)
            progress.tell(number + 1)
    write(Path(options.output[0]), found.reshape(-1), rate * results // block)
    facts = {"block": block, "calls": calls, "samples": found.size, "rest": rest, "file": options.output[0]}
    if options.json:
        console.emit_json({"model": model.name, "stream": facts})
    else:
        left = f", {rest} samples at the end fill no block" if rest else ""
        console.emit(f"{calls} calls of {block} samples -> {options.output[0]}: {found.size} samples{left}")
    return console.OK


def _block(specs: Any, kind: str) -> int:
    """Return the samples in a call's only input or output."""
    if len(specs) != 1:
        names = ", ".join(spec.name for spec in specs)
        raise console.UsageError(f"--stream needs a model with one {kind}, and this one has {names}")
    spec: TensorSpec = specs[0]
    if any(map(is_size, spec.shape)):
        raise console.UsageError(
            f"{kind} {spec.name} has named dimensions",
            remedy="export a stream with a fixed step: gc.stream(...).module",
        )
    count = int(np.prod(spec.shape))
    if max(spec.shape, default=1) != count:
        raise console.UsageError(
            f"{kind} {spec.name} is {console.type_text(spec)}: --stream feeds one channel",
            remedy="call the model from Python for several channels",
        )
    return count


def read(path: str) -> tuple[np.ndarray, int]:
    """Return the samples (f32, one channel) of a file, and their rate in Hz (48000 where the file has none)."""
    kind = Path(path).suffix
    if kind == ".wav":
        return _read_wave(path)
    if kind == ".npy":
        array = read_array(path)
        if array.dtype.kind not in "fiu" or max(array.shape, default=1) != array.size:
            raise console.UsageError(
                f"{path} is {array.dtype}{list(array.shape)}", remedy="save one channel of real numbers"
            )
        return array.reshape(-1), 48000
    if kind == ".raw":
        data = Path(path).read_bytes()
        if len(data) % 4:
            raise ArtifactError(f"{path} has {len(data)} bytes, not a multiple of 4", remedy=f"pass {FORMS}")
        return np.frombuffer(data, "<f4"), 48000
    raise console.UsageError(f"--stream cannot read {path}", remedy=f"pass {FORMS}")


def _read_wave(path: str) -> tuple[np.ndarray, int]:
    try:
        with wave.open(path, "rb") as file:
            if file.getsampwidth() != _PCM_BYTES or file.getnchannels() != 1:
                raise console.UsageError(
                    f"{path} has {file.getnchannels()} channels of {8 * file.getsampwidth()} bits",
                    remedy="convert it to one channel of 16 bits",
                )
            data = file.readframes(file.getnframes())
            return np.frombuffer(data, "<i2").astype(np.float32) / _PCM_STEPS, file.getframerate()
    except (wave.Error, EOFError) as error:
        raise ArtifactError(f"{path} is not a .wav file of PCM samples: {error}") from error


def write(path: Path, samples: np.ndarray, rate: int) -> None:
    """Write samples to a file of the kind of its suffix."""
    if path.suffix not in (".wav", ".npy", ".raw"):
        raise console.UsageError(f"--stream cannot write {path}", remedy=f"pass {FORMS}")
    with replacing(path) as file:
        if path.suffix == ".npy":
            np.save(file, samples)
        elif path.suffix == ".raw":
            file.write(samples.astype("<f4").tobytes())
        else:
            steps = np.clip(np.round(samples * _PCM_STEPS), -_PCM_STEPS, _PCM_STEPS - 1).astype("<i2")
            with wave.open(file, "wb") as sound:
                sound.setparams((1, _PCM_BYTES, rate, 0, "NONE", ""))
                sound.writeframes(steps.tobytes())
