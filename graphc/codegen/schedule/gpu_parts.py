"""Pass ``split-terms``: cut long sums of products with few results into segments; replace a kernel by two."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from graphc.base.records import dataclass
from graphc.codegen.schedule.base import Context, PassResult, Scheduled, count_changes
from graphc.codegen.schedule.gpu.contraction import split_terms
from graphc.ir.kernel.index import Index
from graphc.ir.kernel.map import Names
from graphc.ir.kernel.statements import Call, Kernel, Program, Storage


@dataclass(frozen=True)
class SplitTerms:
    """Split the terms of long sums of products (split-K).

    Needs: kernels of one nest each, without threads; the library's products are chosen. Does: splits sums of products
    with few results and many terms: blocks of threads sum segments of terms, a second kernel adds their sums in order.
    Leaves: an equivalent program, except for the order of rounding, which depends on sizes alone.

    ``@k: y[i] = sum(a[i, l] * b[l])`` -> ``@k_parts: t[p, i] = sum(a[i, l] * b[l], l in p); @k: y = sum(t[p])``.
    """

    name: str = "split-terms"

    def run(self, scheduled: Scheduled, context: Context) -> PassResult:
        """Choose by the estimated time of tiles."""
        program, reasons = scheduled.program, []
        for kernel in scheduled.program.kernels:
            if kernel.name in scheduled.execution.products or not can_split(program, kernel, "_parts"):
                continue
            sums = unused("sums", {b.name for b in kernel.buffers})
            pair = split_terms(kernel, context.target, Names("s"), sums)
            if pair is not None:
                program = replace_by_two(program, *pair)
                reasons.append(
                    f"{kernel.name}: few results of long sums of products; segments of them are summed first"
                )
        changed = count_changes(scheduled.program, program)
        return PassResult(replace(scheduled, program=program), changed, tuple(reasons))


def unused(name: str, used: Collection[str]) -> str:
    """Return ``name``, or ``name`` with a number, whichever is not in ``used`` yet."""
    return next(n for n in (name, *(f"{name}.{i}" for i in range(len(used) + 1))) if n not in used)


def can_split(program: Program, kernel: Kernel, suffix: str) -> bool:
    """Check whether a kernel may be split into one with this suffix and another one: it is called, and no call gives
    it sizes."""
    calls = program.calls_of(kernel.name)
    free = all(k.name != kernel.name + suffix for k in program.kernels)
    return bool(calls) and free and not any(call.sizes for call in calls)


def replace_by_two(program: Program, producer: Kernel, consumer: Kernel) -> Program:
    """Return the program with a kernel replaced by two, of which the second keeps the name.

    A temporary between them holds the last output of the first kernel, which the second reads under the same name.
    """
    old = program.kernel(consumer.name)
    sums = producer.arguments[-1]
    used = {s.name for s in program.storages}
    storages, calls = list(program.storages), []
    for call in program.calls:
        if call.kernel != old.name:
            calls.append(call)
            continue
        name = unused(producer.name, used)
        used.add(name)
        storages.append(Storage(name, sums.dtype, (sums.size,), "temp"))
        calls += [_call(old, kernel, call, sums.name, name) for kernel in (producer, consumer)]
    kernels = [x for k in program.kernels for x in ((producer, consumer) if k is old else (k,))]
    return replace(program, storages=tuple(storages), kernels=tuple(kernels), calls=tuple(calls))


def _call(old: Kernel, new: Kernel, call: Call, sums: str, storage: str) -> Call:
    """Return the call of ``new``, one of the two kernels that replace ``old``."""
    position = {b.name: i for i, b in enumerate(old.arguments)}
    args = tuple(storage if b.name == sums else call.args[position[b.name]] for b in new.arguments)
    offsets = tuple(Index() if b.name == sums else call.offset(position[b.name]) for b in new.arguments)
    return replace(call, kernel=new.name, args=args, offsets=offsets if call.offsets else ())
