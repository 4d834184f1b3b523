"""ZeroRedundancyOptimizer: each of several processes keeps the optimizer's state of its share of the parameters.

A share consists of whole parameters, so that every rule stays what it is, also one that looks at a parameter as a
whole; this is stage 1 of ZeRO (Rajbhandari et al. 2020).
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
"""Bytes of a message with several parameters: the memory that it takes, and enough for its time to be that of them."""
_SAME = "the same parameters in the same order, for example model.parameters(), in all processes"


class ZeroRedundancyOptimizer(Optimizer):
    """An optimizer of graphc.optim, or of one's own, whose state and work the processes share.

    All of them give the same parameters, in the same order, and have the same gradients, as DistributedDataParallel
    makes them. Each parameter has an owner, who alone has its state and computes its update; a step ends with a
    broadcast from each owner, so that all have all parameters, with the bits that one process would compute. Steps,
    closures, groups, schedules, hooks and clipping are those of any optimizer, in eager and in compiled code.
    ``state_dict`` needs ``consolidate_state_dict`` before; ``graphc.distributed.checkpoint`` saves shares as they are.

    ``optimizer_class`` makes the optimizer, with ``defaults`` as its arguments. ``parameters_as_bucket_view`` changes
    nothing. All processes make it, and add groups to it, together. Raises ArgumentError for a class that does more in a
    step than its update rule says (LBFGS), for another group of processes, and for ``overlap_with_ddp``;
    DistributedError on all of them where parameters differ.
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
        """The rank that updates a parameter."""
        self._loads = [0] * group().size
        """Bytes of the parameters that each rank updates."""
        self._buffers: dict[DType, np.ndarray] = {}
        self._whole: tuple[int, dict[str, Any]] | None = None
        """The state of all processes, and after which step it was collected."""
        self.optim = optimizer_class(params, **defaults)
        """The optimizer whose rule this one follows, with the same groups and the same state."""
        super().__init__(self.optim.param_groups, self.optim.defaults)
        self.schedulable = self.optim.schedulable  # type: ignore[misc]
        is_known = optimizer_class.__module__.partition(".")[0] == "graphc"
        self.native = self.optim.native if is_known else bool(self.optim.native)
        self.optim.param_groups, self.optim.state = self.param_groups, self.state

    # The rule is that of the other optimizer.

    @property
    def rule(self) -> Optimizer:
        """The optimizer whose rule this one follows."""
        return self.optim

    def check_group(self, group: Group) -> None:
        """What the other optimizer finds wrong with a group."""
        self.optim.check_group(group)

    def init_state(self, param: Tensor) -> State:
        """The state of a parameter before its first step."""
        return self.optim.init_state(param)

    def update(self, param: Tensor, grad: Tensor, state: State, hyper: Group) -> tuple[Tensor, State]:
        """The parameter and its state after one step."""
        return self.optim.update(param, grad, state, hyper)

    def hyper(self, group: Group) -> Group:
        """The numbers and flags of a group."""
        return self.optim.hyper(group)

    def number(self, group: Group, name: str) -> Any:
        """The present value of a number of a group."""
        return self.optim.number(group, name)

    # Who updates what

    def add_param_group(self, param_group: Group) -> None:
        """Adds parameters; the largest ones first, each belongs to who has least to do so far."""
        super().add_param_group(param_group)
        params = self.param_groups[-1]["params"]
        first = sum(len(g["params"]) for g in self.param_groups[:-1])
        agree(group(), "parameters of the optimizer", _table(params, first), _SAME)
        for param in sorted(params, key=lambda p: -_bytes(p)):
            owner = self._loads.index(min(self._loads))
            self._owners[param] = owner
            self._loads[owner] += _bytes(param)

    def owner(self, param: Tensor) -> int:
        """The rank of the process that updates a parameter. Raises ArgumentError where another number of processes work
        together than when the optimizer was made."""
        if len(self._loads) != group().size:
            raise ArgumentError(
                f"the optimizer was made for {len(self._loads)} processes, and there are {group().size}",
                remedy="a new one, with the state of a checkpoint",
            )
        return self._owners[param]

    def owned(self, params: list[Tensor]) -> list[Tensor]:
        """Those of some parameters that this process updates."""
        return [p for p in params if self.owner(p) == group().rank]

    def _run(self, closure: Any) -> Any:
        loss = super()._run(closure)
        for owner, parts in self._messages([p for g in self.param_groups for p in g["params"]]):
            sizes = [p.numel() for p in parts]
            flat = self._buffer(sum(sizes), parts[0].dtype)
            pieces = [v.reshape(p.shape) for v, p in zip(np.split(flat, np.cumsum(sizes)[:-1]), parts, strict=True)]
            is_mine = owner == group().rank
            if is_mine:
                for param, piece in zip(parts, pieces, strict=True):
                    np.copyto(piece, on_host(param._data))
            _travel(flat, owner)
            if not is_mine:
                self._write((p, Tensor._wrap(piece)) for p, piece in zip(parts, pieces, strict=True))
        return loss

    def _buffer(self, size: int, dtype: DType) -> np.ndarray:
        """Memory for a message, of which the optimizer keeps the largest one of each type."""
        if dtype not in self._buffers or self._buffers[dtype].size < size:
            self._buffers[dtype] = np.empty(size, dtype.numpy)
        return self._buffers[dtype][:size]

    def _messages(self, params: Sequence[Tensor]) -> list[tuple[int, list[Tensor]]]:
        """The messages after a step that updates these parameters, in order: who sends it, and what is in it, of one
        element type and of at most MESSAGE_BYTES, or one parameter."""
        found: list[tuple[int, list[Tensor]]] = []
        last: dict[tuple[int, DType], list[Tensor]] = {}
        for param in params if group().size > 1 else ():
            key = self.owner(param), param.dtype
            if key not in last or _bytes(param) + sum(map(_bytes, last[key])) > MESSAGE_BYTES:
                last[key] = []
                found.append((key[0], last[key]))
            last[key].append(param)
        return found

    def from_others(self, params: Sequence[Tensor], values: Mapping[int, Tensor]) -> list[tuple[Tensor, Tensor]]:
        """Sends the new values of what this process owns to the others; gives pairs of a parameter that another one
        owns and its new value."""
        messages = self._messages(params)
        given = [cat([values[id(p)].reshape(-1) for p in ps]) for owner, ps in messages if owner == group().rank]
        mine = iter(given)
        found: list[tuple[Tensor, Tensor]] = []
        for owner, parts in messages:
            if owner == group().rank:
                _send(next(mine))
                continue
            sizes = [p.numel() for p in parts]
            pieces = _receive(sum(sizes), parts[0].dtype, owner, given).split(sizes)
            found += [(p, piece.reshape(p.shape)) for p, piece in zip(parts, pieces, strict=True)]
        return found

    # Saving

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_buffers": {}}

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collects the state of all processes, which all call this, in process ``to``, whose ``state_dict`` then has
        it until the next step."""
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
            self._whole = self.step_count, {"state": dict(sorted(state.items()))}

    def state_dict(self) -> dict[str, Any]:
        """The state of all processes, as that of the plain optimizer, in the process that
        ``consolidate_state_dict(to=...)`` named after the last step; raises StateDictError in others."""
        if len(self._loads) == 1:
            return super().state_dict()
        if self._whole is None or self._whole[0] != self.step_count:
            raise StateDictError(
                "ZeroRedundancyOptimizer: this process has the state of its share of the parameters only",
                remedy="consolidate_state_dict(to=RANK) in all processes, then state_dict() in that one; or "
                "graphc.distributed.checkpoint.save({'optimizer': optimizer}, path)",
            )
        self._run_state_hooks("save")
        return self._run_state_hooks("saved", {**self._whole[1], "param_groups": self._numbered_groups()})

    def sharded_state_dict(self) -> dict[str, Any]:
        """The state of what this process owns, and the options of all groups."""
        return super().state_dict()

    def needs_entry(self, path: Sequence[Any]) -> bool:
        """Whether what stands at a path is state of what this process owns, or no state at all."""
        if len(path) < 2 or path[0] != "state":
            return True
        params = [p for g in self.param_groups for p in g["params"]]
        return path[1] >= len(params) or self.owner(params[path[1]]) == group().rank

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Takes options, and the state of what this process owns, from the state of all, which any number of processes,
        or the plain optimizer, have saved. Raises StateDictError."""
        saved = [n for g in state_dict["param_groups"] for n in g["params"]]
        place = {n: i for i, n in enumerate(saved)}
        mine = {n: entries for n, entries in state_dict["state"].items() if self.needs_entry(("state", place[n]))}
        super().load_state_dict({**state_dict, "state": mine})
        self.optim.state, self._whole = self.state, None


