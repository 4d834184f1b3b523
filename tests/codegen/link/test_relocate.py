"""Relocation of sections: entries of the offset table, stubs, distances that do not fit."""

from __future__ import annotations

import pytest

from graphc.codegen.link.relocate import Relocator
from graphc.codegen.link.resolve import resolve
from graphc.errors import CompileError
from tests.codegen.link.objects import TARGETS, TEXT, built


@pytest.mark.parametrize("name", TARGETS)
def test_functions_of_others_have_a_stub_and_data_of_others_an_entry_only(name: str):
    relocator = Relocator(resolve([built(name)]))
    assert {"memset", "fmod"} <= set(relocator.stubs) and "table" not in relocator.stubs
    assert {"memset", "fmod", "table"} <= {key for key in relocator.table if isinstance(key, str)}
    assert len(relocator.all_stubs()) == relocator.plt.nbytes == len(relocator.stubs) * relocator.linkage.stub_bytes
    assert TEXT.count("ptr @add, ptr @look, ptr @half") == 1 and len(relocator.words) == 3


def test_a_distance_that_does_not_fit_is_a_compile_error():
    program = resolve([built("sse2")])
    relocator = Relocator(program)
    for number, section in enumerate(program.sections):
        section.address = number << 33
    with pytest.raises(CompileError, match="too far away"):
        for section in program.sections:
            relocator.applied(section)
