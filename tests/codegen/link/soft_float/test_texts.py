"""All functions of arithmetic in integers: what each of them calls."""

from __future__ import annotations

import pytest

from graphc.codegen.link.builtins import builtin_text
from graphc.codegen.link.elf32 import read_contents
from graphc.codegen.link.soft_float.texts import TEXTS
from graphc.codegen.llvm.build import build_object
from graphc.codegen.machine.target import target_named


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_each_is_a_function_of_a_microcontroller_that_calls_only_others_of_them(name: str):
    target = target_named("rv32imc")
    text = builtin_text(name, target.triple)
    assert text is not None
    contents = read_contents(build_object(text, target))
    assert contents.defined == (name,) and {*contents.undefined} <= {*TEXTS}