def _check(optimizer_class: Any, process_group: Any, overlap_with_ddp: bool) -> None:
    name = getattr(optimizer_class, "__name__", repr(optimizer_class))
    if not isinstance(optimizer_class, type) or not issubclass(optimizer_class, Optimizer):
        raise ArgumentError(f"ZeroRedundancyOptimizer: {name} is no class of optimizers", remedy="graphc.optim.Adam")
    steps = optimizer_class.step, optimizer_class._run
    if steps != (Optimizer.step, Optimizer._run) or not optimizer_class.is_compilable:
        raise ArgumentError(
            f"ZeroRedundancyOptimizer: a step of {name} is more than its rule for each parameter, and cannot be shared",
            remedy=f"{name} itself, or an optimizer that defines update()",
        )
    check_group(process_group, "ZeroRedundancyOptimizer: process_group")
    if overlap_with_ddp:
        raise ArgumentError(
            "ZeroRedundancyOptimizer: overlap_with_ddp would update within the backward pass",
            remedy="graphc.compile_step(model, loss, optimizer), whose reductions overlap with the backward pass",
        )


def _bytes(param: Tensor) -> int:
    return param.numel() * param.dtype.itemsize


def _table(params: Iterable[Tensor], first: int) -> dict[str, str]:
    return {f"parameter {i}": f"{p.dtype.name}{list(p.shape)}" for i, p in enumerate(params, first)}


