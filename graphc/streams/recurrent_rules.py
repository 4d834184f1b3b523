"""Rules for ops that go from sample to sample: loops of recurrent layers, and running sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphc.base.sizes.size import at, is_size
from graphc.ir.graph.graph import Node
from graphc.ir.graph.interpret import bound_attrs
from graphc.ops import dispatch
from graphc.streams.basic_rules import along_axis, run_op
from graphc.streams.plan import Plan, apply, constant, cut
from graphc.streams.positions import pattern_of
from graphc.streams.signal import Signal, resized


def scan(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Rule for loops whose steps are samples: the carries become states."""
    attrs = plan.attrs(node)
    carries, sequences = attrs["carries"], attrs["sequences"]
    first, over, shared = signals[:carries], signals[carries : carries + sequences], signals[carries + sequences :]
    moving = [s for s in (*first, *over) if s.axis is not None]
    if moving and all(s.axis for s in over if s.axis is not None) and all(s.axis is None for s in shared):
        return _over_features(plan, node, signals, carries, sequences)
    if any(s.axis is not None for s in (*first, *shared)) or any(s.axis != 0 for s in over):
        raise plan.unsupported(node, "a loop that does not go along time")
    if attrs["reverse"]:
        raise plan.whole(node, "it goes from the last sample to the first")
    block = over[0].block
    if any(map(plan.is_read, node.results[:carries])):
        # The state after the last sample must not know those behind the end of the sequence.
        over = [s if s.axis is None else plan.delayed(node, s, s.delay + max(0, -plan.late(s))) for s in over]
    over = plan.aligned(node, over, block)
    over = _not_before_start(plan, node, over)
    states = [_carry(plan, node, s) for s in first]
    own = {**attrs, "length": block}
    late = over[0].delay > 0
    reads = [s.slot for s in (*over, *shared)] + ([plan.start(over[0])] if late else [])
    others = len(over) + len(shared)

    def run(*operands: Any) -> Sequence[Any]:
        values, held = operands[:others], operands[len(operands) - carries :]
        results = dispatch.apply(node.op, (*held, *values), own)
        results = results if isinstance(results, tuple) else (results,)
        after = results[:carries]
        if late:
            started = apply("ge", (operands[others], constant(np.asarray(0, np.int64))), {})
            after = [apply("where", (started, new, old), {}) for new, old in zip(after, held, strict=True)]
        return (*results, *after)

    slots = plan.add(run, reads, states, len(node.results))
    least, found = max(s.least for s in over), list[Signal]()
    for index, (slot, value) in enumerate(zip(slots, node.results, strict=True)):
        shape = tuple(plan.size(n) for n in value.shape)
        if index < carries:
            if plan.late(over[0]) > 0 and plan.is_read(value):
                raise plan.whole(node, "the state after the last sample is read, which comes later")
            found.append(plan.result(node, slot, index, shape=shape, latest=True))
        else:
            shape = resized(shape, 0, block)
            common = {"axis": 0, "block": block, "delay": over[0].delay, "least": least}
            found.append(plan.result(node, slot, index, shape=shape, **common))
    return found


