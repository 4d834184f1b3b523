"""Check whether a device can be used here, and name the missing part where it cannot."""

from __future__ import annotations

from graphc.runtime.devices import device_named


def reason_without(device: str) -> str:
    """Return why a device of this name cannot be used; empty where it can."""
    try:
        device_named(device).synchronize()
    except Exception as error:  # a half-installed library can raise anything
        return f"{type(error).__name__}: {error}"
    return ""
