"""Rules for attention: each sample looks at earlier ones, whose keys and values are states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphc.ir.graph.graph import Graph, Node, Value, input_class
from graphc.ir.op import Trait
from graphc.ops import dispatch
from graphc.streams import basic_rules, linear_attention
from graphc.streams.basic_rules import run_op
from graphc.streams.plan import Mask, Plan, apply, constant
from graphc.streams.positions import numbers
from graphc.streams.signal import Factors, Signal, resized

_LARGEST_SHOWN = -1e4
"""A score at most this large counts as hidden: its exponential beside that of a usual score is 0."""
_PROBES = (0.37, -1.9, 2.6)
"""Numbers in place of those that a hidden column meets, to see that they do not matter."""
_MASKING = {"where": True, "add": False, "sub": False, "mul": None}
"""Ops that hide samples from each other: whether a condition selects them; else minus infinity is added. None: they are
multiplied by 0."""
_MASK_LENGTH = 512
"""Length of a sequence at which masks are looked at; those that see farther back count as unbounded."""


def is_positional(value: Value, known: dict[Value, bool]) -> bool:
    """Check whether a value depends on positions and parameters only."""
    stack = [value]
    while stack:
        present = stack[-1]
        if present in known:
            stack.pop()
            continue
        operands = present.node.operands
        waiting = [v for v in operands if v not in known]
        if waiting:
            stack += waiting
            continue
        if present.node.op.name == "input":
            known[present] = input_class(present) != "input"
            continue
        own = present.node.op.has(Trait.GENERATOR) or bool(operands)
        known[present] = own and present.node.op.has(Trait.PURE) and all(known[v] for v in operands)
    return known[value]


def masks_of(plan: Plan, graph: Graph) -> dict[Node, Mask]:
    """Return the nodes that hide samples from each other: index of the mask among the operands, the mask, and whether
    its true elements are the hidden ones; None for a factor, whose zeros hide."""
    known: dict[Value, bool] = {}
    found = {}
    for node in graph.nodes():
        if node.op.name not in _MASKING or all(is_positional(v, known) for v in node.operands):
            continue
        for index, value in enumerate(node.operands):
            if is_positional(value, known) and len(plan.axes(value)) == 2:
                selects = _MASKING[node.op.name]
                hides = selects and is_positional(node.operands[1], known)
                found[node] = index, value, hides
    return found


def hidden_pairs(plan: Plan, mask: Value, hides: bool | None, length: int) -> np.ndarray:
    """Return which samples (columns) each sample (row) does not see."""
    return np.all(_hidden(plan, mask, hides, length), axis=0)


def _hidden(plan: Plan, mask: Value, hides: bool | None, length: int) -> np.ndarray:
    """Return hidden pairs for each head."""
    array = numbers(plan, mask, length)
    array = array.reshape(-1, *array.shape[-2:])
    if array.dtype == np.bool_:
        return array if hides else ~array
    return array == 0 if hides is None else array <= _LARGEST_SHOWN


def _sees_nothing(plan: Plan, mask: Mask) -> bool:
    """Check whether a mask hides all samples from some sample."""
    return bool(_hidden(plan, mask[1], mask[2], plan.bounded(64)).all(axis=-1).any())


def look_back(plan: Plan, graph: Graph) -> int | None:
    """Return how many samples before it a sample sees at most, in all masks of a graph; None for all of them. Raise
    StreamError for a mask that lets it see later ones."""
    most: int | None = 0
    for node, (_, mask, hides) in masks_of(plan, graph).items():
        seen = []
        longer = plan.bounded(2 * _MASK_LENGTH)
        for length in (longer // 2, longer):
            hidden = hidden_pairs(plan, mask, hides, length)
            if not hidden.any():
                break
            rows, columns = np.nonzero(~hidden)
            ahead = int((columns - rows).max(initial=0))
            if ahead > 0:
                far = "all samples" if ahead > len(hidden) // 2 else f"{ahead} samples"
                raise plan.error(node, f"{plan.where(node)} looks {far} ahead", "use a causal mask")
            seen.append(int((rows - columns).max(initial=0)))
        if len(seen) == 2 and most is not None:
            most = None if seen[0] != seen[1] else max(most, seen[0])
    return most


def pairs(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Rule for products of all pairs of samples: rows of this tick with those of the last samples."""
    attrs = plan.attrs(node)
    if any(s.rows > 1 for s in signals):
        raise plan.unsupported(node, "time is merged with dimensions before it")
    a, b = (plan.delayed(node, s, max(0, s.delay)) for s in signals)
    a, b = plan.aligned(node, [a, b])
    if a.block != b.block or (not attrs["transpose_b"] and b.axis != b.rank - 1):
        raise plan.unsupported(node, "a product of all pairs of samples")
    count, factors = plan.window(a.block), None
    if plan.back is None and plan.longest is None:
        factors = Factors(a, b, attrs)
        refusal = plan.error(
            node,
            f"{plan.where(node)} sees all earlier samples, which need memory without end",
            "pass memory=N to keep N samples, or use a mask with a window",
        )
        slot = plan.refuse(refusal)
    else:
        kept = plan.history(node, plan.cleared(node, b, 0), count - b.block)
        slot = plan.add(lambda x, y: (dispatch.apply(node.op, (x, y), attrs),), (a.slot, kept))[0]
    rank = len(node.results[0].shape)
    shape = (*(plan.size(n) for n in node.results[0].shape[:-2]), a.block, count)
    least = max(a.least, b.least)
    pair = Signal(node.results[0], slot, shape, rank - 2, a.block, a.delay, None, least, columns=rank - 1)
    return [replace(pair, factors=factors)]


