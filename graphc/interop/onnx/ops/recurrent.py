"""Rules of ONNX's recurrent networks: RNN, GRU and LSTM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from graphc.base.errors import UnsupportedError
from graphc.base.records import dataclass
from graphc.interop.onnx.registry import op
from graphc.nn import functional as F
from graphc.nn.functional.affine import linear
from graphc.nn.functional.recurrent import State, recurrent_layer, scan
from graphc.ops.selection import index
from graphc.tensors.free_functions import cat, stack
from graphc.tensors.tensor import Tensor

Activation = Callable[[Tensor], Tensor]
Products = Sequence[tuple[Tensor, "Tensor | None"]]
"""Weights and biases of the products with the state in a step."""

ACTIVATIONS: dict[str, tuple[Callable[..., Tensor], tuple[float, ...]]] = {
    "tanh": (lambda x: x.tanh(), ()),
    "sigmoid": (lambda x: x.sigmoid(), ()),
    "relu": (lambda x: x.relu(), ()),
    "softsign": (lambda x: F.softsign(x), ()),
    "softplus": (lambda x: F.softplus(x), ()),
    "leakyrelu": (lambda x, a: F.leaky_relu(x, a), (0.01,)),
    "elu": (lambda x, a: F.elu(x, a), (1.0,)),
    "thresholdedrelu": (lambda x, a: x.where(x > a, 0.0), (1.0,)),
    "affine": (lambda x, a, b: x * a + b, (1.0, 0.0)),
    "scaledtanh": (lambda x, a, b: (x * b).tanh() * a, (1.0, 1.0)),
    "hardsigmoid": (lambda x, a, b: (x * a + b).clamp(0.0, 1.0), (0.2, 0.5)),
}
"""Functions by name, with the defaults of their parameters alpha and beta."""


@dataclass(frozen=True)
class Network:
    """Properties of one kind of network."""

    name: str
    gates: int
    activations: tuple[str, ...]
    native: dict[tuple[str, ...], str]
    """Kind of graphc's layers that computes the same, by activations."""
    order: tuple[int, ...]
    """Index in ONNX's order of each of graphc's gates."""


_RNN = Network("RNN", 1, ("tanh",), {("tanh",): "RNN_TANH", ("relu",): "RNN_RELU"}, (0,))
_GRU = Network("GRU", 3, ("sigmoid", "tanh"), {("sigmoid", "tanh"): "GRU"}, (1, 0, 2))
LSTM = Network("LSTM", 4, ("sigmoid", "tanh", "tanh"), {("sigmoid", "tanh", "tanh"): "LSTM"}, (0, 2, 3, 1))


@dataclass(frozen=True)
class Options:
    """Attributes of an operator."""

    activations: Sequence[str] | None
    alpha: Sequence[float] | None
    beta: Sequence[float] | None
    clip: float | None
    direction: str
    layout: int
    input_forget: bool = False
    linear_before_reset: bool = True
    multiply: Callable[..., Tensor] = linear
    """Product of inputs or states with the transpose of a weight, plus a bias."""

    def functions(self, network: Network, count: int) -> list[list[tuple[str, Activation]]]:
        """Return the activations of each direction. Raises UnsupportedError for an unknown one."""
        names = [n.lower() for n in (self.activations or network.activations * count)]
        each = len(network.activations)
        values = {"alpha": list(self.alpha or ()), "beta": list(self.beta or ())}
        activations = []
        for name in names:
            if name not in ACTIVATIONS:
                raise UnsupportedError(f"{network.name}: graphc lacks the activation {name[:40]!r}")
            function, defaults = ACTIVATIONS[name]
            parameters = zip(("alpha", "beta"), defaults, strict=False)
            numbers = [values[which].pop(0) if values[which] else default for which, default in parameters]
            # An LSTM does not clip the activation of its cell state.
            bound = self.clip if len(activations) % each < 2 else None
            activations.append((name, _clipped(function, numbers, bound)))
        return [activations[i * each : (i + 1) * each] for i in range(count)]


def _clipped(function: Callable[..., Tensor], numbers: Sequence[float], bound: float | None) -> Activation:
    if bound is None:
        return lambda x: function(x, *numbers)
    return lambda x: function(x.clamp(-bound, bound), *numbers)


@op("RNN")
def rnn(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
) -> Any:
    """Return all hidden states, and the last ones."""
    options = Options(activations, activation_alpha, activation_beta, clip, direction, layout)
    return run(_RNN, options, x, w, r, b, sequence_lens, (initial_h,), None)


@op("GRU")
def gru(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    linear_before_reset: int = 0,
) -> Any:
    """Return all hidden states, and the last ones."""
    common = (activations, activation_alpha, activation_beta, clip, direction, layout)
    options = Options(*common, linear_before_reset=bool(linear_before_reset))
    return run(_GRU, options, x, w, r, b, sequence_lens, (initial_h,), None)


@op("LSTM")
def lstm(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None,
    initial_c: Tensor | None = None,
    p: Tensor | None = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
    layout: int = 0,
) -> Any:
    """Return all hidden states, the last ones and the last cell states."""
    common = (activations, activation_alpha, activation_beta, clip, direction, layout)
    options = Options(*common, input_forget=bool(input_forget))
    return run(LSTM, options, x, w, r, b, sequence_lens, (initial_h, initial_c), p)


