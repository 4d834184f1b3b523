"""Choices that a system has, or refuses by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graphc.base.errors import ArgumentError
from graphc.c_library import bare, linux, wasm, windows
from graphc.c_library.build import build_library
from graphc.c_library.systems import SYSTEMS
from graphc.codegen.machine.target import target_named


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"weights": "elsewhere"}, "must be 'inside' or 'beside'"),
        ({"threads": True, "realtime": True}, "threads wait for each other"),
    ],
)
def test_choices_that_no_system_has_are_refused(choices: dict[str, Any], message: str):
    options = {"weights": "inside", "threads": False, "realtime": False, **choices}
    with pytest.raises(ArgumentError, match=message):
        linux.SYSTEM.check(target_named("avx2"), **options)


def test_a_system_refuses_what_it_says_that_it_has_not():
    for module, name in ((wasm, "wasm"), (bare, "cortex-m4"), (windows, "windows-avx2"), (linux, "avx2")):
        system, target = module.SYSTEM, target_named(name)
        refusals = {
            ("beside", False, False): system.no_beside,
            ("inside", True, False): "" if target.has_pool else "there is no thread pool",
            ("inside", False, True): system.no_proof,
        }
        for (weights, threads, realtime), reason in refusals.items():
            if reason:
                with pytest.raises(ArgumentError, match=reason[:20]):
                    system.check(target, weights, threads, realtime)
            else:
                system.check(target, weights, threads, realtime)


def test_kinds_that_need_their_weights_elsewhere_are_refused_before_the_model_is_traced(tmp_path: Path):
    for system in SYSTEMS:
        for kinds, weights in ((system.variants, "inside"), (system.kinds_inside, "beside")):
            for kind in kinds:
                options: Any = {"path": tmp_path / "net.x", "emit": (kind,), "target": system.example}
                with pytest.raises(ArgumentError, match=f"a file of kind '{kind}'"):
                    build_library(lambda: pytest.fail("it is traced"), weights=weights, **options)
