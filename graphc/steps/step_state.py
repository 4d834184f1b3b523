"""State of a compiled training step between calls: sums of gradients, the loss scale, averages of weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, StateDictError
from graphc.nn.module import Module
from graphc.ops import dispatch
from graphc.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from graphc.steps.step_options import DynamicScale, StepOptions
from graphc.steps.step_reductions import reductions_of
from graphc.tape.grad_mode import no_grad
from graphc.tensors.placement import is_on_device
from graphc.tensors.random.generator import get_rng_state, set_rng_state
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front
from graphc.tracing.trace import modules_of

VERSION = 1


class StepState:
    """The state of one step apart from model and optimizers."""

    def __init__(self, options: StepOptions):
        self.options = options
        self.position = 0
        """Number of micro-batches added up since the last update."""
        self.sums: dict[int, Tensor] = {}
        """Sums of gradients, by ``id`` of the parameter."""
        self.pending: frozenset[int] = frozenset()
        """The ``id`` of each parameter whose gradients were added to a sum since the last update."""
        self.scaling: dict[str, Tensor] = {}
        """With a dynamic loss scale: the scale, and the number of consecutive finite updates."""
        if isinstance(options.loss_scale, DynamicScale):
            self.scaling = options.loss_scale.state()
        self.reductions = reductions_of(options)
        """Averages of gradients over processes, and the check that the processes agree on them."""
        self.source = _source(options)
        """The module whose weights are averaged."""
        self.average: AveragedModel | None = None
        """The module of averages."""
        if isinstance(options.ema, AveragedModel):
            self.average = options.ema
        elif options.ema is not None:
            self.average = AveragedModel(self.source, multi_avg_fn=get_ema_multi_avg_fn(options.ema))

    @property
    def is_update(self) -> bool:
        """Whether the next call updates the parameters."""
        return self.position + 1 >= self.options.accumulate

    def meet(self, params: frozenset[int], updates: bool) -> None:
        """Raise ArgumentError before an update that lacks the gradient of a parameter in the sums."""
        if updates and not self.pending <= params:
            count = len(self.pending - params)
            raise ArgumentError(
                f"compile_step: micro-batches since the last update have gradients of {count} parameters on which the "
                "loss of this one, which updates, does not depend",
                remedy="use the same modules in each micro-batch; or compile a training function with graphc.compile",
            )

    def advance(self, params: frozenset[int]) -> None:
        """Count a call that had gradients of these parameters."""
        if self.options.accumulate == 1:
            return
        self.pending = frozenset() if self.is_update else self.pending | params
        self.position = 0 if self.is_update else self.position + 1

    def sum_of(self, param: Tensor) -> Tensor:
        """Return the sum of a parameter's gradients, created at the first use."""
        if id(param) not in self.sums:
            with dispatch.use(dispatch.default()):  # not a constant of the trace that uses it first
                zeros = front().constant(np.zeros(param.shape, param.dtype.numpy))
                self.sums[id(param)] = zeros.to(param.device) if is_on_device(param._data) else zeros
        return self.sums[id(param)]

    def _parameters(self) -> list[Any]:
        return [p for o in self.options.optimizers for group in o.param_groups for p in group["params"]]

    def copied(self) -> dict[str, Any]:
        """Return the state for a copy of the step."""
        sums = [(p, self.sums[id(p)]) for p in self._parameters() if id(p) in self.sums]
        pending = [p for p in self._parameters() if id(p) in self.pending]
        state = {"position": self.position, "scaling": self.scaling, "average": self.average}
        return {**state, "sums": sums, "pending": pending}

    def begin(self, copied: Mapping[str, Any]) -> None:
        """Start from the state that ``copied`` returned."""
        self.position, self.scaling, self.average = copied["position"], copied["scaling"], copied["average"]
        self.sums = {id(param): total for param, total in copied["sums"]}
        self.pending = frozenset(map(id, copied["pending"]))

    def state_dict(self, sharded: bool = False) -> dict[str, Any]:
        """See ``CompiledStep.state_dict``, and with ``sharded`` its ``sharded_state_dict``."""
        numbers = {id(p): i for i, p in enumerate(self._parameters())}
        return {
            "version": VERSION,
            "optimizers": [o.sharded_state_dict() if sharded else o.state_dict() for o in self.options.optimizers],
            "step_counts": [o.step_count for o in self.options.optimizers],
            "random": get_rng_state(),
            "position": self.position,
            "sums": {numbers[key]: total for key, total in self.sums.items() if key in self.pending & numbers.keys()},
            "loss_scale": dict(self.scaling),
            "ema": None if self.average is None else dict(self.average.state_dict()),
        }

    def needs_entry(self, path: Sequence[Any]) -> bool:
        """See ``CompiledStep.needs_entry``."""
        optimizers = self.options.optimizers
        if len(path) < 2 or path[0] != "optimizers" or path[1] >= len(optimizers):
            return True
        return optimizers[path[1]].needs_entry(path[2:])

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """See ``CompiledStep.load_state_dict``."""
        self._check(saved)
        for optimizer, stored, count in zip(
            self.options.optimizers, saved["optimizers"], saved["step_counts"], strict=True
        ):
            optimizer.load_state_dict(stored)
            optimizer.step_count = int(count)
        parameters = self._parameters()
        with no_grad():
            for stored in self.sums.values():
                stored.zero_()
            for number, stored in saved["sums"].items():
                self.sum_of(parameters[int(number)]).copy_(stored)
            self.pending = frozenset(id(parameters[int(number)]) for number in saved["sums"])
            for name, stored in self.scaling.items():
                stored.copy_(saved["loss_scale"][name])
        if self.average is not None:
            self.average.load_state_dict(saved["ema"])
        self.position = int(saved["position"])
        set_rng_state(saved["random"])

    def _check(self, saved: Mapping[str, Any]) -> None:
        """Raise StateDictError, with nothing changed, for the state of a step with other options."""
        missing = [name for name in self.state_dict(sharded=True) if name not in saved]
        if missing:
            raise StateDictError(f"the state of a compiled step lacks {', '.join(map(repr, missing))}")
        if saved["version"] != VERSION:
            raise StateDictError(f"the state of a compiled step has version {saved['version']}, expected {VERSION}")
        counts = len(saved["optimizers"]), len(self.options.optimizers)
        if counts[0] != counts[1]:
            raise StateDictError(f"the state is from a step with {counts[0]} optimizers, this one has {counts[1]}")
        if (saved["ema"] is None) != (self.average is None):
            raise StateDictError(
                "only one of the state and the step has averages of weights",
                remedy="pass ema= to compile_step as when the state was saved",
            )
        if set(saved["loss_scale"]) != set(self.scaling):
            raise StateDictError(
                "only one of the state and the step has a dynamic loss scale",
                remedy="pass loss_scale= to compile_step as when the state was saved",
            )
        if int(saved["position"]) >= self.options.accumulate:
            raise StateDictError(
                f"the state was saved after {saved['position']} micro-batches, and this step updates after "
                f"{self.options.accumulate}",
                remedy="pass accumulate= to compile_step as when the state was saved",
            )
        shapes = [tuple(p.shape) for p in self._parameters()]
        for number, total in saved["sums"].items():
            if int(number) >= len(shapes) or tuple(total.shape) != shapes[int(number)]:
                raise StateDictError(f"the sum of gradients {number} has shape {list(total.shape)}, which does not fit")


def _source(options: StepOptions) -> Any:
    if options.ema is None:
        return None
    roots = [getattr(m, "_target", m) for _, m in modules_of(options.model)]
    if len(roots) != 1 or not isinstance(roots[0], Module):
        raise ArgumentError(
            "compile_step: ema averages the weights of one module, and the model is a function of "
            f"{len(roots)} of them",
            remedy="put them into one module; or call AveragedModel.update_parameters in a training function",
        )
    if not isinstance(options.ema, (float, int, AveragedModel)) or isinstance(options.ema, bool):
        raise ArgumentError(
            f"compile_step: ema is {options.ema!r}", remedy="pass ema=0.999, or an AveragedModel(model)"
        )
    return roots[0]
