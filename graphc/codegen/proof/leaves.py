"""Functions of the C library that compiled code may call, and why each takes no memory, lock or system call."""

from __future__ import annotations

_BYTES = "moves or compares the bytes that it is given, and nothing else"
_EXACT = "computes one number of its arguments with integer and floating-point instructions"
_REST = "subtracts multiples by integer instructions; in a domain error it writes errno, which is the thread's own"

LEAVES: dict[str, str] = {
    **dict.fromkeys(("memcpy", "memmove", "memset", "memcmp", "bcmp"), _BYTES),
    **dict.fromkeys(
        (f"{name}{end}" for name in ("floor", "ceil", "trunc", "roundeven", "rint", "nearbyint") for end in ("", "f")),
        _EXACT,
    ),
    **dict.fromkeys(("fma", "fmaf", "sqrt", "sqrtf", "ldexp", "ldexpf"), _EXACT),
    **dict.fromkeys(("fmod", "fmodf"), _REST),
}
"""All that is known to be free of them; whatever else is reached fails the proof. The first call of each goes through
the dynamic linker, which takes locks, unless it was bound when the library was loaded (``-z now``, LD_BIND_NOW)."""
