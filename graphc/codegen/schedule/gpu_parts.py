"""The pass that cuts long sums of products with few results into stretches, and what puts two kernels for one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from graphc.codegen.schedule.base import Context, PassResult, Scheduled, count_changes
from graphc.codegen.schedule.gpu.contraction import split_terms
from graphc.ir.kernel.index import Index
from graphc.ir.kernel.map import Names
from graphc.ir.kernel.statements import Call, Kernel, Program, Storage


@dataclass(frozen=True)
class SplitTerms:
    """Needs: kernels of one nest each, without threads; the library's products are chosen. Does: gives sums of products
    that have few results and many terms blocks of threads for stretches of terms, whose sums a second kernel adds in
    order. Leaves: an equivalent program but for the order in which sums are rounded, which depends on sizes alone.

    ``@k: y[i] = sum(a[i, l] * b[l])`` -> ``@k_parts: t[p, i] = sum(a[i, l] * b[l], l in p); @k: y = sum(t[p])``."""

    name: str = "split-terms"

    def run(self, given: Scheduled, context: Context) -> PassResult:
        """Chooses by the estimated time of tiles."""
        program, reasons = given.program, []
        for kernel in given.program.kernels:
            if kernel.name in given.execution.products or not can_be_two(program, kernel, "_parts"):
                continue
            sums = unused("sums", {b.name for b in kernel.buffers})
            parts = split_terms(kernel, context.target, Names("s"), sums)
            if parts is not None:
                program = with_two_for_one(program, *parts)
                reasons.append(
                    f"{kernel.name}: few results of long sums of products; stretches of them are summed first"
                )
        changed = count_changes(given.program, program)
        return PassResult(replace(given, program=program), changed, tuple(reasons))


def unused(name: str, taken: Collection[str]) -> str:
    """A name like this one that is not taken."""
    return next(n for n in (name, *(f"{name}.{i}" for i in range(len(taken) + 1))) if n not in taken)


def can_be_two(program: Program, kernel: Kernel, suffix: str) -> bool:
    """Whether a kernel may become one with this suffix and another one: something calls it, for one size each."""
    calls = program.calls_of(kernel.name)
    free = all(k.name != kernel.name + suffix for k in program.kernels)
    return bool(calls) and free and not any(call.sizes for call in calls)


def with_two_for_one(program: Program, producer: Kernel, consumer: Kernel) -> Program:
    """The program in which two kernels stand for one, the second of the same name, with a temporary between them: of
    the last output of the first one, which the second reads under the same name."""
    old = program.kernel(consumer.name)
    sums = producer.arguments[-1]
    taken = {s.name for s in program.storages}
    storages, calls = list(program.storages), []
    for call in program.calls:
        if call.kernel != old.name:
            calls.append(call)
            continue
        name = unused(producer.name, taken)
        taken.add(name)
        storages.append(Storage(name, sums.dtype, (sums.size,), "temp"))
        calls += [_call(old, part, call, sums.name, name) for part in (producer, consumer)]
    kernels = [x for k in program.kernels for x in ((producer, consumer) if k is old else (k,))]
    return replace(program, storages=tuple(storages), kernels=tuple(kernels), calls=tuple(calls))


def _call(old: Kernel, part: Kernel, call: Call, sums: str, storage: str) -> Call:
    """The call of a part of a kernel."""
    at = {b.name: i for i, b in enumerate(old.arguments)}
    args = tuple(storage if b.name == sums else call.args[at[b.name]] for b in part.arguments)
    offsets = tuple(Index() if b.name == sums else call.offset(at[b.name]) for b in part.arguments)
    return replace(call, kernel=part.name, args=args, offsets=offsets if call.offsets else ())
