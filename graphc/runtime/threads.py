"""Number of threads of a call of a compiled program."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from graphc.base import config
from graphc.base.errors import ArgumentError

MAX_THREADS = 256
SYMBOL = "graphc_threads"
"""Symbol of the record in compiled programs."""
_CGROUP = Path("/sys/fs/cgroup")
_count = 0
_is_chosen = False
"""Whether ``set_num_threads`` has been called."""
followed = 0
"""Argument of the last ``follow``; 0 after any other change of the number."""


class _Record(ctypes.Structure):
    """Thread settings that compiled programs read at each call."""

    _fields_ = (("run", ctypes.c_size_t), ("count", ctypes.c_int64), ("spin", ctypes.c_int64))


_record = _Record(0, 1, 0)
ADDRESS = ctypes.addressof(_record)
"""Address of the record. Its fields: the address of the function that runs a program in chunks, the number of threads
of a call (1 until there is such a function), and the nanoseconds that threads spin."""


def get_num_threads() -> int:
    """Return the number of threads of a call: from ``set_num_threads``, else GRAPHC_THREADS, else the
    available cores."""
    global _count
    if not _count:
        _count = config.read().threads or available_cores()
    return _count


def set_num_threads(count: int) -> None:
    """Set the number of threads of a call from now on; 1 turns threads off. Compiled programs work with any
    number.

    Raises ArgumentError for anything but an int from 1 to 256.
    """
    global _is_chosen
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MAX_THREADS:
        raise ArgumentError(f"{count!r} is not a number of threads", remedy=f"pass an int from 1 to {MAX_THREADS}")
    _is_chosen = True
    _use(count)


def get_num_interop_threads() -> int:
    """Return 1: operations run one after the other."""
    return 1


def set_num_interop_threads(count: int) -> None:
    """Check ``count`` and ignore it: operations always run one after the other. Raises ArgumentError unless it is an
    int of at least 1."""
    if not isinstance(count, int) or count < 1:
        raise ArgumentError(f"{count!r} is not a number of threads", remedy="pass an int of at least 1")


def follow(count: int) -> None:
    """Use as many threads as the library for which graphc computes, unless ``set_num_threads`` or GRAPHC_THREADS sets a
    number."""
    global followed
    if not _is_chosen and not config.read().threads:
        _use(min(max(count, 1), MAX_THREADS))
    followed = count


def words() -> dict[int, int]:
    """Return the address and current value of the word in memory that holds the number of threads."""
    return {ADDRESS + _Record.count.offset: _record.count}


def _use(count: int) -> None:
    global _count, followed
    _count, followed = count, 0
    if connected():
        _record.count = count


def connect(run: int) -> None:
    """Let calls use threads from now on, through the function at address ``run`` (``graphc_pool_run``)."""
    _record.run, _record.spin = run, config.read().spin_us * 1000
    _record.count = get_num_threads()


def connected() -> bool:
    """Return whether ``connect`` has been called."""
    return _record.run != 0


def available_cores() -> int:
    """Return the number of cores that this process may use: its affinity, limited by the CPU quota of its control
    groups."""
    try:
        cores = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        cores = os.cpu_count() or 1
    quota = cpu_quota()
    return max(1, min(cores, MAX_THREADS, int(quota) if quota else cores))


def cpu_quota(root: Path = _CGROUP, own: Path = Path("/proc/self/cgroup")) -> float:
    """Return the smallest CPU quota among the control groups of this process, in cores; 0 if there is no quota."""
    groups = [root]
    try:
        path = next(line[3:] for line in own.read_text().splitlines() if line.startswith("0::"))
        groups += [root / Path(path.lstrip("/"), *[".."] * up) for up in range(len(Path(path).parts) - 1)]
    except (OSError, StopIteration):
        pass
    quotas = [_quota(_read(group / "cpu.max").split()) for group in groups]
    quotas.append(_quota([_read(root / "cpu" / "cpu.cfs_quota_us"), _read(root / "cpu" / "cpu.cfs_period_us")]))
    return min((quota for quota in quotas if quota > 0), default=0.0)


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _quota(fields: list[str]) -> float:
    try:
        return int(fields[0]) / int(fields[1])
    except (ValueError, IndexError, ZeroDivisionError):
        return 0.0
