"""Functions in assembly, as far as proofs go through them, for tests."""

from __future__ import annotations

from graphc.codegen.machine.step import Reader
from graphc.codegen.machine.x86_64.steps import READER
from graphc.codegen.proof.assembly import AssemblyFunction, read_assembly
from graphc.codegen.proof.flow import Flow, flow_of
from graphc.codegen.proof.values import Values


def function(body: str, name: str = "k", machine: Reader = READER) -> AssemblyFunction:
    """One function of instructions and labels, a line each."""
    lines = [line.strip() for line in body.strip().splitlines()]
    written = [line if line.endswith(":") else "\t" + line.replace(" ", "\t", 1) for line in lines]
    (found,) = read_assembly("\n".join([f"\t.type\t{name},%function", f"{name}:", *written]), machine.comment)
    return found


def flow(body: str, name: str = "k", machine: Reader = READER) -> Flow:
    """Its control flow."""
    return flow_of(function(body, name, machine), machine)


def values(body: str, machine: Reader = READER) -> Values:
    """Find the values of registers and the stack in a body."""
    return Values(flow(body, machine=machine), machine).find()
