"""Checks that functions of libraries begin with, as LLVM text and as what they do."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import graphc
from graphc.c_library.guarded import GuardedWriter
from graphc.c_library.plan import CODES
from graphc.codegen.llvm.build import build_object
from graphc.codegen.llvm.module import Item, LlvmModule
from graphc.codegen.llvm.sizes import register_of
from graphc.codegen.machine.target import host_target
from graphc.runtime.loader import host, link_forever


def built(name: str, write: Callable[[GuardedWriter], None], *registers: str) -> Callable[..., int]:
    """A function of numbers that returns a code."""
    declarations: dict[str, Item] = {}
    w = GuardedWriter(declarations)
    write(w)
    function = w.function(name, [("i64", r) for r in registers])
    head, end = f'target triple = "{host_target().triple}"\n', "attributes #0 = { nounwind }\n"
    code = build_object(LlvmModule((head, *declarations.values(), function, end)), host_target())
    kind = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int64] * len(registers))
    return kind(link_forever(code, (name,), host())[name])


def test_numbers_outside_of_a_range_end_a_function():
    check = built("within", lambda w: w.within("%n", 2, 9, "ERROR_SIZE"), "%n")
    assert [check(n) for n in (1, 2, 9, 10, -1)] == [5, 0, 0, 5, 5]
    assert CODES["ERROR_SIZE"] == 5


def test_sizes_that_would_overflow_end_a_function():
    batch: Any = graphc.Dim("batch")
    size = batch * batch * batch * 1024 - batch
    (dimension,) = {d for monomial, _ in size.terms for d, _ in monomial}
    check = built("safe", lambda w: w.safe(size), register_of(dimension))
    assert [check(n) for n in (1, 1000, 1 << 17, 1 << 18, (1 << 31) - 1)] == [0, 0, 0, 5, 5]


def test_sizes_that_cannot_overflow_are_not_looked_at():
    batch: Any = graphc.Dim("batch", max=64)
    w = GuardedWriter({})
    w.safe(batch * 4096)
    assert w.body == "entry:"


def test_memory_is_taken_when_a_function_begins():
    w = GuardedWriter({})
    w.require(w.equal("i64", "%n", "1"), "ERROR_SIZE")
    room = w.room("i64", 8)
    assert w.body.splitlines()[1] == f"  {room} = alloca i64, align 8"


def test_pointers_of_one_alignment_are_looked_at_together():
    w = GuardedWriter({})
    w.require_pointers([("%a", 4), ("%b", 4), ("%c", 1)])
    assert w.body.count("icmp ne ptr") == 3 and w.body.count("and i64") == 1
