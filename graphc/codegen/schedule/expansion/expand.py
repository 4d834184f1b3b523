"""Vector math: rewrites exp, log, tanh, erf and the like in a kernel into primitive operations.

needs: a kernel whose Lets may use transcendental operations (``ScalarOp.transcendental``) on f32 and f64.
does: replaces each by an expression of add, mul, fma, select, bit operations and ldexp; equal parts are shared.
leaves: a kernel with the same buffers, loops and names and no transcendental operation.

before::            after::
    v2 = exp(v1)        a1 = min(89, v1)
    store y, v2         ...
                        a9 = ldexp(a7, a8)
                        store y, a9

docs/vector_math.md lists the largest error and the number of operations of each function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from graphc.base.dtypes import DType, float32, float64
from graphc.codegen.schedule.expansion import angle, erfc, exp_log, hyperbolic, periodic, pow
from graphc.ir.kernel.map import map_parts, map_statements, names_given
from graphc.ir.kernel.nest import NestBuilder, Scalar
from graphc.ir.kernel.scalar import SCALAR_OPS
from graphc.ir.kernel.statements import Kernel, Let, Loop, Ref, Stmt, walk

Expression = Callable[..., Scalar]
"""``(nest, *operands) -> Scalar``."""

EXPRESSIONS: dict[tuple[str, DType], Expression] = {
    ("pow", float32): pow.pow_f32,
    ("pow", float64): pow.pow_f64,
}
"""Expression for each transcendental operation on each type."""
for _dtype in (float32, float64):
    EXPRESSIONS["atan2", _dtype] = angle.atan2
    EXPRESSIONS["exp", _dtype] = exp_log.exp
    EXPRESSIONS["expm1", _dtype] = exp_log.expm1
    EXPRESSIONS["log", _dtype] = exp_log.log
    EXPRESSIONS["log1p", _dtype] = exp_log.log1p
    EXPRESSIONS["exp2", _dtype] = exp_log.exp2
    EXPRESSIONS["log2", _dtype] = exp_log.log2
    EXPRESSIONS["log10", _dtype] = exp_log.log10
    EXPRESSIONS["sinh", _dtype] = hyperbolic.sinh
    EXPRESSIONS["cosh", _dtype] = hyperbolic.cosh
    EXPRESSIONS["tanh", _dtype] = exp_log.tanh
    EXPRESSIONS["erf", _dtype] = exp_log.erf
    EXPRESSIONS["erfc", _dtype] = erfc.erfc
    EXPRESSIONS["tan", _dtype] = periodic.tan
    EXPRESSIONS["sin", _dtype] = periodic.sin
    EXPRESSIONS["cos", _dtype] = periodic.cos


class _Expander(NestBuilder):
    """Rewriter that expands single statements into expressions; ``reserved`` are all names of the kernel."""

    def __init__(self, reserved: set[str]) -> None:
        super().__init__()
        self._reserved = reserved
        self._replaced: dict[str, Ref] = {}

    def fresh(self, prefix: str = "a") -> str:
        """Return an unused name; the prefix is always ``a``."""
        name = super().fresh("a")
        while name in self._reserved:
            name = super().fresh("a")
        return name

    def expand(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return the statements with transcendental Lets expanded."""
        return map_statements(body, leaf=self._leaf, enter=self._enter, leave=self._leave)

    def _leaf(self, stmt: Stmt) -> Sequence[Stmt]:
        if not (isinstance(stmt, Let) and SCALAR_OPS[stmt.op].transcendental):
            return (map_parts(stmt, ref=self._ref),)
        operands = [Scalar(self, self._ref(a), stmt.dtype) for a in stmt.args]
        self._frames.append([])
        self._replaced[stmt.name] = EXPRESSIONS[stmt.op, stmt.dtype](self, *operands).ref
        return self._frames.pop()

    def _enter(self, loop: Loop) -> None:
        self._known.append({})

    def _leave(self, loop: Loop) -> Sequence[Stmt]:
        self._known.pop()
        return (loop,)

    def _ref(self, ref: Ref) -> Ref:
        return self._replaced.get(ref, ref) if isinstance(ref, str) else ref


def expand(kernel: Kernel) -> Kernel:
    """Expand every transcendental operation of a kernel; return the same kernel when it has none."""
    stmts = [stmt for stmt, _ in walk(kernel.body)]
    if not any(isinstance(s, Let) and SCALAR_OPS[s.op].transcendental for s in stmts):
        return kernel
    return replace(kernel, body=_Expander(names_given(kernel.body)).expand(kernel.body))