def weighted(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Rule for sums of the last samples, weighted by columns."""
    weights, values = signals
    attrs = plan.attrs(node)
    if weights.hidden != 0 or attrs["transpose_a"] or attrs["transpose_b"] or values.axis != values.rank - 2:
        raise plan.whole(node, "it adds products of all samples")
    if weights.factors is not None and weights.factors.decay is not None:
        return [linear_attention.weighted(plan, node, weights, values)]
    values = plan.delayed(node, values, weights.delay)
    kept = plan.history(node, plan.cleared(node, values, 0), weights.shape[-1] - values.block)
    slot = plan.add(lambda x, y: (dispatch.apply(node.op, (x, y), attrs),), (weights.slot, kept))[0]
    rank = len(node.results[0].shape)
    shape = resized([plan.size(n) for n in node.results[0].shape], rank - 2, weights.block)
    least = max(weights.least, values.least)
    return [Signal(node.results[0], slot, shape, rank - 2, weights.block, weights.delay, None, least)]


def elementwise(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Rule for elementwise ops on pairs of samples, masks among them."""
    rank = len(node.results[0].shape)
    if all(s.positional or not s.moves for s in signals):
        refusal = plan.unsupported(node, "positions of pairs of samples outside of a mask")
        shape = tuple(plan.size(n) for n in node.results[0].shape)
        axes = plan.axes(node.results[0])
        columns = axes[-1] if len(axes) > 1 else None
        return [Signal(node.results[0], plan.refuse(refusal), shape, axes[0], 0, columns=columns, positional=True)]
    numbers_of = [s for s in signals if s.columns is not None and not s.positional]
    first = numbers_of[0]
    delay = first.delay
    axes = {s.axis - s.rank for s in signals if s.axis is not None and not (s.positional and s.columns is not None)}
    if axes != {-2} or any(s.delay != delay for s in numbers_of) or first.columns != first.rank - 1:
        raise plan.unsupported(node, "pairs of samples with different delays")
    mask = masks_of_node(plan, node)
    ready, hidden = [], None
    for index, signal in enumerate(signals):
        if signal.columns is None and signal.axis is not None:
            signal = plan.delayed(node, signal, delay)
        elif signal.positional and signal.columns is not None:
            signal = _tile(plan, node, signal, first, mask if mask and mask[0] == index else None)
        ready.append(signal)
    slot = run_op(plan, node, ready, plan.attrs(node))[0]
    hidden = _hidden_by_mask(node, signals, mask) if mask else _hidden_result(node, signals)
    if mask and hidden == -np.inf and _sees_nothing(plan, mask):
        raise plan.whole(node, "its mask hides all samples from some, which then see every one alike")
    shape = (*(plan.size(n) for n in node.results[0].shape[:-2]), first.block, first.shape[-1])
    least = max(s.least for s in signals if s.axis is not None)
    return [
        replace(
            first,
            value=node.results[0],
            slot=slot,
            shape=shape,
            axis=rank - 2,
            columns=rank - 1,
            least=least,
            hidden=hidden,
            factors=_factors(plan, node, signals, numbers_of, mask if hidden == 0 else None),
        )
    ]


def _factors(
    plan: Plan,
    node: Node,
    signals: Sequence[Signal],
    pairs: Sequence[Signal],
    mask: Mask | None,
) -> Factors | None:
    """Return what the result of an op on pairs is a product of, as long as it is linear in it."""
    factors = pairs[0].factors
    if factors is None or len(pairs) > 1:
        return None
    if mask is None:
        return linear_attention.scaled(plan, node, signals, pairs[0])
    if factors.decay is not None:
        return None
    decay = linear_attention.decay_of(plan, mask[1], plan.bounded(2 * _MASK_LENGTH), mask[2])
    return None if decay is None else replace(factors, decay=decay)


def masks_of_node(plan: Plan, node: Node) -> Mask | None:
    """Return the mask among the operands of a node, if it hides any pair."""
    found = plan.masks.get(node)
    if found is None or not hidden_pairs(plan, found[1], found[2], plan.bounded(64)).any():
        return None
    return found


def _tile(plan: Plan, node: Node, signal: Signal, like: Signal, mask: Any) -> Signal:
    """Return a value of pairs of positions for the rows of a tick and the columns kept.

    A mask hides columns from before the start of the sequence, too.
    """
    block, count = like.block, like.shape[-1]
    longest = plan.length_for(signal.value, max(2 * _MASK_LENGTH, 2 * count + 2 * block))
    array = numbers(plan, signal.value, plan.bounded(longest))
    if not np.array_equal(array[..., :-1, :-1], array[..., 1:, 1:]):
        raise plan.unsupported(node, "a mask that depends on more than the distance of two samples")
    start, distance = plan.start(like), np.arange(count, dtype=np.int64) - (count - block)
    # A table may be shorter than the samples kept: no row of a tick sees farther back than its end.
    back = np.minimum(np.arange(block)[:, None] - distance, array.shape[-1] - 1)
    tile = np.ascontiguousarray(array[..., np.maximum(back, 0), np.maximum(-back, 0)])

    def run(first: Any) -> Sequence[Any]:
        if mask is None:
            return (constant(tile),)
        number = apply("add", (constant(distance), first), {})
        exists = apply("ge", (number, constant(np.asarray(0, np.int64))), {})
        filler = np.asarray(mask[2] if tile.dtype == np.bool_ else 0 if mask[2] is None else -np.inf, tile.dtype)
        return (apply("where", (exists, constant(tile), constant(filler)), {}),)

    return replace(signal, slot=plan.add(run, (start,))[0], shape=tile.shape, constant=None)


def _hidden_by_mask(node: Node, signals: Sequence[Signal], mask: Mask) -> float | None:
    if not _MASKING[node.op.name]:
        return 0.0 if mask[2] is None else -np.inf
    filler = signals[1 if mask[2] else 2]
    return (
        None if filler.constant is None or filler.constant.size != 1 else _counted(float(filler.constant.reshape(())))
    )


def _counted(number: float) -> float | None:
    return -np.inf if number <= _LARGEST_SHOWN else 0.0 if number == 0 else None


def _hidden_result(node: Node, signals: Sequence[Signal]) -> float | None:
    """Return what an op makes of hidden columns, if that does not depend on anything else."""
    if not any(s.columns is not None and s.hidden is not None for s in signals):
        return None
    results = set()
    for probe in _PROBES:
        operands = []
        for s in signals:
            number = s.hidden if s.columns is not None and s.hidden is not None else probe
            if s.constant is not None and s.constant.size == 1:
                number = s.constant.reshape(())
            operands.append(np.asarray(number, s.value.dtype.numpy))
        with np.errstate(all="ignore"):
            results.add(float(node.op.evaluate(operands, node.attrs)[0]))
    return _counted(results.pop()) if len(results) == 1 else None


def reduction(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Rule for the largest of all columns, and their sum."""
    (signal,), attrs = signals, plan.attrs(node)
    axes = attrs["axes"] if "axes" in attrs else (attrs["axis"],)
    neutral = {"max": -np.inf, "sum": 0.0}.get(node.op.name)
    if [*axes] != [signal.columns] or signal.hidden != neutral:
        raise plan.whole(node, f"it is a {node.op.name} over all samples")
    if neutral == 0 and signal.factors is not None and signal.factors.decay is not None:
        return [linear_attention.summed(plan, node, signal)]
    slot = run_op(plan, node, signals, attrs)[0]
    shape = resized([plan.size(n) for n in node.results[0].shape], signal.rank - 2, signal.block)
    facts = {"columns": None, "hidden": None, "factors": None}
    return [replace(signal, value=node.results[0], slot=slot, shape=shape, axis=signal.rank - 2, **facts)]


def product(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Rule for matrix products: of pairs of samples, or of each sample by itself."""
    both = all(s.axis is not None for s in signals) and len(plan.axes(node.results[0])) == 2
    return (pairs if both else basic_rules.matmul)(plan, node, signals)
