"""Double buffering: a loop that copies its new state over the old one runs two steps at a time between two buffers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from graphc.base.records import NamedTuple
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
    copying = {call.kernel for call in program.calls if call.loops and is_copy(program.kernel(call.kernel))}
    if not copying:
        return program
    states = _States(program)
    calls: list[Call] = []
    done = 0
    for axis, (start, stop) in sorted(loop_spans(program.calls).items(), key=lambda item: item[1]):
        span = program.calls[start : stop + 1]
        if (
            is_size(axis.extent)
            or axis.extent < 2
            or axis.flag
            or any(c.loops != (*span[0].loops[:-1], axis) for c in span)
        ):
            continue
        copies = states.copies([n for n in range(start, stop + 1) if program.calls[n].kernel in copying], start, stop)
        if copies:
            calls += [*program.calls[done:start], *_two_at_a_time(span, axis, copies)]
            done = stop + 1
    if not done:
        return program
    calls += program.calls[done:]
    called = {call.kernel for call in calls}
    return replace(program, kernels=tuple(k for k in program.kernels if k.name in called), calls=tuple(calls))


def is_copy(kernel: Kernel) -> bool:
    """Check whether a kernel copies one buffer to another one, element for element."""
    if [b.role for b in kernel.buffers] != ["in", "out"]:
        return False
    statements = [s for s, _ in walk(kernel.body)]
    loads = {s.name: s.index for s in statements if isinstance(s, Load) and not s.guard}
    stores = [s for s in statements if isinstance(s, Store)]
    plain = all(not s.guard and not s.combine and loads.get(str(s.value)) == s.index for s in stores)
    return plain and all(isinstance(s, Loop | Load | Store) for s in statements)


class _Use(NamedTuple):
    """An argument of a call."""

    number: int
    """Number of the call."""
    role: str
    whole: bool
    """Whether the call's buffer is the entire storage."""


class _States:
    """Copies of temporaries to the states of loops."""

    def __init__(self, program: Program):
        self.program = program
        owner = owners(program)
        self.sharers = Counter(storage.name for storage in owner.values())
        self.uses: dict[str, list[_Use]] = {}
        for number, call in enumerate(program.calls):
            for i, (name, buffer) in enumerate(zip(call.args, program.kernel(call.kernel).arguments, strict=True)):
                self.uses.setdefault(name, []).append(_Use(number, buffer.role, program.is_whole(call, i)))

    def copies(self, numbers: Sequence[int], start: int, stop: int) -> dict[int, tuple[str, str]]:
        """Return the copies among the calls of a loop that can be left out: the temporary and the state of each, by
        the call's number in the loop."""
        found = {}
        for number in numbers:
            source, target = self.program.calls[number].args
            if self._are_alike(source, target) and self._may_alternate(source, target, number, start, stop):
                found[number - start] = source, target
        times = Counter(name for pair in found.values() for name in pair)
        return {number: pair for number, pair in found.items() if times[pair[0]] == times[pair[1]] == 1}

    def _are_alike(self, source: str, target: str) -> bool:
        """Check whether two storages, of which the first is a temporary, may take each other's place."""
        a, b = self.program.storage(source), self.program.storage(target)
        alone = not a.alias and not b.alias and self.sharers[source] == self.sharers[target] == 1
        return alone and a.cls == "temp" and b.cls in ("temp", "output") and (a.size, a.dtype) == (b.size, b.dtype)

    def _may_alternate(self, source: str, target: str, copy: int, start: int, stop: int) -> bool:
        """Check that a step writes all of ``source`` before it reads it, and that only the copy writes ``target``
        or uses it after the copy."""
        own, state = self.uses[source], [use for use in self.uses[target] if start <= use.number <= stop]
        first = [use for use in own if use.number == own[0].number]
        fresh = any(use.whole for use in first) and all(use.role == "out" for use in first)
        inside = all(start <= use.number <= stop and (use.number <= copy or use.role == "in") for use in own)
        at_copy = all(use.whole for use in (*own, *state) if use.number == copy)
        return (
            fresh
            and inside
            and at_copy
            and all(u.number == copy or (u.number < copy and u.role == "in") for u in state)
        )


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
