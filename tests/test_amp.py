"""``graphc.amp``: the names of mixed precision."""

from __future__ import annotations

import graphc as gc


def test_the_names_are_those_of_the_package():
    assert gc.amp.autocast is gc.autocast and gc.amp.is_autocast_available("cpu")
    assert not gc.amp.is_autocast_available("mps") and gc.amp.GradScaler().is_enabled()
