"""From a graph of whole sequences to the plan of a tick: a rule for each op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.errors import StreamError
from graphc.base.records import dataclass
from graphc.base.sizes.assumptions import Assumption, format_relation
from graphc.base.sizes.size import LARGEST, Dimension, at
from graphc.ir.graph.graph import Graph, Node, Value, input_class, input_path
from graphc.ir.op import Trait
from graphc.streams import (
    attention_rules,
    basic_rules,
    flat_rules,
    positions,
    recurrent_rules,
    table_rules,
    view_rules,
    window_rules,
)
from graphc.streams.basic_rules import Rule, still
from graphc.streams.plan import LONG, Indivisible, Plan, Step
from graphc.streams.signal import Signal, resized

_LONGEST_TICK = 1 << 20
_TICKS, _LENGTH = 64, 4096
"""Least number of ticks and of samples of the sequence at which sizes are compared."""
_LARGEST_FACTOR = 12
"""Largest number of ticks whose multiples are looked at."""
RULES: dict[str, Rule] = {
    "transpose": view_rules.transpose,
    "flip": view_rules.flip,
    "broadcast_to": view_rules.broadcast_to,
    "reshape": view_rules.reshape,
    "slice": view_rules.slice_rule,
    "pad": view_rules.pad_rule,
    "concat": view_rules.concat,
    "matmul": attention_rules.product,
    "cumsum": recurrent_rules.cumsum,
    "argmax": basic_rules.reduction,
    "argmin": basic_rules.reduction,
    "conv": window_rules.conv,
    "max_pool": window_rules.max_pool,
    "avg_pool": window_rules.avg_pool,
    "conv_grad_input": window_rules.conv_transposed,
    "gather": window_rules.gather,
    "scan": recurrent_rules.scan,
    "scatter": flat_rules.write,
    "scatter_add": flat_rules.write,
    "scatter_extreme": flat_rules.write,
    "scatter_product": flat_rules.write,
}
"""Rules by op; the others follow from traits and attributes."""


@dataclass(frozen=True)
class Planned:
    """A finished plan."""

    plan: Plan
    steps: tuple[Step, ...]
    """Steps whose results are read."""
    inputs: tuple[Signal, ...]
    outputs: tuple[Signal, ...]
    tick: int
    """Samples of the inputs in a tick."""

    def __deepcopy__(self, memo: Any) -> Planned:
        """Return the plan itself, which never changes: copies of a module share it."""
        return self


def make_plan(graph: Graph, dimension: Dimension, step: int | None, lookahead: int, longest: int | None) -> Planned:
    """Plan ticks of ``step`` samples, or of as few as possible. Raise StreamError where no stream serves the graph."""
    tick = step or 1
    _check_endless(graph, dimension)
    bounded = table_rules.within_tables(graph, dimension)
    while True:
        try:
            return _attempt(*bounded, dimension, tick, lookahead, longest)
        except Indivisible as need:
            if step is not None or tick * need.times > _LONGEST_TICK:
                name = Plan.where(need.node)
                raise Plan.error(
                    need.node,
                    f"a step of {tick} is too small or uneven: {name} takes {need.factor} samples at once",
                    "pass a multiple, or step=None for the smallest step that fits",
                ) from None
            tick *= need.times


def _attempt(
    graph: Graph, dimension: Dimension, assumed: Dimension, tick: int, lookahead: int, longest: int | None
) -> Planned:
    """Plan ticks of some samples. ``assumed`` is the dimension of time in the assumptions of the graph."""
    plan, unit = _plan_of(graph, dimension, tick)
    _check_lengths(plan, assumed, tick // unit)
    plan.longest = longest
    inputs = []
    for value in graph.inputs:
        signal = _argument(plan, value, tick)
        plan.signals[value] = signal
        if input_class(value) == "input":
            inputs.append(signal)
    plan.masks = attention_rules.masks_of(plan, graph)
    plan.back = attention_rules.look_back(plan, graph)
    for node in graph.nodes():
        if node in plan.live and node.op.name != "input":
            _apply(plan, node)
    _needed(plan, [plan.signals[v].slot for v in graph.outputs])
    outputs = tuple(_output(plan, v, lookahead) for v in graph.outputs)
    steps = _needed(plan, [s.slot for s in outputs])
    return Planned(plan, steps, tuple(inputs), outputs, tick)


def _length_of(graph: Graph, dimension: Dimension) -> Any:
    """Return the length of the inputs in time. Raise StreamError if they have several."""
    arguments = [v for v in graph.inputs if input_class(v) == "input"]
    lengths = {
        str(n): n for v in arguments for n in v.shape if at(n, {dimension: LONG}) != at(n, {dimension: 2 * LONG})
    }
    if len(lengths) != 1:
        raise StreamError(
            f"a stream needs inputs of one length in time, and the lengths are {', '.join(lengths) or 'fixed'}",
            remedy=f"name the dimension of time in dims, as gc.Dim({dimension.name!r})",
        )
    return lengths.popitem()[1]


def _check_endless(graph: Graph, dimension: Dimension) -> None:
    """Raise StreamError if sequences of the model have a largest length."""
    size = _length_of(graph, dimension)
    if at(size, {dimension: dimension.high + 1}) <= LARGEST:
        most = at(size, {dimension: dimension.high})
        raise StreamError(f"a stream goes on, and the dimension has {most} samples at most", remedy="leave out its max")


def _plan_of(graph: Graph, dimension: Dimension, tick: int) -> tuple[Plan, int]:
    """Return an empty plan, and the samples in a unit of the dimension."""
    size = _length_of(graph, dimension)
    unit = at(size, {dimension: LONG}) // LONG
    if at(size, {dimension: LONG}) != unit * LONG:
        raise StreamError(f"a stream needs inputs whose length is a multiple of a dimension, not {size}")
    if tick % unit:
        raise Indivisible(unit, graph.outputs[0].node, tick)
    ticks = max(_TICKS, -(-max(_LENGTH, 4 * unit * dimension.low) // tick))
    plan = Plan(graph, dimension, ticks * tick // unit, ticks, _apply)
    plan.last = table_rules.longest(plan)
    return plan, unit


def _check_lengths(plan: Plan, dimension: Dimension, each: int) -> None:
    """Check that the graph is the program for long sequences of any number of ticks of ``each`` units, up to the end
    of the shortest table. Raise Indivisible if it is for multiples of some, StreamError otherwise."""
    graph = plan.graph
    worst: Assumption | None = None
    for factor in range(1, _LARGEST_FACTOR + 1):
        most = (dimension.high if plan.last is None else plan.last) // (factor * each)
        first = max(_LENGTH, dimension.low) if plan.last is None else max(1, most - 2 * _LARGEST_FACTOR)
        lengths = [n * factor * each for n in (*range(first, min(most, first + 2 * _LARGEST_FACTOR)), most)]
        broken = next((a for a in graph.assumptions for n in lengths if not a.holds({dimension: n})), None)
        if broken is None:
            if factor > 1:
                raise Indivisible(factor, graph.outputs[0].node)
            return
        worst = worst or broken
    assert worst is not None
    relation = format_relation(worst.relation, worst.a, worst.b, worst.answer, "")
    raise StreamError(
        f"the model's program depends on the length of the sequence: this one is for {relation}",
        origin=str(worst.place) or None,
        remedy="leave out branches, tables and ops whose number of steps depends on the length",
    )


def _argument(plan: Plan, value: Value, tick: int) -> Signal:
    """Return the signal of an argument of the graph; its slot is filled before the steps."""
    axes, shape = plan.axes(value), tuple(plan.size(n) for n in value.shape)
    slot = plan.slot()
    if input_class(value) != "input":
        array = np.asarray(plan.graph.bound[input_path(value)].detach().numpy())
        return Signal(value, slot, shape, constant=array)
    if len(axes) > 1:
        raise StreamError(f"input {value.name} has two dimensions of time", remedy="pass one of them as a fixed size")
    if not axes:
        return Signal(value, slot, shape)
    return Signal(value, slot, resized(shape, axes[0], tick), axes[0], tick)


def _apply(plan: Plan, node: Node) -> None:
    """Apply the rule of a node to the signals of its operands."""
    signals = [plan.signals[v] for v in node.operands]
    try:
        _check_node(plan, node, signals)
        rule = _rule(plan, node, signals)
        if any(s.rows > 1 for s in signals):
            _check_rows(plan, node, signals, rule)
        found = rule(plan, node, signals)
    except StreamError as error:
        error.origin = error.origin or node.location.describe() or None
        raise
    for value, signal in zip(node.results, found, strict=True):
        plan.signals[value] = plan.judged(node, signals, signal)


_OF_ROWS = (
    basic_rules.elementwise,
    basic_rules.reduction,
    basic_rules.along_axis,
    attention_rules.product,
    basic_rules.rows,
    basic_rules.check,
    view_rules.broadcast_to,
    view_rules.reshape,
    view_rules.transpose,
    flat_rules.write,
)
"""Rules that serve several sequences merged in one dimension."""


def _check_rows(plan: Plan, node: Node, signals: Sequence[Signal], rule: Rule) -> None:
    """Raise StreamError for an op that needs to tell merged sequences apart."""
    tables = rule is window_rules.gather and (signals[0].axis is None or flat_rules.is_own(signals))
    images = rule in (window_rules.conv, window_rules.max_pool, window_rules.avg_pool) and signals[0].axis == 0
    loops = rule is recurrent_rules.scan and all(s.axis != 0 for s in signals[node.attrs["carries"] :])
    if not (rule in _OF_ROWS or tables or images or loops or _keeps_time(plan, node, signals[0], rule)):
        raise plan.unsupported(node, "time is merged with dimensions before it")


def _keeps_time(plan: Plan, node: Node, signal: Signal, rule: Rule) -> bool:
    """Check whether a slice, padding or concatenation goes along other dimensions than time."""
    attrs, axis = plan.attrs(node), signal.axis
    if axis is None:
        return False
    if rule is view_rules.concat:
        return attrs["axis"] % signal.rank != axis
    if rule is view_rules.pad_rule:
        return not any(attrs[n][axis] for n in ("low", "high", "interior"))
    whole = 0, plan.size(signal.value.shape[axis]), 1
    return rule is view_rules.slice_rule and tuple(attrs[n][axis] for n in ("starts", "stops", "steps")) == whole


_OUTSIDE = (Trait.STATE_WRITE, Trait.EFFECT, Trait.RANDOM, Trait.HOST)


def _check_node(plan: Plan, node: Node, signals: Sequence[Signal]) -> None:
    """Raise StreamError for an op with effects, or with windows and steps of the length of the sequence."""
    if node.op.has(Trait.CHECK):
        return
    if any(map(node.op.has, _OUTSIDE)):
        raise plan.unsupported(node, "it writes states, draws random numbers, or calls Python")
    if not any(s.moves for s in signals):
        return
    for name, attr in node.attrs.items():
        if name not in _LENGTHS and _is_long(plan, name, attr):
            raise plan.whole(node, f"its {name} depends on the length of the sequence")


def _rule(plan: Plan, node: Node, signals: Sequence[Signal]) -> Rule:
    """Return the rule for a node, whose operands have these signals."""
    if node.op.has(Trait.CHECK):
        return basic_rules.check
    if all(s.positional or s.constant is not None for s in signals) and not plan.runs(signals):
        repeated = positions.periodic(plan, node)
        if repeated is not None:
            return lambda *_: [repeated]
    if not any(s.moves for s in signals):
        return _still_rule(plan, node, signals)
    if _pairs_positions(plan, node, signals):
        return attention_rules.elementwise
    if any(s.columns is not None for s in signals):
        return _attention_rule(plan, node)
    if all(s.latest for s in signals if s.moves):
        return view_rules.broadcast_to if any(map(plan.axes, node.results)) else basic_rules.latest
    return RULES.get(node.op.name) or _by_traits(plan, node, signals)


_LENGTHS = ("shape", "starts", "stops", "high", "size", "length")
"""Attributes that may depend on the length of the sequence."""


def _is_long(plan: Plan, name: str, attr: Any) -> bool:
    """Check whether an attribute depends on the length of the sequence; padding after it may."""
    if name == "padding":
        attr = [low for low, _ in attr]
    return any(map(plan.depends, attr)) if isinstance(attr, (tuple, list)) else plan.depends(attr)


def _still_rule(plan: Plan, node: Node, signals: Sequence[Signal]) -> Rule:
    """Return the rule for a node whose operands are the same in all ticks."""
    timed = any(map(plan.axes, node.results))
    if any(s.positional for s in signals):
        return _of_length
    if timed or any(map(plan.depends, node.attrs.values())):
        return _POSITIONS.get(node.op.name, _uneven)
    return still


def _by_traits(plan: Plan, node: Node, signals: Sequence[Signal]) -> Rule:
    """Return the rule for an op that treats each sample by itself, as its traits or attributes say."""
    op = node.op
    if op.has(Trait.ELEMENTWISE) or op.has(Trait.IDENTITY):
        return basic_rules.elementwise
    if op.has(Trait.REDUCTION):
        return basic_rules.reduction
    if len(signals) == 1 and ("axis" in node.attrs or "axes" in node.attrs):
        return basic_rules.along_axis
    if op.has(Trait.REINTERPRETS):
        return basic_rules.rows
    raise plan.unsupported(node, f"there is no rule for {op.name} on samples")


def _pairs_positions(plan: Plan, node: Node, signals: Sequence[Signal]) -> bool:
    """Check whether a node makes numbers of pairs of positions."""
    return all(s.positional or not s.moves for s in signals) and len(plan.axes(node.results[0])) == 2


def _attention_rule(plan: Plan, node: Node) -> Rule:
    if node.op.has(Trait.ELEMENTWISE) or node.op.has(Trait.IDENTITY):
        return attention_rules.elementwise
    if node.op.has(Trait.REDUCTION):
        return attention_rules.reduction
    if node.op.has(Trait.CONTRACTION) and len(node.operands) == 2:
        return attention_rules.weighted
    raise plan.unsupported(node, "an attention of another form")


def _of_length(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Rule for numbers computed from the length of the sequence."""
    refusal = plan.whole(node, "it computes with the length of the sequence")
    return [
        Signal(v, plan.refuse(refusal), tuple(plan.size(n) for n in v.shape), positional=True) for v in node.results
    ]


