"""What of a processor's instruction set the operating system lets this process use."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping
from functools import cache

_SYSTEM_CALL = 158
"""Number of ``arch_prctl`` on x86-64."""
_REQUEST = 0x1023
"""ARCH_REQ_XCOMP_PERM: asks for a part of the state that threads are switched with."""
_TILE_DATA = 18
"""The part that holds tiles, 8 KiB which a process has to ask for."""
_TILES = "amx-"
"""How the names of the features begin that work on tiles."""


def usable(features: Mapping[str, bool]) -> tuple[str, ...]:
    """Names of the features that are on and that this process may use, sorted: those that work on tiles where Linux
    gives the permission, which all threads then have, present ones and later ones."""
    on = sorted(name for name, is_on in features.items() if is_on)
    if any(name.startswith(_TILES) for name in on) and not tiles_allowed():
        return tuple(name for name in on if not name.startswith(_TILES))
    return tuple(on)


@cache
def tiles_allowed() -> bool:
    """Asks Linux, once, for the permission to use tiles."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return False
    return ctypes.CDLL(None).syscall(_SYSTEM_CALL, _REQUEST, _TILE_DATA) == 0
