"""Functions of the C library that compiled code may call: each is free of allocation, locks and system calls."""

from __future__ import annotations

_BYTES = "only moves or compares bytes of its arguments"
_EXACT = "computes one number from its arguments with integer and floating-point instructions"
_REST = "subtracts multiples by integer instructions; in a domain error it writes the thread's own errno"
_SOFTWARE = "computes one number from its arguments with integer instructions, in place of a missing instruction"
_AEABI_BYTES = tuple(f"__aeabi_mem{verb}{end}" for verb in ("cpy", "move", "set", "clr") for end in ("", "4", "8"))
_AEABI = (
    *(f"__aeabi_{kind}{verb}" for kind in "df" for verb in ("add", "sub", "rsub", "mul", "div", "neg")),
    *(f"__aeabi_{kind}cmp{verb}" for kind in "df" for verb in ("eq", "lt", "le", "ge", "gt", "un")),
    *(f"__aeabi_{name}" for name in ("d2iz", "d2uiz", "d2lz", "d2ulz", "f2iz", "f2uiz", "f2lz", "f2ulz", "d2f", "f2d")),
    *(f"__aeabi_{name}" for name in ("i2d", "ui2d", "l2d", "ul2d", "i2f", "ui2f", "l2f", "ul2f", "f2h", "d2h", "h2f")),
    *(f"__aeabi_{name}" for name in ("lmul", "llsl", "llsr", "lasr", "lcmp", "ulcmp", "idiv", "uidiv")),
    *(f"__aeabi_{name}" for name in ("idivmod", "uidivmod", "ldivmod", "uldivmod")),
)
"""Arm: Run-time ABI for the Arm Architecture, sections 5.1 (arithmetic) and 5.3 (memory)."""

LEAVES: dict[str, str] = {
    **dict.fromkeys(("memcpy", "memmove", "memset", "memcmp", "bcmp"), _BYTES),
    **dict.fromkeys(
        (f"{name}{end}" for name in ("floor", "ceil", "trunc", "roundeven", "rint", "nearbyint") for end in ("", "f")),
        _EXACT,
    ),
    **dict.fromkeys(("fma", "fmaf", "sqrt", "sqrtf", "ldexp", "ldexpf"), _EXACT),
    **dict.fromkeys(("fmod", "fmodf"), _REST),
    **dict.fromkeys(_AEABI_BYTES, _BYTES),
    **dict.fromkeys(_AEABI, _SOFTWARE),
}
"""All functions known to be free of allocation, locks and system calls; reaching any other fails the proof. The first
call of each goes through the dynamic linker, which takes locks, unless it was bound when the library was loaded (``-z
now``, LD_BIND_NOW)."""
