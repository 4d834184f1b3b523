"""Detected instruction set: processor features usable in this process, limited by GRAPHC_MAX_ISA."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Mapping
from functools import cache

from graphc.base import config
from graphc.base.errors import ArgumentError
from graphc.base.records import dataclass

_SYSTEM_CALL = 158
"""Number of ``arch_prctl`` on x86-64."""
_REQUEST = 0x1023
"""ARCH_REQ_XCOMP_PERM: requests an extended state component for the threads of the process."""
_TILE_DATA = 18
"""XFEATURE_XTILEDATA, the component of AMX tiles: 8 KiB per thread, which a process must request."""
_TILES = "amx-"
"""Prefix of AMX feature names."""
_AUXILIARY = {"dotprod": (16, 20), "i8mm": (26, 13)}
"""AT_HWCAP or AT_HWCAP2 of Linux on aarch64, and the bit of a feature (HWCAP_ASIMDDP, HWCAP2_I8MM)."""
_SYSCTL = {"dotprod": b"hw.optional.arm.FEAT_DotProd", "i8mm": b"hw.optional.arm.FEAT_I8MM"}
"""Names of these features on macOS."""


@dataclass(frozen=True)
class IsaLevel:
    """One microarchitecture level of the x86-64 psABI, with LLVM's names."""

    cpu: str
    """LLVM's name of a processor with these features and no vector instructions beyond them."""
    features: tuple[str, ...]


STRICT = ":strict"
"""Suffix of a target name that keeps the order of sums: ``avx2:strict``."""
FLUSH = ":flush"
"""Suffix of a target name, behind any other, that takes denormal numbers for zeros: ``avx2:flush``."""
_V3 = ("avx2", "avx", "fma", "bmi", "bmi2", "f16c", "lzcnt", "movbe", "popcnt", "sse4.1", "sse4.2", "ssse3")
LEVELS = {
    "sse2": IsaLevel("x86-64", ("sse2",)),
    "avx2": IsaLevel("x86-64-v3", _V3),
    "avx512": IsaLevel("x86-64-v4", ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", *_V3)),
}
"""Levels by the names of graphc's targets."""
_EVERYWHERE = frozenset({"64bit", "cmov", "cx8", "fxsr", "mmx", "sse", "sse2", "x87"})
"""Features of every x86-64 processor."""


def detected(cpu: str, features: Mapping[str, bool]) -> tuple[str, tuple[str, ...]]:
    """Return the processor name and the sorted features to compile for, given what LLVM detects.

    GRAPHC_MAX_ISA hides features beyond a level, so that any machine can test code for an older one. Raises
    ArgumentError where that option is set and the processor is not x86-64.
    """
    names, limit = usable(features), config.read().max_isa
    if not limit:
        return cpu, names
    if platform.machine() not in ("x86_64", "AMD64"):
        raise ArgumentError(
            f"GRAPHC_MAX_ISA={limit} names a level of x86-64, this machine is {platform.machine()}",
            remedy="unset GRAPHC_MAX_ISA",
        )
    level = LEVELS[limit]
    shown = tuple(name for name in names if name in _EVERYWHERE or name in level.features)
    # NOTE: a processor's name implies features, so a level's name is right only if all its features are present.
    return (level.cpu if set(level.features) <= set(shown) else cpu), shown


def usable(features: Mapping[str, bool]) -> tuple[str, ...]:
    """Return the sorted names of the enabled features that this process may use.

    AMX features need a permission of Linux, which this function requests; all threads have it from then on. Products of
    bytes on aarch64 are added, which LLVM does not detect.
    """
    on = sorted({name for name, is_on in features.items() if is_on}.union(byte_features()))
    if any(name.startswith(_TILES) for name in on) and not tiles_allowed():
        return tuple(name for name in on if not name.startswith(_TILES))
    return tuple(on)


@cache
def tiles_allowed() -> bool:
    """Ask Linux, once, for the permission to use tiles."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return False
    return ctypes.CDLL(None).syscall(_SYSTEM_CALL, _REQUEST, _TILE_DATA) == 0


@cache
def byte_features() -> tuple[str, ...]:
    """Return the aarch64 features for products of bytes that the system reports: ``dotprod``, ``i8mm``."""
    if platform.machine() not in ("aarch64", "arm64"):
        return ()
    if sys.platform == "linux":
        read = ctypes.CDLL(None).getauxval
        read.argtypes, read.restype = [ctypes.c_ulong], ctypes.c_ulong
        return tuple(name for name, (entry, bit) in _AUXILIARY.items() if read(entry) >> bit & 1)
    if sys.platform == "darwin":
        return tuple(name for name, key in _SYSCTL.items() if _sysctl(key))
    return ()


def _sysctl(name: bytes) -> int:
    """Return an integer that macOS reports under a name; 0 where it has none."""
    value, size = ctypes.c_int(0), ctypes.c_size_t(ctypes.sizeof(ctypes.c_int))
    failed = ctypes.CDLL(None).sysctlbyname(name, ctypes.byref(value), ctypes.byref(size), None, 0)
    return 0 if failed else value.value
