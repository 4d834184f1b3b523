"""Random graphs, valid by construction and numerically tame, for comparing ways to run them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from graphc.base.dtypes import DType, bool_, dtype_of, float32, float64, int8, int32, int64, uint8
from graphc.ir.graph.build import constant, emit
from graphc.ir.graph.graph import Graph, Value
from graphc.ir.op import REGISTRY
from graphc.ir.types import TensorType

FLOATS = (float32, float64)
INTEGERS = (int32, int64, int8, uint8)
EXTENTS = (1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 18, 33)
LARGEST = 700
"""Most elements of a value: the kernel interpreter is slow."""


@dataclass
class Known:
    """Facts about a value of the graph."""

    value: Value
    exact: bool
    """True when every way to compute it gives the same bits, so that steps and comparisons of it agree."""
    bound: float
    """No element is larger."""


class Builder:
    """Grows a graph; every draw of ``draw`` decides on one thing."""

    def __init__(self, draw: Callable):
        self.draw = draw
        self.graph = Graph("random")
        self.pool: list[Known] = []
        self.arguments: list[np.ndarray] = []
        self.random = np.random.default_rng(draw(st.integers(0, 2**16)))

    # ---- pieces

    def pick(self, options):
        """One of the options."""
        return self.draw(st.sampled_from(list(options)))

    def shape(self, rank: int | None = None, largest: int = LARGEST) -> tuple[int, ...]:
        """A shape; rarely with a dimension of no elements."""
        rank = self.draw(st.integers(0, 4)) if rank is None else rank
        shape: list[int] = []
        for _ in range(rank):
            room = largest // max(1, int(np.prod(shape, dtype=np.int64)))
            shape.append(self.pick([e for e in EXTENTS if e <= max(1, room)]))
        if shape and self.draw(st.integers(0, 40)) == 0:
            shape[self.draw(st.integers(0, len(shape) - 1))] = 0
        return tuple(shape)

    def array(self, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
        """Random contents: floats are eighths in -2..2, so that sums of few are exact."""
        if dtype.kind == "f":
            array = self.random.integers(-16, 17, shape) / 8
        elif dtype.kind == "b":
            array = self.random.integers(0, 2, shape)
        else:
            array = self.random.integers(0 if dtype.kind == "u" else -7, 8, shape)
        return np.asarray(array).astype(dtype.numpy)

    def add(self, value: Value, exact: bool, bound: float) -> Known:
        """Puts a value into the pool."""
        self.pool.append(Known(value, exact, bound))
        return self.pool[-1]

    def fresh(self, shape: tuple[int, ...], dtype: DType) -> Known:
        """A new input, state or constant."""
        cls = self.pick(("input", "input", "input", "state", "param", "constant"))
        array = self.array(shape, dtype)
        bound = 2.0 if dtype.kind == "f" else 8.0
        if cls == "constant":
            return self.add(constant(self.graph, array, dtype), True, bound)
        number = len(self.arguments)
        path = "" if cls == "input" else f"the.{cls}{number}"
        value = self.graph.add_input(TensorType(dtype, shape), f"a{number}", cls, path)
        self.arguments.append(array)
        return self.add(value, True, bound)

    def op(self, name: str, *operands: Known | Value, **attrs) -> Value:
        """Emits a node."""
        values = [v.value if isinstance(v, Known) else v for v in operands]
        return emit(self.graph, REGISTRY[name], values, attrs)[0]

    def scalar(self, number: float, dtype: DType) -> Value:
        """A scalar constant."""
        return self.graph.scalar(number, dtype)

    def known(self, expected: Callable[[Known], bool], shape=None, dtypes=FLOATS) -> Known:
        """A value of the pool that fits, or a new one."""
        fitting = [k for k in self.pool if expected(k)]
        if fitting and self.draw(st.integers(0, 5)):
            return self.pick(fitting[-6:])
        return self.fresh(self.shape() if shape is None else shape, self.pick(dtypes))

    def tame(self, k: Known) -> Known:
        """The value itself, or a bounded function of it when it has grown."""
        if k.bound <= 50 or k.value.dtype not in FLOATS:
            return k
        return self.add(self.op("tanh", k), False, 1.0)

    def any_float(self) -> Known:
        """Some float value of moderate size."""
        return self.tame(self.known(lambda k: k.value.dtype in FLOATS))

    def partner(self, k: Known) -> Known:
        """Draw a value of the same type whose broadcast with ``k`` stays small."""

        def fits(other: Known) -> bool:
            if other.value.dtype is not k.value.dtype:
                return False
            try:
                shape = np.broadcast_shapes(k.value.shape, other.value.shape)
            except ValueError:
                return False
            return int(np.prod(shape, dtype=np.int64)) <= LARGEST

        if self.draw(st.integers(0, 3)) == 0:
            shape = k.value.shape[self.draw(st.integers(0, len(k.value.shape))) :]
            shape = tuple(1 if self.draw(st.integers(0, 3)) == 0 else e for e in shape)
            return self.fresh(shape, k.value.dtype)
        return self.known(fits, k.value.shape, (k.value.dtype,))


# ---- steps: each adds a few nodes


def arithmetic(b: Builder) -> None:
    x = b.any_float()
    y = b.tame(b.partner(x))
    name = b.pick(("add", "sub", "mul", "maximum", "minimum"))
    bound = x.bound * y.bound if name == "mul" else x.bound + y.bound
    b.add(b.op(name, x, y), x.exact and y.exact, bound)


def smooth(b: Builder) -> None:
    x = b.any_float()
    name = b.pick(("tanh", "sin", "cos", "atan", "erf", "exp", "log", "sqrt", "rsqrt", "reciprocal", "sigmoid", "div"))
    one = b.scalar(1.0, x.value.dtype)
    if name == "exp":
        b.add(b.op("exp", b.op("tanh", x)), False, 3.0)
    elif name in ("log", "sqrt", "rsqrt", "reciprocal"):
        positive = b.op("add", b.op("mul", x, x), one)
        b.add(b.op(name, positive), False, max(1.0, x.bound))
    elif name == "sigmoid":
        b.add(b.op("div", one, b.op("add", b.op("exp", b.op("neg", b.op("tanh", x))), one)), False, 1.0)
    elif name == "div":
        y = b.tame(b.partner(x))
        b.add(b.op("div", x, b.op("add", b.op("abs", y), one)), x.exact and y.exact, x.bound)
    else:
        b.add(b.op(name, x), False, 1.0)


def plain_unary(b: Builder) -> None:
    x = b.any_float()
    b.add(b.op(b.pick(("neg", "abs")), x), x.exact, x.bound)


def steps_of_exact(b: Builder) -> None:
    x = b.known(lambda k: k.exact and k.value.dtype in FLOATS and k.bound < 1000)
    name = b.pick(("floor", "ceil", "round", "trunc", "sign", "compare", "cast"))
    if name == "compare":
        y = b.partner(x)
        if y.exact:
            b.add(b.op(b.pick(("lt", "le", "gt", "ge", "eq", "ne")), x, y), True, 1.0)
    elif name == "cast":
        b.add(b.op("cast", x, dtype=b.pick((int32, int64, float64, float32, bool_))), True, x.bound)
    else:
        b.add(b.op(name, x), True, x.bound + 1)


def integer(b: Builder) -> None:
    x = b.known(lambda k: k.value.dtype in INTEGERS, dtypes=INTEGERS)
    name = b.pick(("add", "sub", "mul", "floor_div", "mod", "maximum", "lt", "eq", "bit_and", "bit_xor", "neg", "cast"))
    bound = float(2**63)
    if name == "neg":
        b.add(b.op("neg", x), True, bound)
    elif name == "cast":
        dtype = b.pick((*INTEGERS, float32, float64, bool_))
        if dtype.kind == "f":
            small = b.op("mod", x, b.scalar(16, x.value.dtype))
            b.add(b.op("cast", small, dtype=dtype), True, 16.0)
        else:
            b.add(b.op("cast", x, dtype=dtype), True, bound)
    else:
        b.add(b.op(name, x, b.partner(x)), True, bound)


def logic(b: Builder) -> None:
    x = b.known(lambda k: k.value.dtype is bool_, dtypes=(bool_,))
    name = b.pick(("logical_and", "logical_or", "logical_xor", "logical_not", "cast", "any", "all"))
    if name == "cast":
        b.add(b.op("cast", x, dtype=b.pick((float32, float64, int64, uint8, int8))), True, 1.0)
    elif name in ("any", "all"):
        b.add(b.op(name, x, axes=axes_of(b, x), keepdims=b.pick((False, True))), True, 1.0)
    else:
        b.add(b.op(name, x, *(() if name == "logical_not" else (b.partner(x),))), True, 1.0)


def where(b: Builder) -> None:
    x = b.known(lambda k: True)
    y = b.partner(x)
    shape = np.broadcast_shapes(x.value.shape, y.value.shape)
    condition = b.known(lambda k: k.value.dtype is bool_ and k.value.shape == shape, shape, (bool_,))
    b.add(b.op("where", condition, x, y), x.exact and y.exact, max(x.bound, y.bound))


def axes_of(b: Builder, x: Known) -> tuple[int, ...]:
    rank = len(x.value.shape)
    return tuple(i for i in range(rank) if b.draw(st.booleans()))


def reduce(b: Builder) -> None:
    name = b.pick(("sum", "max", "min", "argmax", "argmin", "sum", "mean"))
    if name.startswith("arg"):
        x = b.known(lambda k: k.exact and 0 not in k.value.shape and k.value.shape != () and k.value.dtype is not bool_)
        if x.value.shape == () or 0 in x.value.shape:
            return
        axis = b.draw(st.integers(0, len(x.value.shape) - 1))
        b.add(b.op(name, x, axis=axis, keepdims=b.pick((False, True))), True, 700.0)
        return
    x = b.tame(b.known(lambda k: k.value.dtype in FLOATS or (name == "sum" and k.value.dtype in INTEGERS)))
    axes = axes_of(b, x)
    if name in ("max", "min") and any(x.value.shape[i] == 0 for i in axes):
        return
    number = int(np.prod([x.value.shape[i] for i in axes], dtype=np.int64))
    keep = b.pick((False, True))
    if name in ("max", "min"):
        b.add(b.op(name, x, axes=axes, keepdims=keep), x.exact, x.bound)
        return
    total = b.op("sum", x, axes=axes, keepdims=keep)
    exact = x.value.dtype not in FLOATS
    if name == "mean" and not exact:
        b.add(b.op("div", total, b.scalar(max(1, number), x.value.dtype)), False, x.bound)
    else:
        b.add(total, exact, x.bound * max(1, number))


def softmax(b: Builder) -> None:
    x = b.any_float()
    if 0 in x.value.shape:
        return
    axes = axes_of(b, x)
    top = b.op("max", x, axes=axes, keepdims=True)
    shifted = b.op("sub", x, top)
    e = b.op("exp", shifted)
    total = b.op("sum", e, axes=axes, keepdims=True)
    if b.draw(st.booleans()):
        b.add(b.op("div", e, total), False, 1.0)
    else:
        b.add(b.op("sub", shifted, b.op("log", total)), False, 2 * x.bound + 8)


def normalize(b: Builder) -> None:
    x = b.any_float()
    axes = axes_of(b, x)
    number = b.scalar(max(1, int(np.prod([x.value.shape[i] for i in axes], dtype=np.int64))), x.value.dtype)
    mean = b.op("div", b.op("sum", x, axes=axes, keepdims=True), number)
    centred = b.op("sub", x, mean)
    variance = b.op("div", b.op("sum", b.op("mul", centred, centred), axes=axes, keepdims=True), number)
    b.add(mean, False, x.bound)
    b.add(b.op("mul", centred, b.op("rsqrt", b.op("add", variance, b.scalar(0.5, x.value.dtype)))), False, 3 * x.bound)


def view(b: Builder) -> None:
    x = b.known(lambda k: True, dtypes=(*FLOATS, *INTEGERS, bool_))
    shape, rank = x.value.shape, len(x.value.shape)
    name = b.pick(("reshape", "transpose", "slice", "pad", "flip", "broadcast_to", "concat", "stop_gradient"))
    bound = x.bound
    if name == "reshape":
        value = b.op(name, x, shape=_reshaped(b, shape))
    elif name == "transpose":
        value = b.op(name, x, permutation=tuple(b.draw(st.permutations(range(rank)))))
    elif name == "slice":
        starts = tuple(b.draw(st.integers(0, max(0, e - 1))) for e in shape)
        stops = tuple(b.draw(st.integers(s, e)) for s, e in zip(starts, shape, strict=True))
        value = b.op(name, x, starts=starts, stops=stops, steps=tuple(b.draw(st.integers(1, 3)) for _ in shape))
    elif name == "pad":
        value = _padded(b, x)
        bound = max(bound, 3.0)
    elif name == "flip":
        value = b.op(name, x, axes=axes_of(b, x))
    elif name == "broadcast_to":
        grown = tuple(b.pick((1, 2, 3)) if e == 1 else e for e in shape)
        value = b.op(name, x, shape=(*b.shape(b.draw(st.integers(0, 2)), 4), *grown))
    elif name == "concat" and rank:
        others = [k for k in b.pool if k.value.dtype is x.value.dtype and k.value.shape == shape]
        parts = [x, *(b.pick(others) for _ in range(b.draw(st.integers(0, 2))))]
        value = b.op(name, *parts, axis=b.draw(st.integers(0, rank - 1)))
        b.add(value, all(p.exact for p in parts), max(p.bound for p in parts))
        return
    else:
        value = b.op("stop_gradient", x)
    if value.type.size <= 2 * LARGEST:
        b.add(value, x.exact, bound)


def _padded(b: Builder, x: Known) -> Value:
    low, high, interior = (tuple(b.draw(st.integers(0, 2)) for _ in x.value.shape) for _ in range(3))
    interior = tuple(min(i, 1) if e else 0 for i, e in zip(interior, x.value.shape, strict=True))
    kind = x.value.dtype.kind
    fill = {"f": 1.5, "b": True}.get(kind, 3) if b.draw(st.booleans()) else {"f": 0.0, "b": False}.get(kind, 0)
    return b.op("pad", x, low=low, high=high, interior=interior, value=fill)


def _reshaped(b: Builder, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Another shape of as many elements."""
    rest = int(np.prod(shape, dtype=np.int64))
    if not rest:
        return tuple(b.draw(st.permutations(shape)))
    result: list[int] = []
    while rest > 1 and len(result) < 4:
        divisors = [d for d in range(1, rest + 1) if rest % d == 0]
        result.append(b.pick(divisors))
        rest //= result[-1]
    return (*result, rest) if rest > 1 or b.draw(st.booleans()) else tuple(result)