def _uneven(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Rule for other values with dimensions of time, none of which is from an input."""
    value = node.results[0]
    refusal = plan.unsupported(node, "values of the length of the sequence")
    shape, axes = tuple(plan.size(n) for n in value.shape), plan.axes(value)
    columns = axes[1] if len(axes) > 1 else None
    axis = axes[0] if axes else None
    return [Signal(value, plan.refuse(refusal), shape, axis, columns=columns, positional=True)]


def _repeated(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Rule for a value repeated along time."""
    value = node.results[0]
    if len(plan.axes(value)) != 1:
        return _uneven(plan, node, signals)
    axis = plan.axes(value)[0]
    block = plan.block_of(value.shape[axis])
    shape = resized([plan.size(n) for n in value.shape], axis, block)
    slot = basic_rules.run_op(plan, node, signals, {"shape": shape})[0]
    return [Signal(value, slot, shape, axis, block, positional=signals[0].constant is not None)]


_POSITIONS: dict[str, Rule] = {
    "iota": view_rules.iota,
    "size": view_rules.sequence_end,
    "broadcast_to": _repeated,
    "slice": table_rules.rows,
}
"""Rules for ops without an operand in time whose results depend on its length."""


def _output(plan: Plan, value: Value, lookahead: int) -> Signal:
    """Return an output's signal, whose samples before the start of the sequence are zeros."""
    signal = plan.signals[value]
    if signal.columns is not None or signal.rows > 1:
        raise plan.unsupported(value.node, "an output of pairs of samples, or of time merged with other dimensions")
    if signal.axis is None:
        return signal
    if signal.ahead > lookahead:
        cause = signal.cause or value.node
        raise plan.error(
            cause,
            f"{plan.where(cause)} looks ahead: an output needs {signal.ahead} samples after its own",
            f"pass lookahead={signal.ahead}, for a stream that answers so much later, or pad before the sequence only",
        )
    node = value.node
    signal = plan.cleared(node, signal, 0)
    return plan.delayed(node, signal, max(0, signal.delay))


def _needed(plan: Plan, slots: Sequence[int]) -> tuple[Step, ...]:
    """Return the steps that slots need, and checks, in order. Raise the error of one that cannot run."""
    wanted, found = {*slots}, []
    for step in reversed(plan.steps):
        if not step.always and wanted.isdisjoint(step.writes):
            continue
        if step.refusal is not None:
            raise step.refusal
        wanted.update(step.reads)
        found.append(step)
    return tuple(reversed(found))
