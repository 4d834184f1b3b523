"""Streams on the command line: feed a file to a model block by block."""

from __future__ import annotations

import argparse
import wave
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base.dtypes import BY_NAME
from graphc.base.errors import ArtifactError
from graphc.base.progress import Progress
from graphc.base.records import dataclass
from graphc.base.sizes.size import is_size
from graphc.cli import console
from graphc.cli.arrays import read_array
from graphc.files.container import replacing

if TYPE_CHECKING:
    from graphc.files.manifest import TensorSpec
    from graphc.models.model_file import LoadedModel

FORMS = ".wav (16 bits), .npy, or .raw (f32, little-endian)"
_PCM_BYTES, _PCM_STEPS = 2, 32768
"""Bytes of a sample in a .wav file, and steps from 0 to full scale."""


@dataclass(frozen=True)
class Layout:
    """Samples of a call in an array: ``channels`` in the dimension ``axis``; None for a single channel without one."""

    shape: tuple[int, ...]
    channels: int = 1
    axis: int | None = None

    @property
    def samples(self) -> int:
        """Samples of a channel."""
        return int(np.prod(self.shape)) // self.channels

    def array(self, samples: np.ndarray) -> np.ndarray:
        """Return samples [channels, count] in the shape of the call."""
        if self.axis is None:
            return samples.reshape(self.shape)
        others = self.shape[: self.axis] + self.shape[self.axis + 1 :]
        return np.moveaxis(samples.reshape(self.channels, *others), 0, self.axis)

    def rows(self, array: np.ndarray) -> np.ndarray:
        """Return the samples [channels, count] of an array of the call."""
        return (array if self.axis is None else np.moveaxis(array, self.axis, 0)).reshape(self.channels, -1)


