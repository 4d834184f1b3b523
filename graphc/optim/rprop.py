"""Rprop: steps by the sign of the gradient (Riedmiller and Braun 1993)."""

from __future__ import annotations

from typing import Any, Unpack

from graphc.base.errors import AttributeValueError
from graphc.ops.pointwise import elementwise as ew
from graphc.optim.optimizer import Group, ImplementationOptions, Optimizer, State, settings_of, step_counter, zeros_like
from graphc.tensors import composite
from graphc.tensors.tensor import Tensor


class Rprop(Optimizer):
    """Separate step size for each element; it grows while the gradient keeps its sign, and shrinks when the sign
    changes."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        *,
        maximize: bool = False,
        **options: Unpack[ImplementationOptions],
    ):
        super().__init__(params, settings_of(locals()), options)

    def check_group(self, group: Group) -> None:
        """Check the options; the first of ``etas`` must be below 1, the second above."""
        super().check_group(group)
        if not 0.0 < group["etas"][0] < 1.0 < group["etas"][1]:
            raise AttributeValueError(f"Rprop: etas {group['etas']} must be one number below 1 and one above")

    def init_state(self, param: Tensor) -> State:
        """Return the initial state: ``step``, the previous gradient ``prev``, ``step_size``."""
        rate = float(self.group_of(param)["lr"]) * (1 + 1j if param.dtype.is_complex else 1)
        return {"step": step_counter(), "prev": zeros_like(param), "step_size": zeros_like(param) + rate}

    def update(self, param: Tensor, grad: Tensor, state: State, hyper: Group) -> tuple[Tensor, State]:
        """Compute a step (the variant without backtracking)."""
        grad = -grad if hyper["maximize"] else grad
        shrink, grow = hyper["etas"]
        sign_product = grad * state["prev"]
        has_flipped = ew.lt(sign_product, 0)
        factor = ew.where(ew.gt(sign_product, 0), grow, ew.where(has_flipped, shrink, ew.mul(sign_product, 0) + 1.0))
        size = composite.clamp(state["step_size"] * factor, *hyper["step_sizes"])
        grad = ew.where(has_flipped, 0.0, grad)
        return param - ew.sign(grad) * size, {"step": state["step"] + 1, "prev": grad, "step_size": size}
