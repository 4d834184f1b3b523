"""Resident memory of this process, now and at its peak, in bytes."""

from __future__ import annotations

import os
from pathlib import Path

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def resident() -> int:
    """Return the resident memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def begin_peak() -> None:
    """Count the peak from here on."""
    _RESET.write_text("5")


def peak() -> int:
    """Return the largest resident memory since ``begin_peak``."""
    (line,) = (line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])