def run(
    network: Network,
    options: Options,
    x: Tensor,
    w: Sequence[Any] | Tensor,
    r: Sequence[Any] | Tensor,
    b: Tensor | None,
    lens: Tensor | None,
    initial: tuple[Tensor | None, ...],
    p: Tensor | None,
) -> tuple[Tensor, ...]:
    """Return all states [time, directions, batch, hidden], and the last state of each kind.

    ``w`` and ``r`` hold the weights of each direction as ``options.multiply`` takes them.
    """
    if options.direction not in ("forward", "reverse", "bidirectional"):
        raise UnsupportedError(f"{network.name}: unknown direction {options.direction[:40]!r}")
    if options.layout:
        x = x.transpose(0, 1)
        initial = tuple([None if s is None else s.transpose(0, 1) for s in initial])
    count, hidden = len(w), r[0].shape[1]
    mask = None if lens is None else _running(x.shape[0], lens)
    outputs, finals = [], []
    for i, functions in enumerate(options.functions(network, count)):
        state = tuple([x.new_zeros(x.shape[1], hidden) if s is None else s[i] for s in initial])
        weights = (w[i], r[i], None if b is None else b[i], None if p is None else p[i])
        reverse = options.direction == "reverse" or i == 1
        output, final = _one_direction(network, options, functions, x, state, weights, reverse, mask)
        outputs.append(output if mask is None else output.where(mask, 0.0))
        finals.append(final)
    last = [stack(states, 0) for states in zip(*finals, strict=True)]
    if options.layout:
        return stack(outputs, 2).transpose(0, 1), *[s.transpose(0, 1) for s in last]
    return stack(outputs, 1), *last


def _running(steps: int, lens: Tensor) -> Tensor:
    """Return [time, batch, 1]: whether a sequence has a step."""
    return (index.iota(shape=(steps, 1), axis=0) < lens.to("int64")).unsqueeze(2)


_PLAIN: dict[str, Any] = {"clip": None, "input_forget": False, "linear_before_reset": True, "multiply": linear}
"""Options with which graphc's own layers compute the same."""


def _one_direction(
    network: Network,
    options: Options,
    functions: list[tuple[str, Activation]],
    x: Tensor,
    state: State,
    weights: tuple[Any, Any, Tensor | None, Tensor | None],
    reverse: bool,
    mask: Tensor | None,
) -> tuple[Tensor, State]:
    """Return hidden states [time, batch, hidden] and the last state."""
    w, r, b, p = weights
    wb, rb = (None, None) if b is None else b.chunk(2)
    kind = network.native.get(tuple([name for name, _ in functions]))
    plain = p is None and options == replace(options, **_PLAIN)
    if kind is not None and plain:
        parameters = [None if t is None else _ordered(t, network) for t in (w, r, wb, rb)]
        return recurrent_layer(kind, x, state, *parameters, reverse=reverse, mask=mask)  # type: ignore[arg-type]
    projected = options.multiply(x, w, wb)
    calls = [function for _, function in functions]
    # Split before the loop, not in each step.
    cut = [2 * r.shape[1], r.shape[1]] if network is _GRU else [r.shape[0]]
    biases = [None] * len(cut) if rb is None else rb.split(cut)
    products = list(zip([r] if len(cut) == 1 else r.split(cut), biases, strict=True))

    def following(state: State, x: tuple[Tensor, ...]) -> tuple[State, Tensor]:
        after = _STEPS[network.name](x[0], state, products, p, calls, options)
        if len(x) > 1:
            after = tuple([new.where(x[1], old) for new, old in zip(after, state, strict=True)])
        return after, after[0]

    last, outputs = scan(following, state, (projected,) if mask is None else (projected, mask), reverse=reverse)
    return outputs, last


def _ordered(parameter: Tensor, network: Network) -> Tensor:
    """Reorder the gates of a weight or bias to graphc's order."""
    if network.gates == 1:
        return parameter
    gates = parameter.chunk(network.gates)
    return cat([gates[i] for i in network.order])


def _rnn_step(
    x: Tensor, state: State, products: Products, p: Any, functions: list[Activation], options: Options
) -> State:
    return (functions[0](x + linear(state[0], *products[0])),)


def _gru_step(
    x: Tensor, state: State, products: Products, p: Any, functions: list[Activation], options: Options
) -> State:
    """Compute the gates update, reset, new.

    Without ``linear_before_reset`` the reset gate applies to the state and not to its product.
    """
    (hidden,), (f, g) = state, functions
    xz, xr, xn = x.chunk(3, 1)
    hz, hr = linear(hidden, *products[0]).chunk(2, 1)
    update, reset = f(xz + hz), f(xr + hr)
    if options.linear_before_reset:
        new = g(xn + reset * linear(hidden, *products[1]))
    else:
        new = g(xn + linear(reset * hidden, *products[1]))
    return ((1.0 - update) * new + update * hidden,)


def _lstm_step(
    x: Tensor, state: State, products: Products, p: Any, functions: list[Activation], options: Options
) -> State:
    """Compute the gates input, output, forget, cell. With peepholes the first three read the cell."""
    (hidden, cell), (f, g, h) = state, functions
    i, o, k, c = (x + options.multiply(hidden, *products[0])).chunk(4, 1)
    pi, po, pk = (None,) * 3 if p is None else p.chunk(3)
    input_gate = f(_with_peephole(i, pi, cell))
    forget_gate = 1.0 - input_gate if options.input_forget else f(_with_peephole(k, pk, cell))
    after = forget_gate * cell + input_gate * g(c)
    return f(_with_peephole(o, po, after)) * h(after), after


def _with_peephole(gate: Tensor, peephole: Tensor | None, cell: Tensor) -> Tensor:
    return gate if peephole is None else gate + peephole * cell


_STEPS: dict[str, Callable[..., State]] = {"RNN": _rnn_step, "GRU": _gru_step, "LSTM": _lstm_step}