def _travel(flat: np.ndarray, owner: int) -> None:
    """Parameters go from their owner to all others; they lie one behind the other."""
    communicator = group().communicator
    communicator.purpose = f"parameters of rank {owner}"
    communicator.broadcast(flat, owner)
    communicator.purpose = ""


class _Message:
    """A message from one process to all others, on memory that compiled code lends."""

    def __init__(self, owner: int):
        self._owner = owner

    def __call__(self, state: Any, *memory: np.ndarray) -> None:
        _travel(memory[-1], self._owner)


def _send(flat: Tensor) -> None:
    """Gives the elements to all other processes; in a trace as a part of the graph."""
    owner = group().rank
    if is_tracing():
        lend_python(front(), f"parameters from rank {owner}", _Message(owner), [flat], checked=True)
    else:
        _Message(owner)(None, np.array(on_host(flat._data), order="C"))


def _receive(size: int, dtype: DType, owner: int, after: list[Tensor]) -> Tensor:
    """What ``_send`` gives in the process that owns it. Compiled code does not wait for it before it has computed what
    stands in ``after``, for which others wait."""
    if is_tracing():
        kind = TensorType(dtype, (size,))
        return lend_python(front(), f"parameters from rank {owner}", _Message(owner), after, [kind], checked=True)[1]
    found = np.empty(size, dtype.numpy)
    _Message(owner)(None, found)
    return Tensor._wrap(found)


def _kinds(state: State) -> dict[str, Any]:
    return {name: (value.dtype.name, tuple(value.shape)) for name, value in state.items()}


def _broadcast(value: Tensor | None, kind: tuple[str, tuple[int, ...]], owner: int) -> Tensor:
    """The tensor that the owner has, and others are told the kind of."""
    dtype, shape = kind
    array = np.empty(shape, BY_NAME[dtype].numpy) if value is None else on_host(value._data)
    return Tensor._wrap(group().broadcast(array, owner))
