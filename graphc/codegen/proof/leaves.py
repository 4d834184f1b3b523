"""Functions of the C library that compiled code may call: each is free of allocation, locks and system calls."""

from __future__ import annotations

_BYTES = "only moves or compares bytes of its arguments"
_EXACT = "computes one number from its arguments with integer and floating-point instructions"
_REST = "subtracts multiples by integer instructions; in a domain error it writes the thread's own errno"

LEAVES: dict[str, str] = {
    **dict.fromkeys(("memcpy", "memmove", "memset", "memcmp", "bcmp"), _BYTES),
    **dict.fromkeys(
        (f"{name}{end}" for name in ("floor", "ceil", "trunc", "roundeven", "rint", "nearbyint") for end in ("", "f")),
        _EXACT,
    ),
    **dict.fromkeys(("fma", "fmaf", "sqrt", "sqrtf", "ldexp", "ldexpf"), _EXACT),
    **dict.fromkeys(("fmod", "fmodf"), _REST),
}
"""All functions known to be free of allocation, locks and system calls; reaching any other fails the proof. The first
call of each goes through the dynamic linker, which takes locks, unless it was bound when the library was loaded (``-z
now``, LD_BIND_NOW)."""
