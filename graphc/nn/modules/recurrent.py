"""Recurrent layers and cells: LSTM, GRU and plain ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from graphc.base.errors import AttributeValueError, ShapeError
from graphc.nn import init
from graphc.nn.functional.dropouts import dropout
from graphc.nn.functional.recurrent import STEPS, State, recurrent_cell, recurrent_layer, stacked
from graphc.nn.module import Module
from graphc.nn.packed_sequence import MaskedSequence, PackedSequence, packed_data, padded_data, running, sizes_of
from graphc.nn.parameter import Parameter, empty_parameter
from graphc.ops.movement.shape import concat
from graphc.tensors.creation import from_numpy
from graphc.tensors.tensor import Tensor

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]


def _draw(module: Module, hidden_size: int) -> None:
    bound = 1.0 / math.sqrt(hidden_size) if hidden_size > 0 else 0.0
    for parameter in module.parameters():
        init.uniform_(parameter, -bound, bound)


class RNNBase(Module):
    """Stacked layers of one kind of recurrent network: ``LSTM``, ``GRU``, ``RNN_TANH`` or ``RNN_RELU``.

    Parameters of layer k are ``weight_ih_lk``, ``weight_hh_lk``, ``bias_ih_lk``, ``bias_hh_lk``; for the backward
    direction the names end with ``_reverse``.
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        if mode not in STEPS:
            raise AttributeValueError(f"RNNBase: mode {mode!r} is not known", remedy=f"pass one of {sorted(STEPS)}")
        if proj_size and (mode != "LSTM" or not 0 < proj_size < hidden_size):
            raise AttributeValueError(
                f"{self._get_name()}: proj_size {proj_size} needs an LSTM, and must be below hidden_size {hidden_size}"
            )
        if not 0.0 <= dropout <= 1.0:
            raise AttributeValueError(f"{self._get_name()}: dropout must be a probability, got {dropout}")
        if hidden_size < 1 or num_layers < 1:
            raise AttributeValueError(
                f"{self._get_name()}: hidden_size {hidden_size} and num_layers {num_layers} must be positive"
            )
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        gates, output_size = STEPS[mode][1] * hidden_size, proj_size or hidden_size
        for layer, suffix in self._directions():
            size = input_size if layer == 0 else output_size * (2 if bidirectional else 1)
            shapes = {"weight_ih": (gates, size), "weight_hh": (gates, output_size)}
            if bias:
                shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
            if proj_size:
                shapes["weight_hr"] = (proj_size, hidden_size)
            for name, shape in shapes.items():
                self.register_parameter(f"{name}{suffix}", empty_parameter(shape, dtype, device))
        self.reset_parameters()

    def _directions(self) -> Iterator[tuple[int, str]]:
        """Yield layer and suffix of parameter names, in the order of states."""
        for layer in range(self.num_layers):
            yield layer, f"_l{layer}"
            if self.bidirectional:
                yield layer, f"_l{layer}_reverse"

    def reset_parameters(self) -> None:
        """Draw all parameters uniformly from minus to plus 1/sqrt(hidden_size)."""
        _draw(self, self.hidden_size)

    def flatten_parameters(self) -> None:
        """Do nothing: parameters need no common memory here."""

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Return all hidden states of the last layer, and the final states [layers * directions, batch, hidden_size].

        Shape: input [time, batch, input_size] (batch first with ``batch_first``, or without a batch); the hidden states
        have the same layout.

        ``hx`` are the initial states, zeros when None; for an LSTM a pair of hidden and cell states. A PackedSequence
        gives a PackedSequence of hidden states, and the states after the last step of each sequence.
        """
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        single = len(input.shape) == 2
        if len(input.shape) not in (2, 3) or input.shape[-1] != self.input_size:
            raise ShapeError(
                f"{self._get_name()}: the input {list(input.shape)} is not [time, batch, {self.input_size}]"
            )
        x = input.reshape(input.shape[0], 1, input.shape[1]) if single else input
        x = x.transpose(0, 1) if self.batch_first and not single else x
        states = self._states(x, hx, single)
        x, last = self._run(x, states)
        if single:
            return x.reshape(x.shape[0], x.shape[2]), self._result([s.reshape(s.shape[0], s.shape[2]) for s in last])
        return (x.transpose(0, 1) if self.batch_first else x), self._result(last)

    def _forward_packed(self, packed: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        if isinstance(packed, MaskedSequence):
            x = self._check_packed(packed.padded)
            x, last = self._run(x, self._states(x, hx, False), packed.mask().unsqueeze(-1))
            return packed.with_padded(x), self._result(last)
        sizes = sizes_of(packed)
        x = self._check_packed(padded_data(packed.data, sizes))
        if hx is not None and packed.sorted_indices is not None:
            hx = self._result([s.index_select(1, packed.sorted_indices) for s in self._as_tuple(hx)])
        mask = from_numpy(running(sizes)).unsqueeze(-1)
        x, last = self._run(x, self._states(x, hx, False), mask)
        if packed.unsorted_indices is not None:
            last = [s.index_select(1, packed.unsorted_indices) for s in last]
        return packed._replace(data=packed_data(x, sizes)), self._result(last)

    def _check_packed(self, x: Tensor) -> Tensor:
        """Return padded sequences; raise ShapeError unless they are [steps, batch, input_size]."""
        if len(x.shape) != 3 or x.shape[-1] != self.input_size:
            raise ShapeError(f"{self._get_name()}: packed elements {list(x.shape[2:])} are not [{self.input_size}]")
        return x

    def _as_tuple(self, hx: Any) -> tuple[Tensor, ...]:
        return tuple(hx) if STEPS[self.mode][2] > 1 else (hx,)

    def _states(self, x: Tensor, hx: Any, single: bool) -> list[State]:
        """Return the initial state of each layer and direction."""
        count = self.num_layers * (2 if self.bidirectional else 1)
        kinds = STEPS[self.mode][2]
        sizes = (self.proj_size or self.hidden_size, self.hidden_size)[:kinds]
        if hx is None:
            return [tuple(x.new_zeros(x.shape[1], size) for size in sizes)] * count
        states = self._as_tuple(hx)
        if len(states) != kinds:
            raise ShapeError(f"{self._get_name()}: expected {kinds} states, got {len(states)}")
        if single:
            states = tuple(s.reshape(s.shape[0], 1, s.shape[-1]) for s in states)
        for state, size in zip(states, sizes, strict=True):
            if tuple(state.shape) != (count, x.shape[1], size):
                expected = [count, x.shape[1], size]
                raise ShapeError(f"{self._get_name()}: a state has shape {list(state.shape)}, expected {expected}")
        return [tuple(s.select(0, i) for s in states) for i in range(count)]

    def _run(self, x: Tensor, states: list[State], mask: Tensor | None = None) -> tuple[Tensor, list[Tensor]]:
        """Return the output of the last layer, and the final states, each [layers * directions, batch, hidden]."""
        finals: list[State] = []
        for layer in range(self.num_layers):
            if layer and self.dropout and self.training:
                x = dropout(x, self.dropout)
            outputs = []
            for reverse in (False, True)[: 2 if self.bidirectional else 1]:
                parameters = self._parameters_of(layer, reverse)
                options: Any = {"reverse": reverse, "mask": mask, "weight_hr": parameters.pop()}
                output, final = recurrent_layer(self.mode, x, states[len(finals)], *parameters, **options)
                outputs.append(output)
                finals.append(final)
            x = concat(*outputs, axis=2) if self.bidirectional else outputs[0]
        return x, [stacked(states_of_kind) for states_of_kind in zip(*finals, strict=True)]

    def _parameters_of(self, layer: int, reverse: bool) -> list[Any]:
        suffix = f"_l{layer}{'_reverse' if reverse else ''}"
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        return [self._parameters.get(f"{name}{suffix}") for name in names]

    def _result(self, last: list[Tensor]) -> Any:
        return tuple(last) if len(last) > 1 else last[0]

    def extra_repr(self) -> str:
        options = [f"{self.input_size}, {self.hidden_size}"]
        defaults = {
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0.0,
            "bidirectional": False,
            "proj_size": 0,
        }
        options += [f"{name}={getattr(self, name)}" for name, value in defaults.items() if getattr(self, name) != value]
        return ", ".join(options)


class LSTM(RNNBase):
    """Long short-term memory; ``forward`` returns the outputs and the pair of final hidden and cell states.

    Example:
        >>> import graphc as gc
        >>> outputs, (hidden, cell) = gc.nn.LSTM(3, 5, num_layers=2, batch_first=True)(gc.zeros(4, 7, 3))
        >>> outputs.shape, hidden.shape, cell.shape
        ((4, 7, 5), (2, 4, 5), (2, 4, 5))
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """Gated recurrent units.

    Example:
        >>> import graphc as gc
        >>> outputs, hidden = gc.nn.GRU(3, 5)(gc.zeros(7, 4, 3))
        >>> outputs.shape, hidden.shape
        ((7, 4, 5), (1, 4, 5))
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__("GRU", *args, **kwargs)


class RNN(RNNBase):
    """Plain recurrent network with ``nonlinearity`` tanh or relu."""

    def __init__(self, *args: Any, nonlinearity: str = "tanh", **kwargs: Any):
        super().__init__(_plain("RNN", nonlinearity), *args, **kwargs)
        self.nonlinearity = nonlinearity


def _plain(name: str, nonlinearity: str) -> str:
    if nonlinearity not in ("tanh", "relu"):
        raise AttributeValueError(f"{name}: nonlinearity {nonlinearity!r} is neither 'tanh' nor 'relu'")
    return f"RNN_{nonlinearity.upper()}"


class RNNCellBase(Module):
    """Base of cells: one step of a recurrent network."""

    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | None
    bias_hh: Parameter | None
    mode: str

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        gates = STEPS[self.mode][1] * hidden_size
        self.weight_ih = empty_parameter((gates, input_size), dtype, device)
        self.weight_hh = empty_parameter((gates, hidden_size), dtype, device)
        self.register_parameter("bias_ih", empty_parameter((gates,), dtype, device) if bias else None)
        self.register_parameter("bias_hh", empty_parameter((gates,), dtype, device) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters uniformly from minus to plus 1/sqrt(hidden_size)."""
        _draw(self, self.hidden_size)

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """Map [batch, input_size] (or without the batch) and a state, zeros when None, to the new state."""
        if len(input.shape) not in (1, 2) or input.shape[-1] != self.input_size:
            raise ShapeError(f"{self._get_name()}: the input {list(input.shape)} is not [batch, {self.input_size}]")
        single = len(input.shape) == 1
        x = input.reshape(1, -1) if single else input
        kinds = STEPS[self.mode][2]
        if hx is None:
            state: State = (x.new_zeros(x.shape[0], self.hidden_size),) * kinds
        else:
            tensors = tuple(hx) if kinds > 1 else (hx,)
            state = tuple(s.reshape(1, -1) if single else s for s in tensors)
        parameters = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        result = recurrent_cell(self.mode, x, state, *parameters)
        result = tuple(r.reshape(-1) for r in result) if single else result
        return result if kinds > 1 else result[0]

    def extra_repr(self) -> str:
        bias = "" if self.bias_ih is not None else ", bias=False"
        return f"{self.input_size}, {self.hidden_size}{bias}"


class LSTMCell(RNNCellBase):
    """One step of an LSTM: returns hidden and cell state."""

    mode = "LSTM"


class GRUCell(RNNCellBase):
    """One step of a gated recurrent unit."""

    mode = "GRU"


class RNNCell(RNNCellBase):
    """One step of a plain recurrent network."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ):
        self.__dict__["mode"] = _plain("RNNCell", nonlinearity)
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity
