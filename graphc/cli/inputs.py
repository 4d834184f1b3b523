"""Inputs of a run: arrays, images, folders of both as batches, and what those are that are not given."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from graphc.base.sizes.size import is_size
from graphc.cli import arguments, images
from graphc.cli.arrays import Fill, fit, read_inputs, read_value
from graphc.cli.batches import Folder
from graphc.cli.console import UsageError
from graphc.cli.trainer.conversion import Scaling
from graphc.files import image_file
from graphc.files.manifest import TensorSpec

FILLS = ("zeros", "ones", "random")


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that say what inputs are."""
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="@file.npy, @file.npz:KEY, @picture.png, @folder (a batch of arrays or images, in sorted order), zeros, "
        "ones, random[:SEED] or JSON numbers; once per input",
    )
    add_fill(parser)
    for name, what in (("mean", "subtracted from"), ("std", "what divides")):
        parser.add_argument(
            f"--{name}",
            type=arguments.numbers,
            metavar="N[,N...]",
            help=f"{what} numbers of images, one for all channels or one each (default: {int(name == 'std')})",
        )
    parser.add_argument(
        "--scale",
        type=arguments.number,
        metavar="N",
        help="times what the numbers of images, 0 to 255, are taken first (default: 1/255 for floats, 1 for integers)",
    )


def add_fill(parser: argparse.ArgumentParser) -> None:
    """Adds ``--fill`` and ``--seed``."""
    parser.add_argument("--fill", choices=FILLS, help="what inputs are that are not given")
    parser.add_argument(
        "--seed", type=arguments.natural, metavar="N", help="of --fill random (default: 0; each next input has N + 1)"
    )


def fill_of(options: argparse.Namespace, default: str | None = None) -> Fill | None:
    """What ``--fill`` and ``--seed`` say. Raises UsageError for a seed of nothing random."""
    kind = options.fill or default
    if options.seed is not None and kind != "random":
        raise UsageError("--seed is that of random numbers", remedy="--fill random")
    return None if kind is None else Fill(kind, options.seed or 0)


def read(options: argparse.Namespace, specs: Sequence[TensorSpec], sizes: Mapping[str, int]) -> list[Any]:
    """One array per input, or a Folder; raises what ``read_inputs`` does."""
    scaled = [name for name in ("mean", "std", "scale") if getattr(options, name) is not None]
    paths = [Path(text.partition("@")[2]) for text in options.input if "@" in text]
    if scaled and not any(image_file.is_image(path) or path.is_dir() for path in paths):
        raise UsageError(f"--{scaled[0]} is for images, of which there are none", remedy="--input NAME=@picture.png")
    reader = partial(_read, scaling=scaling_of(options))
    return read_inputs(options.input, specs, sizes, fill_of(options), reader)


def scaling_of(options: argparse.Namespace) -> Scaling:
    """What ``--scale``, ``--mean`` and ``--std`` say."""
    return Scaling(options.scale, options.mean or (), options.std or ())


def _read(text: str, spec: TensorSpec, made: TensorSpec, scaling: Scaling) -> Any:
    path = Path(text[1:])
    if text.startswith("@") and path.is_dir():
        return Folder.open(path, spec, made)
    if text.startswith("@") and image_file.is_image(path):
        if not path.is_file():
            raise FileNotFoundError(2, "no such file", str(path))
        return fit(_image(path, spec, made, scaling), spec, text)
    return read_value(text, spec, made)


def _image(path: Path, spec: TensorSpec, made: TensorSpec, scaling: Scaling) -> np.ndarray:
    """One image: the whole input, or the only element of its batch."""
    shape = made.shape
    if len(shape) < 4:
        return images.read_image(path, images.layout_of(shape, spec.name), spec.dtype, scaling).reshape(shape)
    if shape[0] != 1 and not is_size(spec.shape[0]):
        raise UsageError(f"input {spec.name!r} takes {shape[0]} images", remedy=f"--input {spec.name}=@folder")
    return images.read_image(path, images.layout_of(shape[1:], spec.name), spec.dtype, scaling)[None]