def gather(b: Builder) -> None:
    x = b.known(lambda k: k.value.shape != () and 0 not in k.value.shape, dtypes=(*FLOATS, *INTEGERS))
    if x.value.shape == () or 0 in x.value.shape:
        return
    axis = b.draw(st.integers(0, len(x.value.shape) - 1))
    shape = b.shape(b.draw(st.integers(0, 2)), 12)
    dtype = b.pick((int64, int32, uint8))
    raw = b.known(lambda k: k.value.dtype is dtype and k.value.type.size <= 12, shape, (dtype,))
    extent = x.value.shape[axis]
    indices = b.op("mod", b.op("abs", b.op("mod", raw, b.scalar(50, dtype))), b.scalar(min(extent, 100), dtype))
    value = b.op("gather", x, indices, axis=axis)
    if value.type.size <= 2 * LARGEST:
        b.add(value, x.exact, x.bound)
    if x.value.dtype in FLOATS and value.type.size <= LARGEST and b.draw(st.booleans()):
        b.add(b.op("scatter_add", x, indices, value, axis=axis), False, x.bound * 13)


def matmul(b: Builder) -> None:
    x = b.any_float()
    shape = x.value.shape
    if len(shape) < 2:
        x = b.fresh(b.shape(b.pick((2, 2, 3))), x.value.dtype)
        shape = x.value.shape
    ta, tb = b.draw(st.booleans()), b.draw(st.booleans())
    inner = shape[-2] if ta else shape[-1]
    n = b.pick(EXTENTS)
    batch = shape[:-2] if b.draw(st.booleans()) else ()
    expected = (*batch, n, inner) if tb else (*batch, inner, n)
    if int(np.prod(expected, dtype=np.int64)) > LARGEST:
        expected = expected[-2:]
    y = b.tame(b.known(lambda k: k.value.type == TensorType(x.value.dtype, expected), expected, (x.value.dtype,)))
    value = b.op("matmul", x, y, transpose_a=ta, transpose_b=tb)
    if value.type.size * inner <= 6000:
        b.add(value, False, x.bound * y.bound * max(1, inner))


