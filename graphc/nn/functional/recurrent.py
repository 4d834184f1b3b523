"""Steps of recurrent networks, and their repetition over a sequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphc.base.errors import ShapeError
from graphc.base.lazy import deferred
from graphc.nn.functional.affine import linear
from graphc.ops.contraction import matrix_product
from graphc.ops.movement.shape import concat
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.tensors import composite
from graphc.tensors.repeated import compiled_when_repeated
from graphc.tensors.tensor import Tensor

scan = deferred("graphc.control.scan:scan")

State = tuple[Tensor, ...]
"""Hidden state, and for an LSTM the cell state: [batch, hidden] each."""
Step = Callable[[Tensor, State, Tensor, "Tensor | None"], State]
"""``step(projected input, state, recurrent weight, recurrent bias)``; the input is projected for all gates at once."""


def _gates(x: Tensor, count: int) -> list[Tensor]:
    size = x.shape[-1] // count
    return [x.narrow(-1, i * size, size) for i in range(count)]


def _recurrent(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    product = matrix_product.matmul(hidden, weight, transpose_b=True)
    return product if bias is None else ew.add(product, bias)


def lstm_step(x: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
    """Run one step of a long short-term memory (Hochreiter and Schmidhuber 1997) with gates in, forget, cell, out."""
    hidden, cell = state
    i, f, g, o = _gates(ew.add(x, _recurrent(hidden, weight, bias)), 4)
    remembered = ew.mul(composite.sigmoid(f), cell)
    cell = ew.add(remembered, ew.mul(composite.sigmoid(i), mathematics.tanh(g)))
    return ew.mul(composite.sigmoid(o), mathematics.tanh(cell)), cell


def gru_step(x: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
    """Run one step of a gated recurrent unit (Cho et al. 2014) with gates reset, update, new."""
    (hidden,) = state
    xr, xz, xn = _gates(x, 3)
    hr, hz, hn = _gates(_recurrent(hidden, weight, bias), 3)
    reset = composite.sigmoid(ew.add(xr, hr))
    update = composite.sigmoid(ew.add(xz, hz))
    new = mathematics.tanh(ew.add(xn, ew.mul(reset, hn)))
    return (ew.add(new, ew.mul(update, ew.sub(hidden, new))),)


def tanh_step(x: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
    """Run one step of a plain recurrent network with tanh."""
    return (mathematics.tanh(ew.add(x, _recurrent(state[0], weight, bias))),)


def relu_step(x: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
    """Run one step of a plain recurrent network with a rectifier."""
    return (composite.relu(ew.add(x, _recurrent(state[0], weight, bias))),)


STEPS: dict[str, tuple[Step, int, int]] = {
    "LSTM": (lstm_step, 4, 2),
    "GRU": (gru_step, 3, 1),
    "RNN_TANH": (tanh_step, 1, 1),
    "RNN_RELU": (relu_step, 1, 1),
}
"""Step, number of gates and number of state tensors, by kind of network."""


@compiled_when_repeated
def recurrent_cell(
    kind: str,
    x: Tensor,
    state: State,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None = None,
    bias_hh: Tensor | None = None,
) -> State:
    """Run one step for input [batch, size] and states [batch, hidden]; weights as in ``recurrent_layer``."""
    return STEPS[kind][0](linear(x, weight_ih, bias_ih), state, weight_hh, bias_hh)


@compiled_when_repeated
def recurrent_layer(
    kind: str,
    x: Tensor,
    state: State,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None = None,
    bias_hh: Tensor | None = None,
    reverse: bool = False,
    mask: Tensor | None = None,
    weight_hr: Tensor | None = None,
) -> tuple[Tensor, State]:
    """Run a layer over a sequence [time, batch, size]; return hidden states [time, batch, hidden] and the last state.

    ``weight_ih`` is [gates * hidden, size], ``weight_hh`` [gates * hidden, hidden]. ``reverse`` runs from the last step
    to the first; each output stays at the position of its input. Where ``mask`` (bool [time, batch, 1]) is False, the
    state stays unchanged. ``weight_hr`` [projection, hidden] projects the hidden state. Raises ShapeError when the
    sequence is empty.
    """
    step, _, _ = STEPS[kind]
    if not x.shape[0]:
        raise ShapeError(f"{kind}: the sequence has no steps")
    # One product for all steps; only the recurrent product depends on the previous step.
    projected = linear(x, weight_ih, bias_ih)

    def following(state: State, x: tuple[Tensor, ...]) -> tuple[State, Tensor]:
        after = step(x[0], state, weight_hh, bias_hh)
        if weight_hr is not None:
            after = (_recurrent(after[0], weight_hr, None), *after[1:])
        if len(x) > 1:
            after = tuple(ew.where(x[1], new, old) for new, old in zip(after, state, strict=True))
        return after, after[0]

    steps = (projected,) if mask is None else (projected, mask)
    state, outputs = scan(following, tuple(state), steps, reverse=reverse)
    return outputs, state


def stacked(tensors: Sequence[Tensor]) -> Tensor:
    """Stack tensors of one shape along a new first dimension."""
    return concat(*[t.reshape(1, *t.shape) for t in tensors], axis=0)
