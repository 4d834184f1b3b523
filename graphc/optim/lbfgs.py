"""L-BFGS (Liu and Nocedal 1989): steps by an inverse Hessian estimated from recent gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, ClassVar, NamedTuple

import numpy as np

from graphc.base.errors import ArgumentError, AttributeValueError
from graphc.optim.optimizer import Group, Optimizer, State, settings_of
from graphc.tape.grad_mode import enable_grad
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front

_DECREASE = 1e-4
"""Fraction of the decrease predicted by the slope at 0 that a point must reach."""
_CURVATURE = 0.9
"""Fraction of the slope at 0 that may remain."""


class Point(NamedTuple):
    """A point on the line."""

    t: float
    value: float
    grad: np.ndarray
    slope: float


Evaluate = Callable[[float], Point]


def cubic_minimum(a: Point, b: Point, low: float, high: float) -> float:
    """Return the minimum, between ``low`` and ``high``, of the cubic through values and slopes at two points."""
    if a.t > b.t:
        a, b = b, a
    width = b.t - a.t
    first = a.slope + b.slope + 3.0 * (a.value - b.value) / width if width else math.nan
    square = first * first - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    root = math.sqrt(square)
    scale = b.slope - a.slope + 2.0 * root
    if not scale:
        return (low + high) / 2.0
    return min(max(b.t - width * (b.slope + root - first) / scale, low), high)


def strong_wolfe(
    evaluate: Evaluate, start: Point, t: float, size: float, limit: int, tolerance: float
) -> tuple[Point, int]:
    """Return (a point, number of evaluations): a point that satisfies the conditions, or the best after ``limit``
    trials.

    ``start`` is the point at 0, ``t`` the first trial, ``size`` the largest element of the direction. The search ends
    when it would move no parameter by more than ``tolerance``.
    """
    search = _Search(evaluate, start, size, limit, tolerance)
    bracket = search.bracket(t)
    if len(bracket) > 1:
        bracket = [search.zoom(bracket)]
    return bracket[0], search.count


class _Search:
    def __init__(self, evaluate: Evaluate, start: Point, size: float, limit: int, tolerance: float):
        self._evaluate = evaluate
        self.start = start
        self.size = size
        self.limit = limit
        self.tolerance = tolerance
        self.count = 0

    def _at(self, t: float) -> Point:
        self.count += 1
        return self._evaluate(t)

    def _too_high(self, point: Point) -> bool:
        return point.value > self.start.value + _DECREASE * point.t * self.start.slope

    def _flat(self, point: Point) -> bool:
        return abs(point.slope) <= -_CURVATURE * self.start.slope

    def bracket(self, t: float) -> list[Point]:
        """Return one point that satisfies the conditions, or two with such a point between them."""
        before, point = self.start, self._at(t)
        while self.count <= self.limit:
            if self._too_high(point) or (self.count > 2 and point.value >= before.value):
                return [before, point]
            if self._flat(point):
                return [point]
            if point.slope >= 0:
                return [before, point]
            nearest = point.t + 0.01 * (point.t - before.t)
            before, point = point, self._at(cubic_minimum(before, point, nearest, point.t * 10))
        return [self.start, point]

    def zoom(self, bracket: list[Point]) -> Point:
        """Return the first trial between two points that satisfies the conditions, or the lower end after the last
        trial."""
        stalled = False
        low = _lower(bracket)
        while self.count <= self.limit and abs(bracket[1].t - bracket[0].t) * self.size >= self.tolerance:
            t, stalled = _trial(bracket, stalled)
            point, best = self._at(t), bracket[low]
            if self._too_high(point) or point.value >= best.value:
                bracket[1 - low] = point
                low = _lower(bracket)
                continue
            if self._flat(point):
                return point
            if point.slope * (bracket[1 - low].t - best.t) >= 0:
                bracket[1 - low] = best
            bracket[low] = point
        return bracket[low]


def _lower(bracket: list[Point]) -> int:
    return 0 if bracket[0].value <= bracket[1].value else 1


def _trial(bracket: list[Point], stalled: bool) -> tuple[float, bool]:
    """Return the next trial; one near an end is moved inside if the last one was near an end too."""
    low, high = sorted(point.t for point in bracket)
    t = cubic_minimum(bracket[0], bracket[1], low, high)
    margin = 0.1 * (high - low)
    if min(high - t, t - low) >= margin:
        return t, False
    if stalled or t >= high or t <= low:
        return (high - margin if abs(t - high) < abs(t - low) else low + margin), False
    return t, True


class LBFGS(Optimizer):
    """Quasi-Newton optimizer: one ``step(closure)`` makes up to ``max_iter`` iterations.

    ``closure`` clears gradients, computes the loss, calls backward and returns the loss; each of up to ``max_eval``
    evaluations calls it again.

    All parameters are in one group. ``line_search_fn`` is None (steps of size ``lr``) or ``"strong_wolfe"``. The state
    keeps ``history_size`` gradients and steps of all parameters.

    Example:
        >>> import graphc as gc
        >>> x = gc.tensor([4.0], requires_grad=True)
        >>> optimizer = gc.optim.LBFGS([x], lr=0.5)
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = ((x - 1) ** 2).sum()
        ...     loss.backward()
        ...     return loss
        >>> loss = optimizer.step(closure)
        >>> abs(x.item() - 1) < 1e-3
        True
    """

    schedulable = ("lr",)

    is_compilable: ClassVar[bool] = False

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ):
        super().__init__(
            params, settings_of(locals()) | {"max_eval": max_iter * 5 // 4 if max_eval is None else max_eval}
        )

    def check_group(self, group: Group) -> None:
        """Check the options, that there is a single group, and the name of the line search."""
        super().check_group(group)
        if self.param_groups:
            raise AttributeValueError("LBFGS takes a single group of parameters")
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise AttributeValueError(
                f"LBFGS: line_search_fn must be None or 'strong_wolfe', got {group['line_search_fn']!r}"
            )

    def init_state(self, param: Tensor) -> State:
        """Raise ArgumentError: LBFGS has no rule for a single parameter, and so no compiled step."""
        raise ArgumentError(
            "a compiled step cannot run LBFGS, which evaluates the loss several times",
            remedy="call optimizer.step(closure), whose closure may call a compiled model",
        )

    def _load_state(self, param: Tensor, entries: Mapping[str, Any]) -> State:
        return deepcopy(dict(entries))

    def _run(self, closure: Callable[[], Any] | None) -> Any:
        if closure is None:
            raise ArgumentError("LBFGS.step needs a closure that computes the loss and its gradients")
        return _Step(self, closure).run()


class _Step:
    """One call of ``step``. Vectors are flat arrays of all parameters."""

    def __init__(self, optimizer: LBFGS, closure: Callable[[], Any]):
        self.group = optimizer.param_groups[0]
        self.params: list[Tensor] = self.group["params"]
        self.closure = closure
        self.state: dict[str, Any] = optimizer.state[self.params[0]]
        self.state.setdefault("func_evals", 0)
        self.state.setdefault("n_iter", 0)
        self.evaluations = 0

    # Vectors

    def _gradient(self) -> np.ndarray:
        pairs = ((p, p.grad) for p in self.params)
        gradients = [np.zeros(p.numel(), p.dtype.numpy) if g is None else g._values(force=True) for p, g in pairs]
        return np.concatenate([gradient.reshape(-1) for gradient in gradients])

    def _values(self) -> np.ndarray:
        return np.concatenate([p._values(force=True).reshape(-1) for p in self.params])

    def _assign(self, values: np.ndarray) -> None:
        offset = 0
        for p in self.params:
            segment = values[offset : offset + p.numel()].reshape(p.shape).astype(p.dtype.numpy)
            p.copy_(front().constant(segment))
            offset += p.numel()

    def _evaluate(self) -> tuple[Any, float, np.ndarray]:
        with enable_grad():
            loss = self.closure()
        self.evaluations += 1
        self.state["func_evals"] += 1
        return loss, float(loss.detach().item() if isinstance(loss, Tensor) else loss), self._gradient()

    # The algorithm

    def run(self) -> Any:
        first, loss, grad = self._evaluate()
        if self._flat(grad):
            return first
        for iteration in range(1, self.group["max_iter"] + 1):
            self.state["n_iter"] += 1
            direction = self._direction(grad)
            t = self._first_length(grad)
            before, slope = loss, float(grad @ direction)
            self.state |= {"prev_flat_grad": _as_tensor(grad), "d": _as_tensor(direction), "t": t}
            if slope > -self.group["tolerance_change"]:
                break
            last = iteration == self.group["max_iter"]
            loss, grad, t = self._move(direction, t, Point(0.0, loss, grad, slope), last)
            self.state["t"] = t
            if last or self._done(loss, before, grad, direction * t):
                break
        return first

    def _flat(self, grad: np.ndarray) -> bool:
        return not grad.size or float(np.abs(grad).max()) <= self.group["tolerance_grad"]

    def _done(self, loss: float, before: float, grad: np.ndarray, change: np.ndarray) -> bool:
        least = self.group["tolerance_change"]
        small = float(np.abs(change).max()) <= least or abs(loss - before) < least
        return self.evaluations >= self.group["max_eval"] or self._flat(grad) or small

    def _first_length(self, grad: np.ndarray) -> float:
        lr = float(self.group["lr"])
        return min(1.0, 1.0 / float(np.abs(grad).sum())) * lr if self.state["n_iter"] == 1 else lr

    def _direction(self, grad: np.ndarray) -> np.ndarray:
        """Return minus the estimated inverse Hessian times the gradient (Nocedal 1980, two loops)."""
        state = self.state
        if state["n_iter"] == 1:
            state |= {"old_dirs": [], "old_stps": [], "ro": [], "H_diag": 1.0}
            return -grad
        self._remember(grad - state["prev_flat_grad"].numpy(), state["d"].numpy() * state["t"])
        pairs = [
            (y.numpy(), s.numpy(), r) for y, s, r in zip(state["old_dirs"], state["old_stps"], state["ro"], strict=True)
        ]
        direction, coefficients = -grad, []
        for y, s, r in reversed(pairs):
            coefficients.append(float(s @ direction) * r)
            direction = direction - coefficients[-1] * y
        direction = direction * state["H_diag"]
        for (y, s, r), coefficient in zip(pairs, reversed(coefficients), strict=True):
            direction = direction + s * (coefficient - float(y @ direction) * r)
        return direction

    def _remember(self, y: np.ndarray, s: np.ndarray) -> None:
        state, product = self.state, float(y @ s)
        if product <= 1e-10:
            return
        state["old_dirs"].append(_as_tensor(y))
        state["old_stps"].append(_as_tensor(s))
        state["ro"].append(1.0 / product)
        state["H_diag"] = product / float(y @ y)
        for name in ("old_dirs", "old_stps", "ro"):
            del state[name][: -self.group["history_size"]]

    def _move(self, direction: np.ndarray, t: float, start: Point, last: bool) -> tuple[float, np.ndarray, float]:
        """Take a step along the direction; return loss, gradient and step length."""
        origin = self._values()
        if self.group["line_search_fn"] is None:
            self._assign(origin + direction * t)
            if last:
                return start.value, start.grad, t
            _, loss, grad = self._evaluate()
            return loss, grad, t

        def at(t: float) -> Point:
            self._assign(origin + direction * t)
            _, loss, grad = self._evaluate()
            return Point(t, loss, grad, float(grad @ direction))

        size, limit = float(np.abs(direction).max()), self.group["max_eval"] - self.evaluations
        point, _ = strong_wolfe(at, start, t, size, limit, self.group["tolerance_change"])
        self._assign(origin + direction * point.t)
        return point.value, point.grad, point.t


def _as_tensor(vector: np.ndarray) -> Tensor:
    return front().constant(vector)
