"""Rprop: steps by the sign of the gradient (Riedmiller and Braun 1993)."""

from __future__ import annotations

from typing import Any, Unpack

from graphc.base.errors import AttributeValueError
from graphc.ops import elementwise as ew
from graphc.optim.optimizer import Group, Optimizer, State, Ways, step_counter, zeros_like
from graphc.tensors import composite
from graphc.tensors.tensor import Tensor


class Rprop(Optimizer):
    """Every element has its own step size, which grows while the gradient keeps its sign and shrinks when it turns."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        *,
        maximize: bool = False,
        **ways: Unpack[Ways],
    ):
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize}, ways)

    def check_group(self, group: Group) -> None:
        """The first of ``etas`` is below 1, the second above."""
        super().check_group(group)
        if not 0.0 < group["etas"][0] < 1.0 < group["etas"][1]:
            raise AttributeValueError(f"Rprop: etas {group['etas']} are not one number below 1 and one above")

    def init_state(self, param: Tensor) -> State:
        """``step``, the previous gradient ``prev``, ``step_size``."""
        rate = float(self.group_of(param)["lr"]) * (1 + 1j if param.dtype.is_complex else 1)
        return {"step": step_counter(), "prev": zeros_like(param), "step_size": zeros_like(param) + rate}

    def update(self, param: Tensor, grad: Tensor, state: State, hyper: Group) -> tuple[Tensor, State]:
        """One step (the variant without backtracking)."""
        grad = -grad if hyper["maximize"] else grad
        shrink, grow = hyper["etas"]
        turn = grad * state["prev"]
        turned = ew.lt(turn, 0)
        factor = ew.where(ew.gt(turn, 0), grow, ew.where(turned, shrink, ew.mul(turn, 0) + 1.0))
        size = composite.clamp(state["step_size"] * factor, *hyper["step_sizes"])
        grad = ew.where(turned, 0.0, grad)
        return param - ew.sign(grad) * size, {"step": state["step"] + 1, "prev": grad, "step_size": size}
