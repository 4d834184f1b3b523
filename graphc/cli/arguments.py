"""Types of command line arguments that several commands take."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import TypeVar

from graphc.base.device import device as device_of
from graphc.base.errors import ArgumentError, DeviceError
from graphc.calls.machine import target_for
from graphc.cli.console import UsageError
from graphc.codegen.machine.target import STRICT, Target, named_targets, target_named
from graphc.runtime.threads import MAX_THREADS, set_num_threads

Found = TypeVar("Found")


def count(text: str) -> int:
    """A positive whole number."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return int(text)


def natural(text: str) -> int:
    """A whole number from 0 on."""
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number")
    return int(text)


def number(text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is no number")
    return value


def numbers(text: str) -> tuple[float, ...]:
    """``0.5,0.4``: finite numbers."""
    return tuple(number(part) for part in text.split(","))


def positive(text: str) -> float:
    """A number above 0."""
    value = number(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not above 0")
    return value


def tolerance(text: str) -> float:
    """A number from 0 on."""
    value = number(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is below 0")
    return value


def seconds(text: str) -> float:
    """A positive time in seconds."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no time in seconds")
    return value


def threads(text: str) -> int:
    """A number of threads, which holds for this process from now on."""
    number = count(text)
    if number > MAX_THREADS:
        raise argparse.ArgumentTypeError(f"{text!r} is more than {MAX_THREADS} threads")
    set_num_threads(number)
    return number


def sizes(text: str) -> tuple[str, list[int]]:
    """``batch=1,8,32``: a named dimension and sizes of it."""
    name, _, numbers = text.partition("=")
    found = [n.strip() for n in numbers.split(",")]
    if not name.isidentifier() or not all(n.isdigit() for n in found):
        raise argparse.ArgumentTypeError(f"{text!r} is no size, such as batch=8")
    return name, [int(n) for n in found]


def size(text: str) -> tuple[str, int]:
    """``batch=8``."""
    name, found = sizes(text)
    if len(found) != 1:
        raise argparse.ArgumentTypeError(f"{text!r} are several sizes")
    return name, found[0]


def by_name(given: Sequence[tuple[str, Found]]) -> dict[str, Found]:
    """What was given by ``--shape``, by name of the dimension; raises UsageError where one is given twice."""
    found = dict(given)
    if len(found) < len(given):
        twice = next(name for i, (name, _) in enumerate(given) if name in dict(given[:i]))
        raise UsageError(f"--shape {twice}=... is given twice")
    return found


def add_threads(parser: argparse.ArgumentParser) -> None:
    """Adds ``--threads``."""
    parser.add_argument(
        "--threads", type=threads, metavar="N", help="most threads of a call (default: GRAPHC_THREADS, or all cores)"
    )


def device(text: str) -> str:
    """The name of a device."""
    try:
        return str(device_of(text))
    except ArgumentError as error:
        raise argparse.ArgumentTypeError(f"{error.what}; {error.remedy}") from None


def add_device(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Adds ``--device``: the name of one, None where it is not given."""
    parser.add_argument(
        "--device", type=device, metavar="NAME", help=f"{purpose}: cuda, cuda:1, or cuda-emu, which needs no GPU"
    )


def target_of(options: argparse.Namespace) -> Target:
    """What ``--target`` or ``--device`` stand for, of commands that run nothing. Raises UsageError where both are
    given, DeviceError where the device cannot be used."""
    if options.device is None or options.device.startswith("cpu"):
        return target_named(options.target)
    if options.target != "host":
        raise UsageError("--target and --device both say what code is made for", remedy="one of the two")
    try:
        return target_for(options.device)
    except DeviceError as error:
        error.remedy = f"{error.remedy}; without a GPU: --target {NEWEST}"
        raise


NEWEST = "sm_90"
"""What messages name where a target for GPUs would do."""


def machines() -> tuple[str, ...]:
    """What ``--target`` names: machines, and CPUs in strict order (``avx2:strict``)."""
    named = named_targets()
    return ("host", *named, "host" + STRICT, *(name + STRICT for name in named if named[name].gpu is None))


def add_machine(parser: argparse.ArgumentParser) -> None:
    """Adds ``--target`` of commands that run what they compile, as ``machine``."""
    parser.add_argument(
        "--target",
        dest="machine",
        choices=machines(),
        default="host",
        metavar="NAME",
        help=f"compile for a machine of which this one has the instructions (default: host): {', '.join(machines())}",
    )
