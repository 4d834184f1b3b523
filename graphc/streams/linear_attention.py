"""Attention that is linear in its scores: sums of all earlier keys and values, in a state of fixed size.

``(q k^T * decay) v`` with ``decay[i, j] = first * ratio^(i - j)`` for ``j <= i``, else 0, is ``first * q_i S_i`` with
``S_i = ratio * S_(i-1) + k_i^T v_i`` (Katharopoulos et al., Transformers are RNNs, 2020; Sun et al., Retentive network,
2023). A tick adds the products of its own samples to those with the state before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphc.ir.graph.graph import Node, Value
from graphc.ops import dispatch
from graphc.ops.pointwise import elementwise
from graphc.streams.plan import Plan, apply, constant
from graphc.streams.positions import numbers
from graphc.streams.signal import Decay, Factors, Signal, resized

_TOLERANCE = 1e-5
"""Largest difference of a decay from powers, of its first number."""


def decay_of(plan: Plan, mask: Value, length: int, hides: bool | None) -> Decay | None:
    """Return a mask as powers of the distance of two samples, or None. ``hides``: whether true elements are hidden."""
    array = numbers(plan, mask, length)
    if array.dtype == np.bool_:
        array = (~array if hides else array).astype(np.float32)
    first, second = array[..., 0, 0].astype(np.float64), array[..., 1, 0].astype(np.float64)
    if (first == 0).any():
        return None
    decay = Decay(first, second / first)
    error = np.abs(array - decay.tile(array.shape[-1]))
    return decay if (error <= _TOLERANCE * np.abs(first)[..., None, None]).all() else None


def scaled(plan: Plan, node: Node, signals: Sequence[Signal], pair: Signal) -> Factors | None:
    """Return the factors of a product of pairs and numbers that are the same for all of them."""
    other = next((s for s in signals if s is not pair), None)
    is_linear = node.op is elementwise.mul.op or (node.op is elementwise.div.op and signals[0] is pair)
    if pair.factors is None or other is None or not is_linear or other.moves or max(other.shape[-2:], default=1) > 1:
        return None
    rows = pair.factors.rows
    slots = [rows.slot if s is pair else s.slot for s in signals]
    slot = plan.add(lambda a, b: (dispatch.apply(node.op, (a, b), {}),), slots)[0]
    return replace(pair.factors, rows=replace(rows, slot=slot))


def weighted(plan: Plan, node: Node, weights: Signal, values: Signal) -> Signal:
    """Return the sum of all samples up to each one, weighted by products with decay."""
    factors = weights.factors
    assert factors is not None and factors.decay is not None
    delay = max(weights.delay, values.delay, 0)
    rows, columns, values = (plan.delayed(node, s, delay) for s in (factors.rows, factors.columns, values))
    columns, values = plan.cleared(node, columns, 0), plan.cleared(node, values, 0)
    block, across = rows.block, not factors.attrs["transpose_b"]
    """Whether the columns are [..., features, time]."""
    decay, kind = factors.decay, values.value.dtype.numpy
    earlier = decay.first[..., None, None] * decay.powers(1, block)[..., None]
    later, total = decay.powers(block - 1, block, -1)[..., None], decay.ratio[..., None, None] ** block
    tile, earlier, later, total = (np.asarray(a, kind) for a in (decay.tile(block), earlier, later, total))
    features = columns.shape[-2 if across else -1]
    batch = np.broadcast_shapes(columns.shape[:-2], values.shape[:-2], decay.ratio.shape)
    state = plan.state(node, "memory", np.zeros((*batch, features, values.shape[-1]), kind))

    def run(q: Any, k: Any, v: Any, memory: Any) -> Sequence[Any]:
        scores = apply("mul", (_product(q, k, **factors.attrs), constant(tile)), {})
        before = _product(apply("mul", (q, constant(earlier)), {}), memory)
        own = _product(k, apply("mul", (v, constant(later)), {}), transpose_a=not across)
        memory = apply("add", (apply("mul", (memory, constant(total)), {}), own), {})
        return apply("add", (_product(scores, v), before), {}), memory

    slot = plan.add(run, (rows.slot, columns.slot, values.slot), (state,))[0]
    rank = len(node.results[0].shape)
    shape = resized([plan.size(n) for n in node.results[0].shape], rank - 2, block)
    least = max(weights.least, values.least)
    return Signal(node.results[0], slot, shape, rank - 2, block, delay, None, least)


def _product(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    return apply("matmul", (a, b), {"transpose_a": transpose_a, "transpose_b": transpose_b})


def summed(plan: Plan, node: Node, weights: Signal) -> Signal:
    """Return the sums of weights: those of values that are 1."""
    ones = np.ones((weights.block, 1), weights.value.dtype.numpy)
    rank = len(weights.shape)
    values = Signal(weights.value, plan.array(ones), ones.shape, 0, weights.block, weights.delay, least=weights.least)
    found = weighted(plan, node, weights, values)
    shape = resized([plan.size(n) for n in node.results[0].shape], rank - 2, weights.block)
    return replace(found, slot=plan.reshaped(found.slot, shape), shape=shape, axis=rank - 2)
