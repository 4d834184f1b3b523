"""Double buffering: a loop that copies its new state over the old one runs two steps at a time between two buffers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from graphc.base.sizes.size import is_size
from graphc.ir.kernel.index import Axis, IndexLike, as_index
from graphc.ir.kernel.map import substitute_axes
from graphc.ir.kernel.repeat import loop_spans, owners
from graphc.ir.kernel.statements import Call, Kernel, Load, Loop, Program, Store, walk


def double_buffer(program: Program) -> Program:
    """Remove copies of states in loops around calls.

    Needs: a scheduled program without memory plan. Does: where a step writes a temporary ``t`` and copies it to the
    state ``s``, runs a step that reads ``s`` and writes ``t``, then one with the two exchanged. Of an odd number, the
    first step keeps its copies and runs before the loop. Leaves: an equivalent program; the last state is in ``s``.
    """
    spans = loop_spans(program.calls)
    copying = {kernel.name for kernel in program.kernels if is_copy(kernel)} if spans else set()
    calls: list[Call] = []
    done = 0
    for axis, (start, stop) in sorted(spans.items(), key=lambda item: item[1]):
        span = program.calls[start : stop + 1]
        if any(call.loops != span[0].loops for call in span) or span[0].loops[-1] != axis:
            continue
        copies = _copies(program, start, stop, copying)
        if copies and not is_size(axis.extent) and axis.extent > 1 and not axis.flag:
            local = {number - start: pair for number, pair in copies.items()}
            calls += [*program.calls[done:start], *_two_at_a_time(span, axis, local)]
            done = stop + 1
    if not done:
        return program
    calls += program.calls[done:]
    called = {call.kernel for call in calls}
    return replace(program, kernels=tuple(k for k in program.kernels if k.name in called), calls=tuple(calls))


def is_copy(kernel: Kernel) -> bool:
    """Check whether a kernel copies one buffer to another one, element for element."""
    statements = [s for s, _ in walk(kernel.body)]
    if [b.role for b in kernel.buffers] != ["in", "out"] or not all(
        isinstance(s, Loop | Load | Store) for s in statements
    ):
        return False
    loads = {s.name: s.index for s in statements if isinstance(s, Load) and not s.guard}
    stores = [s for s in statements if isinstance(s, Store)]
    return all(not s.guard and not s.combine and loads.get(str(s.value)) == s.index for s in stores)


def _copies(program: Program, start: int, stop: int, copying: set[str]) -> dict[int, tuple[str, str]]:
    """Return the calls of a loop that can be left out, with the temporary and the state of each."""
    found = {}
    owner = owners(program)
    sharers = Counter(storage.name for storage in owner.values())
    for number in range(start, stop + 1):
        call = program.calls[number]
        if call.kernel not in copying or not all(program.is_whole(call, i) for i in (0, 1)):
            continue
        source, target = (program.storage(name) for name in call.args)
        classes = source.cls == "temp" and target.cls in ("temp", "output")
        alone = sharers[source.name] == sharers[target.name] == 1 and not source.alias and not target.alias
        same = (source.size, source.dtype) == (target.size, target.dtype)
        if classes and alone and same and _may_alternate(program, source.name, target.name, number, start, stop):
            found[number] = source.name, target.name
    uses = Counter(name for pair in found.values() for name in pair)
    return {number: pair for number, pair in found.items() if uses[pair[0]] == uses[pair[1]] == 1}


def _may_alternate(program: Program, source: str, target: str, copy: int, start: int, stop: int) -> bool:
    """Check that a step writes all of ``source`` before it reads it, and that nothing else writes ``target`` or reads
    it after the copy."""
    is_written = False
    for number, call in enumerate(program.calls):
        if source not in call.args and (target not in call.args or not start <= number <= stop or number == copy):
            continue
        uses = list(zip(call.args, program.kernel(call.kernel).arguments, strict=True))
        fresh = any(
            b.role == "out" and name == source and program.is_whole(call, i) for i, (name, b) in enumerate(uses)
        )
        for name, buffer in uses:
            is_read = buffer.role != "out"
            if name == source and (not start <= number <= stop or not (is_written or (fresh and not is_read))):
                return False
            if number > copy and (name == target or (name == source and buffer.role != "in")):
                return False
            if name == target and number < copy and start <= number and buffer.role != "in":
                return False
        is_written |= fresh
    return is_written


def _two_at_a_time(span: Sequence[Call], axis: Axis, copies: Mapping[int, tuple[str, str]]) -> list[Call]:
    """Return the calls of a loop, two steps in each iteration, without those whose numbers in it are in ``copies``."""
    half, odd = divmod(axis.extent, 2)
    pairs = Axis(f"{axis.name}_pairs", half)
    around = span[0].loops[:-1]
    inside = (*around, pairs) if half > 1 else around
    exchanged = {a: b for s, t in copies.values() for a, b in ((s, t), (t, s))}
    kept = [call for number, call in enumerate(span) if number not in copies]
    calls = [_moved(call, axis, 0, around, {}) for call in span] if odd else []
    for step, names in ((odd, {}), (odd + 1, exchanged)):
        at = as_index(pairs) * 2 + step if half > 1 else step
        calls += [_moved(call, axis, at, inside, names) for call in kept]
    return calls


def _moved(call: Call, axis: Axis, at: IndexLike, loops: tuple[Axis, ...], names: Mapping[str, str]) -> Call:
    offsets = tuple(substitute_axes(offset, {axis: at}) for offset in call.offsets)
    return replace(call, args=tuple(names.get(a, a) for a in call.args), loops=loops, offsets=offsets)