def run(options: argparse.Namespace, model: LoadedModel) -> int:
    """Feed the samples of a file to a model whose calls take a block of them, and write what it returns."""
    if len(options.output) != 1 or options.input or options.expect or options.taps or options.print_top:
        raise console.UsageError(
            "--stream takes its input from a file, and writes one file", remedy="pass --stream in.wav --output out.wav"
        )
    samples, rate = read(options.stream)
    count = 1 if options.per_channel else len(samples)
    source = _layout(model.inputs, "input", count)
    target = _layout(model.outputs, "output", count, source)
    if source.channels != count:
        raise console.UsageError(
            f"{options.stream} has {count} channels, and input {model.inputs[0].name} takes one",
            remedy="pass --per-channel for a stream of each channel, or convert the file to one channel",
        )
    calls, rest = divmod(samples.shape[1], source.samples)
    if not calls:
        raise console.UsageError(f"{options.stream} has {samples.shape[1]} samples, and a call takes {source.samples}")
    groups = np.split(samples[:, : calls * source.samples], len(samples) // count)
    with Progress("running", calls * len(groups), "blocks") as progress:
        found = [_fed(model, group, source, target, progress, i * calls) for i, group in enumerate(groups)]
    results = np.concatenate(found)
    write(Path(options.output[0]), results, rate * target.samples // source.samples)
    facts = {"block": source.samples, "calls": calls * len(groups), "samples": results.shape[1], "rest": rest}
    facts |= {"channels": len(results)} if len(results) > 1 else {}
    if options.json:
        console.emit_json({"model": model.name, "stream": {**facts, "file": options.output[0]}})
    else:
        left = f", {rest} samples at the end fill no block" if rest else ""
        channels = f" of {len(results)} channels" if len(results) > 1 else ""
        line = f"{facts['calls']} calls of {source.samples} samples -> {options.output[0]}: {results.shape[1]} samples"
        console.emit(f"{line}{channels}{left}")
    return console.OK


def _fed(
    model: LoadedModel, samples: np.ndarray, source: Layout, target: Layout, progress: Progress, before: int
) -> np.ndarray:
    """Return the results [channels, count] for samples [channels, count] from the start of a sequence on. ``before`` is
    the number of earlier calls."""
    model.reset_state()
    blocks = np.split(samples.astype(BY_NAME[model.inputs[0].dtype].numpy), samples.shape[1] // source.samples, 1)
    found = []
    for number, block in enumerate(blocks):
        found.append(target.rows(np.asarray(model.run([np.ascontiguousarray(source.array(block))])[0])).copy())
        progress.tell(before + number + 1)
    return np.concatenate(found, 1)


def _layout(specs: Any, kind: str, channels: int, source: Layout | None = None) -> Layout:
    """Return the layout of a call's only input or output: of so many channels, or of one. Outputs have channels in the
    dimension where the input (``source``) of as many dimensions has them."""
    if len(specs) != 1:
        names = ", ".join(spec.name for spec in specs)
        raise console.UsageError(f"--stream needs a model with one {kind}, and this one has {names}")
    spec: TensorSpec = specs[0]
    if any(map(is_size, spec.shape)):
        raise console.UsageError(
            f"{kind} {spec.name} has named dimensions",
            remedy="export a stream with a fixed step: gc.stream(...).module",
        )
    shape = tuple(int(n) for n in spec.shape)
    longer = [i for i, n in enumerate(shape) if n > 1]
    fits = [i for i in longer if shape[i] == channels]
    if source is not None and source.axis is not None and len(shape) == len(source.shape):
        fits = [i for i in fits if i == source.axis]
    elif fits and (len(fits) > 1 or len(longer) == 1):
        raise console.UsageError(
            f"{kind} {spec.name} is {console.type_text(spec)}: {channels} may be channels or samples",
            remedy="export the stream with another step, or pass --per-channel for a stream of each channel",
        )
    if fits and len(longer) <= 2:
        return Layout(shape, channels, fits[0])
    if len(longer) <= 1:
        return Layout(shape)
    raise console.UsageError(
        f"{kind} {spec.name} is {console.type_text(spec)}, and the file has {channels} channels",
        remedy="pass a file with the channels of the model, or call the model from Python",
    )


def read(path: str) -> tuple[np.ndarray, int]:
    """Return the samples [channels, count] of a file, and their rate in Hz (48000 where the file has none)."""
    kind = Path(path).suffix
    if kind == ".wav":
        return _read_wave(path)
    if kind == ".npy":
        array = read_array(path)
        channels = 1 if max(array.shape, default=1) == array.size else array.shape[0]
        if array.dtype.kind not in "fiu" or (channels != 1 and array.ndim != 2):
            raise console.UsageError(
                f"{path} is {array.dtype}{list(array.shape)}", remedy="save real numbers [samples], [channels, samples]"
            )
        return array.reshape(channels, -1), 48000
    if kind == ".raw":
        data = Path(path).read_bytes()
        if len(data) % 4:
            raise ArtifactError(f"{path} has {len(data)} bytes, not a multiple of 4", remedy=f"pass {FORMS}")
        return np.frombuffer(data, "<f4").reshape(1, -1), 48000
    raise console.UsageError(f"--stream cannot read {path}", remedy=f"pass {FORMS}")


def _read_wave(path: str) -> tuple[np.ndarray, int]:
    try:
        with wave.open(path, "rb") as file:
            if file.getsampwidth() != _PCM_BYTES:
                raise console.UsageError(
                    f"{path} has samples of {8 * file.getsampwidth()} bits", remedy="convert it to 16 bits"
                )
            data = file.readframes(file.getnframes())
            channels = np.frombuffer(data, "<i2").reshape(-1, file.getnchannels()).T
            return channels.astype(np.float32) / _PCM_STEPS, file.getframerate()
    except (wave.Error, EOFError) as error:
        raise ArtifactError(f"{path} is not a .wav file of PCM samples: {error}") from error


def write(path: Path, samples: np.ndarray, rate: int) -> None:
    """Write samples [channels, count] to a file of the kind of its suffix; one channel of .npy as [count]. Raise
    UsageError for another kind, and for several channels in a .raw file."""
    if path.suffix not in (".wav", ".npy", ".raw"):
        raise console.UsageError(f"--stream cannot write {path}", remedy=f"pass {FORMS}")
    if path.suffix == ".raw" and len(samples) > 1:
        raise console.UsageError(f"a .raw file holds one channel, not {len(samples)}", remedy="write a .wav file")
    with replacing(path) as file:
        if path.suffix == ".npy":
            np.save(file, samples if len(samples) > 1 else samples[0])
        elif path.suffix == ".raw":
            file.write(samples.astype("<f4").tobytes())
        else:
            steps = np.clip(np.round(samples * _PCM_STEPS), -_PCM_STEPS, _PCM_STEPS - 1).astype("<i2")
            with wave.open(file, "wb") as sound:
                sound.setparams((len(samples), _PCM_BYTES, rate, 0, "NONE", ""))
                sound.writeframes(steps.T.tobytes())
