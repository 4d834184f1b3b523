"""Loop distribution: split a kernel whose loop nests write one buffer one after the other into a kernel per nest."""

from __future__ import annotations

from dataclasses import replace

from graphc.ir.kernel.statements import Buffer, Kernel, Load, Loop, Program, Stmt, Store, walk


def distribute_loops(program: Program) -> Program:
    """Split kernels of several nests that depend on each other.

    Needs: a lowered program. Does: splits kernels such as "fill with zeros, then scatter". Leaves: kernels in which
    only one top-level nest uses a written buffer, so that threads may share its loops without waiting.
    """
    kernels: list[Kernel] = []
    pieces: dict[str, list[tuple[str, tuple[int, ...]]]] = {}
    for kernel in program.kernels:
        nests = _nests(kernel) if _has_several_nests(kernel) else [kernel]
        kernels += nests
        position = {b.name: i for i, b in enumerate(kernel.arguments)}
        pieces[kernel.name] = [(p.name, tuple(position[b.name] for b in p.arguments)) for p in nests]
    if len(kernels) == len(program.kernels):
        return program
    calls = tuple(
        replace(
            call,
            kernel=name,
            args=tuple(call.args[p] for p in positions),
            offsets=tuple(call.offsets[p] for p in positions) if call.offsets else (),
        )
        for call in program.calls
        for name, positions in pieces[call.kernel]
    )
    return replace(program, kernels=tuple(kernels), calls=calls)


def _has_several_nests(kernel: Kernel) -> bool:
    nests = kernel.body
    if len(nests) < 2 or not all(isinstance(s, Loop) for s in nests):
        return False
    if len(kernel.arguments) != len(kernel.buffers):
        return False
    uses = [_uses(nest) for nest in nests]
    return any(a is not b and a[0] & (b[0] | b[1]) for a in uses for b in uses)


def _uses(nest: Stmt) -> tuple[set[str], set[str]]:
    """Return the buffers to which a nest stores, and those from which it loads."""
    statements = [s for s, _ in walk((nest,))]
    return {s.buffer for s in statements if isinstance(s, Store)}, {s.buffer for s in statements if isinstance(s, Load)}


def _nests(kernel: Kernel) -> list[Kernel]:
    kernels = []
    written = {b.name for b in kernel.buffers if b.role == "inout"}
    for number, nest in enumerate(kernel.body):
        stored, loaded = _uses(nest)
        buffers = tuple(
            replace(b, role=_role(b, b.name in stored, b.name in loaded or b.name in written))
            for b in kernel.buffers
            if b.name in stored or b.name in loaded
        )
        kernels.append(replace(kernel, name=f"{kernel.name}_{number}", buffers=buffers, body=(nest,)))
        written |= stored
    return kernels


def _role(buffer: Buffer, stored: bool, holds: bool) -> str:
    """Return the role of a buffer in a nest: ``inout`` if the nest stores to it and it holds values before."""
    return ("inout" if holds else "out") if stored else "in"