def conv(b: Builder) -> None:
    dims = b.pick((1, 2))
    dtype = b.pick(FLOATS)
    groups = b.pick((1, 1, 2))
    channels, out = groups * b.pick((1, 2, 3)), groups * b.pick((1, 2, 5))
    size = tuple(b.pick((5, 7, 9)) for _ in range(dims))
    batch = b.pick((1, 2))
    x = b.known(
        lambda k: (
            k.value.dtype is dtype and len(k.value.shape) == dims + 2 and k.value.shape[1] == channels and k.bound < 50
        ),
        (batch, channels, *size),
        (dtype,),
    )
    window = tuple(b.pick((1, 2, 3)) for _ in range(dims))
    if any(e < 5 for e in x.value.shape[2:]) or x.value.type.size > LARGEST:
        return
    weight = b.known(lambda k: False, (out, channels // groups, *window), (dtype,))
    attrs = {
        "stride": tuple(b.pick((1, 2)) for _ in range(dims)),
        "padding": tuple((b.pick((0, 1)), b.pick((0, 1))) for _ in range(dims)),
        "dilation": tuple(b.pick((1, 2)) for _ in range(dims)),
        "groups": groups,
    }
    value = b.op("conv", x, weight, **attrs)
    if value.type.size * channels * 9 > 20000:
        return
    bound = x.bound * 2 * channels * 9
    b.add(value, False, bound)
    if b.draw(st.booleans()):
        b.add(b.op("conv_grad_weight", x, value, kernel=window, **attrs), False, bound * 50)
        b.add(b.op("conv_grad_input", value, weight, size=x.value.shape[2:], **attrs), False, bound * 50)


def pool(b: Builder) -> None:
    x = b.known(
        lambda k: k.value.dtype in FLOATS and len(k.value.shape) in (3, 4) and k.bound < 50, (1, 2, 7, 5), FLOATS
    )
    if len(x.value.shape) not in (3, 4) or min(x.value.shape[2:]) < 3:
        return
    dims = len(x.value.shape) - 2
    attrs = {
        "kernel": tuple(b.pick((2, 3)) for _ in range(dims)),
        "stride": tuple(b.pick((1, 2)) for _ in range(dims)),
        "padding": tuple((b.pick((0, 1)), b.pick((0, 1))) for _ in range(dims)),
    }
    if b.draw(st.booleans()):
        value = b.op("avg_pool", x, count_include_pad=b.draw(st.booleans()), **attrs)
        b.add(value, False, x.bound)
        return
    attrs["dilation"] = (1,) * dims
    value = b.op("max_pool", x, **attrs)
    k = b.add(value, x.exact, x.bound)
    if x.exact and b.draw(st.booleans()):
        b.add(b.op("max_pool_grad", x, k, **attrs), False, x.bound * 9)


def generator(b: Builder) -> None:
    shape = b.shape(b.pick((1, 2, 3)))
    if b.draw(st.booleans()):
        dtype = b.pick((int64, int32, float32))
        value = b.op("iota", shape=shape, axis=b.draw(st.integers(0, len(shape) - 1)), dtype=dtype)
        b.add(value, True, 40.0)
        return
    seed = b.known(lambda k: k.value.dtype is int64 and k.value.shape == (2,), (2,), (int64,))
    bits = b.op("random_bits", seed, shape=shape, stream=b.pick((0, 7)))
    b.add(bits, True, 2.0**31)
    uniform = b.op("cast", b.op("shift_right", bits, b.scalar(8, int32)), dtype=float32)
    b.add(b.op("mul", uniform, b.scalar(2.0**-24, float32)), True, 1.0)


def write_state(b: Builder) -> None:
    """A state takes a new value; at most once each."""
    done = {n.operands[0] for n in b.graph.nodes() if n.op.name == "state_write"}
    states = [v for v in b.graph.inputs if v.node.attrs["cls"] in ("state", "param") and v not in done]
    if not states:
        return
    state = b.pick(states)
    fitting = [k for k in b.pool if k.value.type == state.type]
    known = b.pick(fitting)
    if b.draw(st.booleans()) and state.dtype in FLOATS:
        own = next(k for k in b.pool if k.value is state)
        known = b.add(b.op(b.pick(("add", "sub")), b.tame(own), b.tame(known)), False, own.bound + known.bound)
    b.add(b.op("state_write", state, known.value), known.exact, known.bound)


STEPS = (
    *(arithmetic, arithmetic, arithmetic, smooth, smooth, plain_unary, steps_of_exact, integer, logic, where),
    *(reduce, reduce, reduce, softmax, normalize, view, view, view, view, gather, matmul, conv, pool, generator),
    *(write_state, write_state),
)


def grow(draw: Callable, largest: int = 12) -> tuple[Graph, list[np.ndarray]]:
    """A graph and one array per input."""
    b = Builder(draw)
    for _ in range(draw(st.integers(0, largest))):
        draw(st.sampled_from(STEPS))(b)
    if not b.pool:
        b.fresh(b.shape(), float32)
    count = draw(st.integers(1, 4))
    outputs = [draw(st.sampled_from(b.pool[-8:])).value for _ in range(count)]
    if b.pool[-1].value not in outputs:
        outputs.append(b.pool[-1].value)
    b.graph.set_outputs(outputs)
    assert all(dtype_of(a.dtype) is v.dtype for a, v in zip(b.arguments, b.graph.inputs, strict=True))
    return b.graph, b.arguments


random_graphs = st.composite(grow)
