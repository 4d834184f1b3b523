"""Programs as one WebAssembly module."""

from __future__ import annotations

from graphc.codegen.machine.target import target_named
from graphc.compiler.stages import Stages
from tests.compiler.graphs import lookup, mlp
from tools.codegen.wasm_ops import module_of, object_of


def test_programs_with_equal_names_share_a_module():
    target = target_named("wasm")
    names = ["case_0", "case_1"]
    objects = [
        object_of(Stages(graph, target=target).module, name, target)
        for graph, name in zip((mlp(), lookup()), names, strict=True)
    ]
    module = module_of(objects, names, target)
    assert all(name.encode() in module for name in names) and b"graphc_entry" not in module
