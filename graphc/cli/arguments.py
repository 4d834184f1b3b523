"""Argument types and options that several commands share."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from graphc.base.device import device as device_of
from graphc.base.errors import ArgumentError, DeviceError
from graphc.base.lazy import deferred
from graphc.base.processor import STRICT
from graphc.calls.machine import target_for
from graphc.cli.console import UsageError
from graphc.runtime.threads import MAX_THREADS, set_num_threads

if TYPE_CHECKING:
    from graphc.codegen.machine.target import Target

# Import facts of machines only where a command asks for them.
target_named = deferred("graphc.codegen.machine.target:target_named")

Sized = TypeVar("Sized")


def count(text: str) -> int:
    """Parse a positive integer."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)


def natural(text: str) -> int:
    """Parse an integer of at least 0."""
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer of at least 0")
    return int(text)


def number(text: str) -> float:
    """Parse a finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number")
    return value


def numbers(text: str) -> tuple[float, ...]:
    """Parse finite numbers separated by commas: ``0.5,0.4``."""
    return tuple(map(number, text.split(",")))


def positive(text: str) -> float:
    """Parse a number above 0."""
    value = number(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not above 0")
    return value


def tolerance(text: str) -> float:
    """Parse a number of at least 0."""
    value = number(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is below 0")
    return value


def seconds(text: str) -> float:
    """Parse a time in seconds, above 0 and below 1e6."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time in seconds")
    return value


def threads(text: str) -> int:
    """Parse a number of threads, and set it for this process."""
    number = count(text)
    if number > MAX_THREADS:
        raise argparse.ArgumentTypeError(f"{text!r} is more than {MAX_THREADS} threads")
    set_num_threads(number)
    return number


def sizes(text: str) -> tuple[str, list[int]]:
    """Parse a named dimension and sizes of it: ``batch=1,8,32``."""
    name, _, numbers = text.rpartition("=")
    digits = [n.strip() for n in numbers.split(",")]
    if not name or not all(n.isdigit() for n in digits):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as batch=8")
    return name, [int(n) for n in digits]


def size(text: str) -> tuple[str, int]:
    """Parse a named dimension and its size: ``batch=8``."""
    name, numbers = sizes(text)
    if len(numbers) != 1:
        raise argparse.ArgumentTypeError(f"{text!r} has several sizes; give one")
    return name, numbers[0]


def by_name(pairs: Sequence[tuple[str, Sized]]) -> dict[str, Sized]:
    """Collect the ``--shape`` arguments by dimension. Raises UsageError if a dimension is given twice."""
    by_dimension = dict(pairs)
    if len(by_dimension) < len(pairs):
        twice = next(name for i, (name, _) in enumerate(pairs) if name in dict(pairs[:i]))
        raise UsageError(f"--shape {twice}=... is given twice")
    return by_dimension


def add_threads(parser: argparse.ArgumentParser) -> None:
    """Add ``--threads``."""
    parser.add_argument(
        "--threads",
        type=threads,
        metavar="N",
        help="largest number of threads of a call (default: GRAPHC_THREADS, or all cores)",
    )


def device(text: str) -> str:
    """Parse and normalize the name of a device."""
    try:
        return str(device_of(text))
    except ArgumentError as error:
        raise argparse.ArgumentTypeError(f"{error.what}; {error.remedy}") from None


def add_device(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Add ``--device``; its value is a device name, or None."""
    parser.add_argument(
        "--device", type=device, metavar="NAME", help=f"{purpose}: cuda, cuda:1, or cuda-emu, which needs no GPU"
    )


def target_of(options: argparse.Namespace) -> Target:
    """Return the target of ``--target`` or ``--device``, for commands that run nothing.

    Raises UsageError if both are given, DeviceError if the device cannot be used.
    """
    if options.device is None or options.device.startswith("cpu"):
        return target_named(options.target)
    if options.target != "host":
        raise UsageError("--target and --device both choose the machine to compile for", remedy="choose one of the two")
    try:
        return target_for(options.device)
    except DeviceError as error:
        error.remedy = f"{error.remedy}; without a GPU: --target {NEWEST}"
        raise


NEWEST = "sm_90"
"""GPU target that messages suggest."""


_NAMED = (
    *("host", "neon", "neon-dotprod", "neon-i8mm", "macos-neon", "sm_80", "sm_90", "sm_90a", "sm_100"),
    *("rv32imc", "rv32imfc", "rv64gc", "rv64gcv", "cortex-m4", "cortex-m7", "cortex-m55"),
    *("wasm", "wasm-relaxed", "wasm-scalar", "sse2", "avx2", "avx512"),
    *("windows-sse2", "windows-avx2", "windows-avx512", "macos-avx2"),
)
"""``host`` and the names of ``named_targets``, which need not be imported to parse arguments."""


def machines() -> tuple[str, ...]:
    """List the values of ``--target``: machines, and CPUs in strict order (``avx2:strict``)."""
    return (*_NAMED, *(name + STRICT for name in _NAMED if not name.startswith("sm_")))


def add_machine(parser: argparse.ArgumentParser) -> None:
    """Add ``--target`` (stored as ``machine``) for commands that run the code they compile."""
    parser.add_argument(
        "--target",
        dest="machine",
        choices=machines(),
        default="host",
        metavar="NAME",
        help=f"machine to compile for; this one must have its instructions (default: host): {', '.join(machines())}",
    )
