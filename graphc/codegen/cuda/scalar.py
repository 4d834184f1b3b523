"""Scalar operations of kernels as expressions of CUDA C."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphc.base.dtypes import DType, float32
from graphc.base.errors import CompileError
from graphc.codegen.cuda.types import register_type, unsigned_type
from graphc.ir.kernel.large_angle import PARTS

_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "weigh": "*", "div": "/"}
_BITS = {"and": "&", "or": "|", "xor": "^"}
_FUNCTIONS = {
    **{"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "roundeven": "rint", "abs": "fabs"},
    **{"copysign": "copysign", "fma": "fma", "rem": "fmod"},
}


def expression(op: str, args: Sequence[str], types: Sequence[DType], result: DType) -> str:
    """Return ``op(args)``; raises CompileError for an operation without CUDA C text."""
    if op in _SPECIAL:
        return _SPECIAL[op](args, types, result)
    if op in _COMPARE:
        return f"({args[0]} {_COMPARE[op]} {args[1]})"
    text = _of_floats(op, args, result) if result.kind == "f" else _of_integers(op, args, result)
    if text is None:
        raise CompileError(f"CUDA C has no text for {op} of {types[0]}")
    return text


def function(name: str, dtype: DType) -> str:
    """Return a function of the math library for a float."""
    return f"GC_FN({name}{'f' if dtype.bits == 32 else ''})"


def combined(combine: str, a: str, b: str, dtype: DType) -> str:
    """Return the value of an accumulator after adding a value."""
    return expression(combine, (a, b), (dtype, dtype), dtype)


def _of_floats(op: str, args: Sequence[str], result: DType) -> str | None:
    if op in _ARITHMETIC:
        return f"({args[0]} {_ARITHMETIC[op]} {args[1]})"
    if op in _FUNCTIONS:
        return f"{function(_FUNCTIONS[op], result)}({', '.join(args)})"
    return f"(-{args[0]})" if op == "neg" else None


def _of_integers(op: str, args: Sequence[str], result: DType) -> str | None:
    kind = register_type(result)
    if op in _BITS:
        return f"({kind})({args[0]} {_BITS[op]} {args[1]})"
    if result.kind == "b":
        return {"not": f"(!{args[0]})"}.get(op)
    wrapped = unsigned_type(result)
    if op in ("add", "sub", "mul"):
        # NOTE: a product of two shorts would be an int, which must not overflow.
        wide = "unsigned" if result.bits == 16 else wrapped
        return f"({kind})(({wide}){args[0]} {_ARITHMETIC[op]} ({wide}){args[1]})"
    if op == "neg":
        return f"({kind})(({wrapped})0 - ({wrapped}){args[0]})"
    if op == "abs":
        least = f"({kind})(({wrapped})0 - ({wrapped}){args[0]})"
        return args[0] if result.kind == "u" else f"({args[0]} < 0 ? {least} : {args[0]})"
    if op == "div":
        return f"gc_div<{kind}, {wrapped}>({args[0]}, {args[1]})"
    if op == "rem":
        return f"gc_rem<{kind}>({args[0]}, {args[1]})"
    if op == "not":
        return f"({kind})~{args[0]}"
    if op in ("shl", "shr", "shr_unsigned"):
        op = "shr_unsigned" if op == "shr" and result.kind == "u" else op
        return f"gc_{op}<{kind}, {wrapped}, {result.bits}>({args[0]}, {args[1]})"
    return None


def _extreme(op: str) -> Callable[[Sequence[str], Sequence[DType], DType], str]:
    def text(args: Sequence[str], types: Sequence[DType], result: DType) -> str:
        if result.kind == "b":
            return f"({args[0]} {'||' if op == 'max' else '&&'} {args[1]})"
        return f"gc_{op}<{register_type(result)}>({args[0]}, {args[1]})"

    return text


def _select(args: Sequence[str], types: Sequence[DType], result: DType) -> str:
    return f"({args[0]} ? {args[1]} : {args[2]})"


def _cast(args: Sequence[str], types: Sequence[DType], result: DType) -> str:
    (value,), source, kind = args, types[0], register_type(result)
    if source.kind == "h":
        return value if source is result else _cast([f"gc_widen_{source.name}({value})"], [float32], result)
    if result.kind == "h":
        return f"gc_narrow_{result.name}({_cast(args, types, float32)})"
    if result.kind == "b":
        return f"({value} != 0)"
    if source.kind == "f" and result.kind in "iu":
        bits = result.bits - (result.kind == "i")
        least = f"({kind})({-(2**bits) + 1}ll - 1)" if result.kind == "i" else "0"
        return f"gc_to_integer<{kind}>({value}, ({kind}){least}, ({kind}){2**bits - 1}{'u' if bits == 64 else ''}ll)"
    return f"({kind}){value}"


def _bitcast(args: Sequence[str], types: Sequence[DType], result: DType) -> str:
    return f"gc_bitcast<{register_type(result)}>(({register_type(types[0])}){args[0]})"


def _ldexp(args: Sequence[str], types: Sequence[DType], result: DType) -> str:
    return f"{function('ldexp', result)}({args[0]}, (int){args[1]})"


def _own(name: str) -> Callable[[Sequence[str], Sequence[DType], DType], str]:
    return lambda args, types, result: f"gc_{name}({', '.join(args)})"


_SPECIAL = {
    **{"max": _extreme("max"), "min": _extreme("min"), "select": _select, "cast": _cast, "bitcast": _bitcast},
    **{"ldexp": _ldexp, "mulhi_unsigned": _own("mulhi_unsigned"), "pair": _own("pair"), "dot2": _own("dot2")},
    **{"dot4": _own("dot4"), "dot2i": _own("dot2i"), "nibble": _own("nibble")},
    **{part: _own(part) for part in PARTS},
}
