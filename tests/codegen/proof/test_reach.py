"""Reachable functions are listed; forbidden ones are refused with the calls that lead there."""

from __future__ import annotations

import pytest

from graphc.codegen.proof.reach import Reached, reach
from graphc.errors import RealtimeError
from tests.codegen.proof.functions import flow


def reached(undefined: tuple[str, ...] = (), **bodies: str) -> Reached:
    return reach({name: flow(body, name) for name, body in bodies.items()}, ["run"], frozenset(undefined))


def test_callees_come_before_their_callers_and_others_not_at_all():
    found = reached(run="callq a\ncallq b\nretq", a="jmp b", b="callq memset\nretq", other="callq malloc\nretq")
    assert found.functions == ("b", "a", "run")
    assert found.outside == ("memset",)
    assert found.paths["memset"] in (("run", "a", "b", "memset"), ("run", "b", "memset"))


def test_a_function_outside_that_is_not_known_is_named_with_the_way_to_it():
    with pytest.raises(RealtimeError, match="the code reaches @malloc") as error:
        reached(run="callq a\nretq", a="callq malloc@PLT\nretq")
    assert error.value.where == "@run -> @a -> @malloc"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("syscall\nretq", "a system call"),
        ("lock incq (%rdi)\nretq", "as locks use"),
        ("callq *%rax\nretq", "makes an indirect call"),
        ("callq run\nretq", "calls itself"),
        ("movq graphc_threads@GOTPCREL(%rip), %rax\nretq", "reads @graphc_threads"),
    ],
)
def test_what_is_not_allowed_is_refused(body: str, why: str):
    with pytest.raises(RealtimeError, match=why):
        reached(("graphc_threads",), run=body)


def test_functions_that_call_each_other_are_refused():
    with pytest.raises(RealtimeError, match="calls itself"):
        reached(run="callq a\nretq", a="callq b\nretq", b="callq a\nretq")
