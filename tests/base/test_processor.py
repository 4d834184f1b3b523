"""What of a processor may be used: tiles need a permission."""

from __future__ import annotations

import pytest

from graphc.base import processor
from graphc.codegen.machine.target import host_target
from graphc.runtime.loader import host


@pytest.mark.parametrize(
    ("allowed", "found"), [(True, ("amx-bf16", "amx-tile", "avx2")), (False, ("avx2",))], ids=["given", "refused"]
)
def test_tiles_need_a_permission(monkeypatch: pytest.MonkeyPatch, allowed: bool, found: tuple[str, ...]):
    monkeypatch.setattr(processor, "tiles_allowed", lambda: allowed)
    features = {"avx2": True, "amx-tile": True, "amx-bf16": True, "amx-int8": False}
    assert processor.usable(features) == found


def test_nothing_is_asked_for_where_there_are_no_tiles(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(processor, "tiles_allowed", lambda: pytest.fail("asked"))
    assert processor.usable({"sse2": True, "avx2": False}) == ("sse2",)


def test_other_systems_give_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(processor.sys, "platform", "darwin")
    assert not processor.tiles_allowed.__wrapped__()


def test_compiler_and_loader_see_the_same_features():
    assert set(host_target().features.replace("+", "").split(",")) - {""} == set(host().features)
