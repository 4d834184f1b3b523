"""Stochastic gradient descent with momentum, dampening, Nesterov's variant and weight decay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

from graphc.base.errors import AttributeValueError
from graphc.ops.pointwise import elementwise as ew
from graphc.optim.optimizer import (
    Group,
    ImplementationOptions,
    Optimizer,
    State,
    decayed_gradient,
    is_zero,
    settings_of,
    step_counter,
    zeros_like,
)
from graphc.tensors.tensor import Tensor


class SGD(Optimizer):
    """Stochastic gradient descent with optional momentum.

    ``v = momentum v + (1 - dampening) g``, ``p = p - lr v``; with ``nesterov``, ``g + momentum v`` replaces v. The
    first step sets ``v = g``. ``weight_decay`` adds ``weight_decay p`` to the gradient; ``maximize`` ascends instead.

    Example:
        >>> import graphc as gc
        >>> weight = gc.tensor([1.0], requires_grad=True)
        >>> optimizer = gc.optim.SGD([weight], lr=0.1)
        >>> (weight**2).sum().backward()
        >>> optimizer.step()
        >>> weight
        tensor([0.8000], requires_grad=True)
    """

    schedulable = ("lr", "weight_decay", "momentum")
    optional_entries: ClassVar[Mapping[str, str | None]] = {"momentum_buffer": "momentum", "step": "dampening"}

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        **options: Unpack[ImplementationOptions],
    ):
        super().__init__(params, settings_of(locals()), options)

    def check_group(self, group: Group) -> None:
        """Check the options; Nesterov's variant needs momentum and no dampening."""
        super().check_group(group)
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise AttributeValueError(
                f"SGD: nesterov does not work with momentum {group['momentum']} and dampening {group['dampening']}",
                remedy="pass a momentum above 0 and no dampening",
            )

    def init_state(self, param: Tensor) -> State:
        """Return the initial state: ``momentum_buffer``, and ``step`` if the first step differs from the others. A
        buffer without ``step`` has had its first step."""
        group = self.group_of(param)
        if is_zero(group["momentum"]):
            return {}
        state = {"momentum_buffer": zeros_like(param)}
        if not is_zero(group["dampening"]):
            has_begun = "momentum_buffer" in self.state.get(param, ())
            state["step"] = step_counter() + 1 if has_begun else step_counter()
        return state

    def update(self, param: Tensor, grad: Tensor, state: State, hyper: Group) -> tuple[Tensor, State]:
        """Compute a step."""
        grad = decayed_gradient(param, grad, hyper)
        momentum, dampening = hyper["momentum"], hyper["dampening"]
        if is_zero(momentum):
            return param - hyper["lr"] * grad, {}
        new_state: State = {}
        buffer = state["momentum_buffer"] * momentum + grad * (1.0 - dampening)
        if "step" in state:
            buffer = ew.where(state["step"] == 0, grad, buffer)
            new_state["step"] = state["step"] + 1
        new_state["momentum_buffer"] = buffer
        direction = grad + momentum * buffer if hyper["nesterov"] else buffer
        return param - hyper["lr"] * direction, new_state
