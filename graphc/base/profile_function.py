"""Profile functions of threads that install them at the same time."""

from __future__ import annotations

import sys
from typing import Any

_TRIES = 1000


def set_profile(function: Any) -> None:
    """Install the profile function of this thread; None removes it.

    CPython 3.11 marks the installation in a flag that all threads share, and raises RuntimeError in a thread that
    finds it set, which happens while an audit hook or a destructor of the first thread waits for the interpreter lock.
    The error clears the flag, so another try succeeds.
    """
    for _ in range(_TRIES):
        try:
            return sys.setprofile(function)
        except RuntimeError:
            continue
    sys.setprofile(function)