def _over_features(plan: Plan, node: Node, signals: Sequence[Signal], carries: int, sequences: int) -> list[Signal]:
    """Rule for loops over another dimension, in which each sample goes through the loop by itself."""
    over = next(s for s in signals[carries:] if s.axis is not None)
    signals = [_repeated(plan, s, over) for s in signals]
    signals = plan.aligned(node, [plan.delayed(node, s, max(0, s.delay)) if s.axis is not None else s for s in signals])
    over = next(s for s in signals[carries:] if s.axis is not None)
    body, inner = node.attrs["body"], plan.inside(node.attrs["body"])
    for index, (value, signal) in enumerate(zip(body.inputs, signals, strict=True)):
        facts: dict[str, Any] = {"value": value, "slot": inner.slot(), "constant": None, "positional": False}
        if carries <= index < carries + sequences:
            axis = None if signal.axis is None else signal.axis - 1
            facts |= {"shape": signal.shape[1:], "axis": axis}
        inner.signals[value] = replace(signal, delay=0, least=0, **facts)
    for inside in body.nodes():
        if inside.op.name != "input":
            plan.apply(inner, inside)
    results = [inner.signals[v] for v in body.outputs]
    before = [inner.signals[v] for v in body.inputs[:carries]]
    same = all(a.axis == b.axis and a.shape == b.shape for a, b in zip(results, before, strict=False))
    timing = {(s.block, s.rows, s.delay) for s in results if s.axis is not None}
    states = any(step.states for step in inner.steps)
    if not (same and inner.runs(results) and timing <= {(over.block, over.rows, 0)}) or states:
        raise plan.unsupported(node, "a loop over features that mixes samples")
    attrs = dict(bound_attrs(node, {plan.dimension: _length_of(plan, node, inner)}))
    slots = run_op(plan, node, signals, attrs)
    found = []
    for index, (slot, signal) in enumerate(zip(slots, results, strict=True)):
        shape, axis = signal.shape, signal.axis
        if index >= carries:
            shape, axis = (plan.size(node.results[index].shape[0]), *shape), None if axis is None else axis + 1
        found.append(replace(over, value=node.results[index], slot=slot, shape=shape, axis=axis))
    return found


def _repeated(plan: Plan, signal: Signal, like: Signal) -> Signal:
    """Return a value that is the same at all positions for as many merged sequences as another signal has."""
    if not signal.positional or signal.axis is None or signal.block != like.block * like.rows:
        return signal
    pattern = pattern_of(plan, signal.value, signal.axis, still=True)
    if pattern is None or pattern.period > 1 or len(pattern.start) or pattern.tail:
        return signal
    return replace(signal, block=like.block, rows=like.rows)


def _length_of(plan: Plan, node: Node, inner: Plan) -> int:
    """Return the size of the dimension of time at which all values in a loop have the shapes of a tick."""
    for length in range(1, 2 * max(max(s.shape, default=1) for s in inner.signals.values()) + 64):
        sizes = {plan.dimension: length}
        if all(tuple(at(n, sizes) if is_size(n) else n for n in v.shape) == s.shape for v, s in inner.signals.items()):
            return length
    raise plan.unsupported(node, "a loop over features whose sizes do not fit a tick")


def _not_before_start(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Return signals without samples known before the first tick, which become part of the first ticks."""
    return [plan.delayed(node, s, max(0, s.delay)) for s in signals]


def _carry(plan: Plan, node: Node, signal: Signal) -> Any:
    if signal.constant is None:
        raise plan.unsupported(node, "a first state that is an argument")
    return plan.state(node, "carry", signal.constant)


def cumsum(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Rule for running sums: the sum so far is a state."""
    (signal,), attrs = signals, plan.attrs(node)
    axis = signal.axis
    assert axis is not None
    if attrs["axis"] % signal.rank != axis:
        return along_axis(plan, node, signals)
    if attrs["reverse"]:
        raise plan.whole(node, "it adds from the last sample to the first")
    signal = _not_before_start(plan, node, [plan.cleared(node, signal, 0)])[0]
    total = plan.state(node, "sum", np.zeros(resized(signal.shape, axis, 1), signal.value.dtype.numpy))
    block = signal.block

    def run(x: Any, so_far: Any) -> Sequence[Any]:
        # The sum goes on from sample to sample, as over a whole sequence.
        both = apply("concat", (so_far, x), {"axis": axis})
        sums = cut(dispatch.apply(node.op, (both,), attrs), axis, 1, block + 1)
        return sums, cut(sums, axis, block - 1, block)

    slot = plan.add(run, (signal.slot,), (total,))[0]
    facts = {"axis": axis, "block": block, "delay": signal.delay, "least": signal.least}
    return [plan.result(node, slot, shape=signal.shape, **facts)]
