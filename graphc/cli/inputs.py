"""Inputs of a run: arrays, images, folders of both as batches, and generated values for the others."""

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
    """Add the options that give the inputs and say how images are scaled."""
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="@file.npy, @file.npz:KEY, @picture.png, @folder (a batch of arrays or images, in sorted order), - (a "
        ".npy file on standard input), zeros, ones, random[:SEED] or JSON numbers; once per input",
    )
    add_fill(parser)
    for name, verb in (("mean", "subtract N from"), ("std", "divide by N, after --mean,")):
        parser.add_argument(
            f"--{name}",
            type=arguments.numbers,
            metavar="N[,N...]",
            help=f"{verb} the scaled pixel values; one number for all channels or one for each "
            f"(default: {int(name == 'std')})",
        )
    parser.add_argument(
        "--scale",
        type=arguments.number,
        metavar="N",
        help="multiply pixel values (0 to 255) by N before --mean and --std (default: 1/255 for floats, 1 for "
        "integers)",
    )


def add_fill(parser: argparse.ArgumentParser) -> None:
    """Add ``--fill`` and ``--seed``."""
    parser.add_argument("--fill", choices=FILLS, help="generate every input that --input does not give")
    parser.add_argument(
        "--seed",
        type=arguments.natural,
        metavar="N",
        help="random seed of --fill random (default: 0); each further input uses the next number",
    )


def fill_of(options: argparse.Namespace, default: str | None = None) -> Fill | None:
    """Read ``--fill`` and ``--seed``. Raises UsageError for a seed without random inputs."""
    kind = options.fill or default
    if options.seed is not None and kind != "random":
        raise UsageError("--seed applies only to random inputs", remedy="pass --fill random")
    return None if kind is None else Fill(kind, options.seed or 0)


def read(options: argparse.Namespace, specs: Sequence[TensorSpec], sizes: Mapping[str, int]) -> list[Any]:
    """Return one array or Folder for each input. Raises the same errors as ``read_inputs``."""
    scaled = [name for name in ("mean", "std", "scale") if getattr(options, name) is not None]
    paths = [Path(text.partition("@")[2]) for text in options.input if "@" in text]
    if scaled and not any(image_file.is_image(path) or path.is_dir() for path in paths):
        raise UsageError(
            f"--{scaled[0]} applies only to images, and no input is one", remedy="pass --input NAME=@picture.png"
        )
    reader = partial(_read, scaling=scaling_of(options))
    return read_inputs(options.input, specs, sizes, fill_of(options), reader)


def scaling_of(options: argparse.Namespace) -> Scaling:
    """Read ``--scale``, ``--mean`` and ``--std``."""
    return Scaling(options.scale, options.mean or (), options.std or ())


def _read(text: str, spec: TensorSpec, concrete: TensorSpec, scaling: Scaling) -> Any:
    path = Path(text[1:])
    if text.startswith("@") and path.is_dir():
        return Folder.open(path, spec, concrete)
    if text.startswith("@") and image_file.is_image(path):
        if not path.is_file():
            raise FileNotFoundError(2, "no such file", str(path))
        return fit(_image(path, spec, concrete, scaling), spec, text)
    return read_value(text, spec, concrete)


def _image(path: Path, spec: TensorSpec, concrete: TensorSpec, scaling: Scaling) -> np.ndarray:
    """Read one image as the whole input, or as the only element of its batch."""
    shape = concrete.shape
    if len(shape) < 4:
        return images.read_image(path, images.layout_of(shape, spec.name), spec.dtype, scaling).reshape(shape)
    if shape[0] != 1 and not is_size(spec.shape[0]):
        raise UsageError(f"input {spec.name!r} takes {shape[0]} images", remedy=f"pass --input {spec.name}=@folder")
    return images.read_image(path, images.layout_of(shape[1:], spec.name), spec.dtype, scaling)[None]
