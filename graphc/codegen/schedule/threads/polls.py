"""Polls: calls before which a long program checks for Ctrl-C, all before its first write to the caller's memory."""

from __future__ import annotations

from graphc.base.sizes.size import hint
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.estimate.cost import StatementCounts, kernel_ns
from graphc.codegen.schedule.threads.plan import ThreadPlan
from graphc.files.manifest import INTERRUPTIBLE_NS
from graphc.ir.kernel.repeat import blocks, loop_spans, owners
from graphc.ir.kernel.statements import Call, Program


def find_polls(program: Program, threads: ThreadPlan, target: Target) -> frozenset[int]:
    """Return the numbers of the calls before which a scheduled program polls.

    None of them comes after a write to a parameter or state. Threads poll only at barriers, and in shared loops that a
    flag ends.
    """
    kernels = {k.name: k for k in program.kernels}
    times = {k.name: kernel_ns(k, StatementCounts().body(k.body), target.roofline) for k in program.kernels}
    if sum(times[call.kernel] * hint(call.runs) for call in program.calls) < INTERRUPTIBLE_NS:
        return frozenset()
    owner, poll_ns = owners(program), target.costs.threads.poll_ns

    def writes(call: Call) -> bool:
        arguments = zip(kernels[call.kernel].arguments, call.args, strict=True)
        return any(b.role != "in" and owner[name].cls not in ("temp", "output") for b, name in arguments)

    polls: set[int] = set()
    shared = threads.shared_loops(program.calls)
    endless = {
        first
        for axis, (first, _) in loop_spans(program.calls).items()
        if axis.flag and axis.extent > 1 and axis in shared
    }
    number, since = 0, 0
    for axis, unit in blocks(program.calls):
        if since >= poll_ns and (not threads.chunked or (axis is None and number in threads.barriers)):
            polls.add(number)
            since = 0
        if any(map(writes, unit)):
            break
        spent = sum(times[call.kernel] * hint(call.runs) for call in unit)
        if axis is not None and spent >= poll_ns and not threads.chunked:
            polls.add(number)
        polls |= endless.intersection(range(number, number + len(unit)))
        since += spent
        number += len(unit)
    return frozenset(polls)
