"""ZeroRedundancyOptimizer: shards the optimizer's state over several processes.

A shard consists of full parameters, so that rules which need a full parameter work unchanged. This is stage 1 of ZeRO
(Rajbhandari et al. 2020).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import BY_NAME, DType
from graphc.base.errors import ArgumentError, StateDictError
from graphc.distributed.agreement import agree
from graphc.distributed.group import check_group, group
from graphc.ir.types import TensorType
from graphc.optim.optimizer import Group, Optimizer, State
from graphc.tensors.free_functions import cat
from graphc.tensors.placement import on_host
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front
from graphc.tracing.host import lend_python
from graphc.tracing.trace import is_tracing

MESSAGE_BYTES = 25 << 20
"""Largest size of a message with several parameters, in bytes: limits its memory, and amortizes its latency."""
_SAME = "pass the same parameters in the same order, for example model.parameters(), in all processes"


class ZeroRedundancyOptimizer(Optimizer):
    """An optimizer whose state and updates are sharded over processes.

    All processes pass the same parameters, in the same order, and have the same gradients, as DistributedDataParallel
    provides. Each parameter has an owner, the only process with its state, which computes its update. A step ends with
    a broadcast from each owner, so that all processes have all parameters, bit for bit as one process would compute
    them. Steps, closures, groups, schedules, hooks and clipping work like in any optimizer, in eager and compiled code.
    Call ``consolidate_state_dict`` before ``state_dict``; ``graphc.distributed.checkpoint`` saves shards as they are.

    ``optimizer_class``, from graphc.optim or user-defined, is called with ``defaults``. ``parameters_as_bucket_view``
    changes nothing. All processes create the optimizer, and add groups, together. Raises ArgumentError for a class
    whose step is more than its update rule (LBFGS), for another group of processes, and for ``overlap_with_ddp``. All
    processes raise DistributedError if parameters differ.
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ):
        _check(optimizer_class, process_group, overlap_with_ddp)
        self._owners: dict[Tensor, int] = {}
        """The rank that updates each parameter."""
        self._loads = [0] * group().size
        """Bytes of the parameters that each rank updates."""
        self._buffers: dict[DType, np.ndarray] = {}
        self._consolidated: tuple[int, dict[str, Any]] | None = None
        """The step count of the collection, and the state of all processes."""
        self.optim = optimizer_class(params, **defaults)
        """The optimizer whose rule this one applies, with the same groups and state."""
        super().__init__(self.optim.param_groups, self.optim.defaults)
        self.schedulable = self.optim.schedulable  # type: ignore[misc]
        is_known = optimizer_class.__module__.partition(".")[0] == "graphc"
        self.native = self.optim.native if is_known else bool(self.optim.native)
        self.optim.param_groups, self.optim.state = self.param_groups, self.state

    # The rule of the wrapped optimizer

    @property
    def rule(self) -> Optimizer:
        """The optimizer whose rule this one applies."""
        return self.optim

    def check_group(self, group: Group) -> None:
        """Check a group as the wrapped optimizer does."""
        self.optim.check_group(group)

    def init_state(self, param: Tensor) -> State:
        """Return the state of a parameter before its first step."""
        return self.optim.init_state(param)

    def update(self, param: Tensor, grad: Tensor, state: State, hyper: Group) -> tuple[Tensor, State]:
        """Return the parameter and its state after a step."""
        return self.optim.update(param, grad, state, hyper)

    def hyper(self, group: Group) -> Group:
        """Return the numbers and flags of a group."""
        return self.optim.hyper(group)

    def number(self, group: Group, name: str) -> Any:
        """Return the current value of a number of a group."""
        return self.optim.number(group, name)

    # Assignment of parameters to ranks

    def add_param_group(self, param_group: Group) -> None:
        """Add parameters, and assign them greedily, largest first, to the least loaded rank."""
        super().add_param_group(param_group)
        params = self.param_groups[-1]["params"]
        first = sum(len(g["params"]) for g in self.param_groups[:-1])
        agree(group(), "parameters of the optimizer", _table(params, first), _SAME)
        for param in sorted(params, key=lambda p: -_bytes(p)):
            owner = self._loads.index(min(self._loads))
            self._owners[param] = owner
            self._loads[owner] += _bytes(param)

    def owner(self, param: Tensor) -> int:
        """Return the rank that updates a parameter. Raise ArgumentError if the number of processes has changed."""
        if len(self._loads) != group().size:
            raise ArgumentError(
                f"the optimizer was created for {len(self._loads)} processes, now there are {group().size}",
                remedy="create a new one, and load a checkpoint",
            )
        return self._owners[param]

    def owned(self, params: list[Tensor]) -> list[Tensor]:
        """Return the parameters that this process updates."""
        return [p for p in params if self.owner(p) == group().rank]

    def _run(self, closure: Any) -> Any:
        loss = super()._run(closure)
        for owner, message_params in self._messages([p for g in self.param_groups for p in g["params"]]):
            sizes = [p.numel() for p in message_params]
            flat = self._buffer(sum(sizes), message_params[0].dtype)
            pieces = [
                v.reshape(p.shape) for v, p in zip(np.split(flat, np.cumsum(sizes)[:-1]), message_params, strict=True)
            ]
            is_mine = owner == group().rank
            if is_mine:
                for param, piece in zip(message_params, pieces, strict=True):
                    np.copyto(piece, on_host(param._data))
            _broadcast_from(flat, owner)
            if not is_mine:
                self._write((p, Tensor._wrap(piece)) for p, piece in zip(message_params, pieces, strict=True))
        return loss

    def _buffer(self, size: int, dtype: DType) -> np.ndarray:
        """Return memory for a message; the optimizer keeps the largest buffer of each type."""
        if dtype not in self._buffers or self._buffers[dtype].size < size:
            self._buffers[dtype] = np.empty(size, dtype.numpy)
        return self._buffers[dtype][:size]

    def _messages(self, params: Sequence[Tensor]) -> list[tuple[int, list[Tensor]]]:
        """Return the messages after a step that updates these parameters, in order: the sender and the parameters of
        each. A message has one element type and at most MESSAGE_BYTES, or a single parameter."""
        messages: list[tuple[int, list[Tensor]]] = []
        last: dict[tuple[int, DType], list[Tensor]] = {}
        for param in params if group().size > 1 else ():
            key = self.owner(param), param.dtype
            if key not in last or _bytes(param) + sum(map(_bytes, last[key])) > MESSAGE_BYTES:
                last[key] = []
                messages.append((key[0], last[key]))
            last[key].append(param)
        return messages

    def from_others(self, params: Sequence[Tensor], values: Mapping[int, Tensor]) -> list[tuple[Tensor, Tensor]]:
        """Send the new values of this process's parameters to the others; return pairs of a parameter of another
        process and its new value."""
        messages = self._messages(params)
        flat_values = [cat([values[id(p)].reshape(-1) for p in ps]) for owner, ps in messages if owner == group().rank]
        remaining = iter(flat_values)
        received: list[tuple[Tensor, Tensor]] = []
        for owner, message_params in messages:
            if owner == group().rank:
                _send(next(remaining))
                continue
            sizes = [p.numel() for p in message_params]
            pieces = _receive(sum(sizes), message_params[0].dtype, owner, flat_values).split(sizes)
            received += [(p, piece.reshape(p.shape)) for p, piece in zip(message_params, pieces, strict=True)]
        return received

    # Saving

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_buffers": {}}

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collect the state of all processes in process ``to``; all processes call this. Its ``state_dict`` returns the
        result until the next step."""
        group().check_rank(to)
        params = [p for g in self.param_groups for p in g["params"]]
        tables = group().gather_objects({i: _kinds(self.state[p]) for i, p in enumerate(params) if self.state.get(p)})
        state: dict[int, State] = {}
        for owner, table in enumerate(tables):
            for number, kinds in table.items():
                mine = self.state[params[number]] if owner == group().rank else {}
                entries = {name: _broadcast(mine.get(name), kind, owner) for name, kind in kinds.items()}
                if to == group().rank:
                    state[number] = entries
        if to == group().rank:
            self._consolidated = self.step_count, {"state": dict(sorted(state.items()))}

    def state_dict(self) -> dict[str, Any]:
        """Return the state of all processes, like the plain optimizer's. It is available in the process ``to`` of
        ``consolidate_state_dict`` after the last step; other processes raise StateDictError."""
        if len(self._loads) == 1:
            return super().state_dict()
        if self._consolidated is None or self._consolidated[0] != self.step_count:
            raise StateDictError(
                "ZeroRedundancyOptimizer: this process only has the state of its own parameters",
                remedy="call consolidate_state_dict(to=RANK) in all processes, then state_dict() in that one; or "
                "graphc.distributed.checkpoint.save({'optimizer': optimizer}, path)",
            )
        self._run_state_hooks("save")
        return self._run_state_hooks("saved", {**self._consolidated[1], "param_groups": self._numbered_groups()})

    def sharded_state_dict(self) -> dict[str, Any]:
        """Return the state of this process's parameters, and the options of all groups."""
        return super().state_dict()

    def needs_entry(self, path: Sequence[Any]) -> bool:
        """Return whether an entry is the state of one of this process's parameters, or no parameter state at all."""
        if len(path) < 2 or path[0] != "state":
            return True
        params = [p for g in self.param_groups for p in g["params"]]
        return path[1] >= len(params) or self.owner(params[path[1]]) == group().rank

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load the options, and the state of this process's parameters, from a state saved by any number of processes
        or by the plain optimizer. Raises StateDictError."""
        saved = [n for g in state_dict["param_groups"] for n in g["params"]]
        position = {n: i for i, n in enumerate(saved)}
        mine = {n: entries for n, entries in state_dict["state"].items() if self.needs_entry(("state", position[n]))}
        super().load_state_dict({**state_dict, "state": mine})
        self.optim.state, self._consolidated = self.state, None


def _check(optimizer_class: Any, process_group: Any, overlap_with_ddp: bool) -> None:
    name = getattr(optimizer_class, "__name__", repr(optimizer_class))
    if not isinstance(optimizer_class, type) or not issubclass(optimizer_class, Optimizer):
        raise ArgumentError(
            f"ZeroRedundancyOptimizer: {name} is not an optimizer class", remedy="pass graphc.optim.Adam"
        )
    steps = optimizer_class.step, optimizer_class._run
    if steps != (Optimizer.step, Optimizer._run) or not optimizer_class.is_compilable:
        raise ArgumentError(
            f"ZeroRedundancyOptimizer: a step of {name} is more than an update rule per parameter, and cannot be "
            f"sharded",
            remedy=f"use {name} itself, or an optimizer that defines update()",
        )
    check_group(process_group, "ZeroRedundancyOptimizer: process_group")
    if overlap_with_ddp:
        raise ArgumentError(
            "ZeroRedundancyOptimizer: overlap_with_ddp would update within the backward pass",
            remedy="use graphc.compile_step(model, loss, optimizer), whose reductions overlap with the backward pass",
        )


def _bytes(param: Tensor) -> int:
    return param.numel() * param.dtype.itemsize


def _table(params: Iterable[Tensor], first: int) -> dict[str, str]:
    return {f"parameter {i}": f"{p.dtype.name}{list(p.shape)}" for i, p in enumerate(params, first)}


def _broadcast_from(flat: np.ndarray, owner: int) -> None:
    """Broadcast parameters, adjacent in memory, from their owner to all other processes."""
    communicator = group().communicator
    communicator.purpose = f"parameters of rank {owner}"
    communicator.broadcast(flat, owner)
    communicator.purpose = ""


class _Message:
    """A message from one process to all others, in memory that compiled code lends."""

    def __init__(self, owner: int):
        self._owner = owner

    def __call__(self, state: Any, *memory: np.ndarray) -> None:
        _broadcast_from(memory[-1], self._owner)


def _send(flat: Tensor) -> None:
    """Send elements to all other processes, as part of the graph in a trace."""
    owner = group().rank
    if is_tracing():
        lend_python(front(), f"parameters from rank {owner}", _Message(owner), [flat], checked=True)
    else:
        _Message(owner)(None, np.array(on_host(flat._data), order="C"))


def _receive(size: int, dtype: DType, owner: int, after: list[Tensor]) -> Tensor:
    """Receive the elements the owner sends. Compiled code waits for them only after it has computed ``after``,
    which other processes wait for."""
    if is_tracing():
        kind = TensorType(dtype, (size,))
        return lend_python(front(), f"parameters from rank {owner}", _Message(owner), after, [kind], checked=True)[1]
    array = np.empty(size, dtype.numpy)
    _Message(owner)(None, array)
    return Tensor._wrap(array)


def _kinds(state: State) -> dict[str, Any]:
    return {name: (value.dtype.name, tuple(value.shape)) for name, value in state.items()}


def _broadcast(value: Tensor | None, kind: tuple[str, tuple[int, ...]], owner: int) -> Tensor:
    """Broadcast a tensor from its owner; the others only know its kind."""
    dtype, shape = kind
    array = np.empty(shape, BY_NAME[dtype].numpy) if value is None else on_host(value._data)
    return Tensor._wrap(group().broadcast(array, owner))
