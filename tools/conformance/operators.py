"""Judges operators by the samples of PyTorch's table: results, gradients, compiled code, errors, element types."""

from __future__ import annotations

import builtins
import random
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.testing._internal.common_device_type import toleranceOverride
from torch.testing._internal.common_methods_invocations import op_db

import graphc as gc
from tools.conformance.names import EXCLUDED, RANDOM, SIZED_BY_VALUES, Function, find
from tools.conformance.samples import Call, NotMappedError, array_of, call_of, copied, leaves, type_of, wide
from tools.nets.aten import alarm

SECONDS = 60
"""For one sample; longer is a failure."""
USUAL = {torch.float32: (1.3e-6, 1e-5), torch.float64: (1e-7, 1e-7)}
"""Relative and absolute tolerance of ``torch.testing``, where the table has no other."""
TYPES = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
FORWARD, GRADIENT, COMPILED, COMPILED_GRADIENT = "forward", "gradient", "compiled", "compiled gradient"
ERRORS, INTEGERS = "errors", "integers"
COLUMNS = {
    FORWARD: "results, f32",
    GRADIENT: "gradients, f64",
    COMPILED: "compiled results, f32",
    COMPILED_GRADIENT: "compiled gradients, f64",
    ERRORS: "wrong calls raise what PyTorch raises",
    INTEGERS: "results of booleans and integers",
}
_WEIGHT_SEED = 7


class Tally(NamedTuple):
    """What became of the samples of one operator in one column."""

    passed: int
    failed: list[str]
    """What went wrong, one line a sample."""
    excluded: dict[str, int]
    """How many samples are no calls of graphc, by reason."""


class _Unequal(Exception):
    """What is not as PyTorch has it."""


def operators(wanted: Iterable[str] = ()) -> list[Any]:
    """The entries of PyTorch's table with these names; all without names."""
    names = set(wanted)
    return [i for i in op_db if not names or i.name in names or i.formatted_name in names]


def standing(info: Any) -> str:
    """``mapped``, ``missing``, or the reason why an operator is left out."""
    if info.name in EXCLUDED:
        return EXCLUDED[info.name]
    return "mapped" if find(info.name, info.variant_test_name) else "missing"


def judge(info: Any, column: str, most: int | None = None, seed: int = 0) -> Tally:
    """Runs the samples of an operator in a column; ``most`` of them, chosen by the seed."""
    function = find(info.name, info.variant_test_name)
    assert function is not None
    passed, failed, excluded = 0, [], Counter[str]()
    rows = list(_rows(info, column))
    if most is not None and len(rows) > most:
        rows = random.Random(zlib.crc32(f"{info.formatted_name}/{column}/{seed}".encode())).sample(rows, most)
    for number, (label, action) in enumerate(rows):
        try:
            with alarm(SECONDS):
                action(function)
            passed += 1
        except NotMappedError as reason:
            excluded[str(reason)] += 1
        except _Unequal as fault:
            failed.append(f"{number} {label}: {fault}")
        # NOTE: whatever the call raises is what is looked for.
        except Exception as error:
            first = (str(error).splitlines() or [""])[0]
            failed.append(f"{number} {label}: {type(error).__name__}: {first}")
    return Tally(passed, failed, dict(excluded))


Row = tuple[str, Callable[[Function], None]]


def _rows(info: Any, column: str) -> Iterator[Row]:
    if column == ERRORS:
        yield from _error_rows(info)
        return
    dtypes = TYPES if column == INTEGERS else (_dtype_of(column),)
    gradient = "gradient" in column
    if gradient and not info.supports_autograd:
        return
    for dtype in dtypes:
        if dtype not in info.dtypes:
            continue
        torch.manual_seed(0)
        for sample in info.sample_inputs("cpu", dtype, requires_grad=gradient):
            yield _row(info, dtype, sample, column)


def _dtype_of(column: str) -> torch.dtype:
    return torch.float64 if "gradient" in column else torch.float32


def _row(info: Any, dtype: torch.dtype, sample: Any, column: str) -> Row:
    def action(function: Function) -> None:
        type_of(dtype)
        if "compiled" in column and info.name in SIZED_BY_VALUES:
            raise NotMappedError("results whose size, or Python value, depends on elements: not in compiled code")
        (_judge_gradient if "gradient" in column else _judge_result)(info, function, dtype, sample, "compiled" in column)

    return f"{str(dtype).removeprefix('torch.')} {_shown(sample)}", action


def _shown(sample: Any) -> str:
    def one(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
        if isinstance(value, (list, tuple)):
            return "(" + ", ".join(map(one, value)) + ")"
        return repr(value)

    parts = [one(v) for v in (sample.input, *sample.args)] + [f"{k}={one(v)}" for k, v in sample.kwargs.items()]
    return ", ".join(parts)[:160]


def _expected(info: Any, sample: Any) -> Any:
    """PyTorch's result; some samples are there to raise."""
    torch.manual_seed(0)
    try:
        return info.op(sample.input, *sample.args, **sample.kwargs)
    except Exception as error:
        raise NotMappedError(f"PyTorch raises {type(error).__name__} itself") from None


def _applied(function: Function, call: Call, compiled: bool) -> Any:
    """The result of graphc; other operands are those that an operator may write to."""

    def run(*tensors: gc.Tensor) -> Any:
        arguments, keywords = call.filled(tensors)
        return list(leaves(function(*arguments, **keywords)))

    return (gc.compile(run) if compiled else run)(*call.tensors)


def _judge_result(info: Any, function: Function, dtype: torch.dtype, sample: Any, compiled: bool) -> None:
    call = call_of(sample)
    spare, plain = copied(sample), copied(sample)
    expected = list(leaves(_expected(info, plain)))
    with gc.no_grad():
        found = list(leaves(_applied(function, call, compiled)))
    if info.name in ORDERS:
        found, expected = ORDERS[info.name](sample, found), ORDERS[info.name](sample, expected)

    def exact() -> list[Any]:
        return list(leaves(_expected(info, _widened(spare))))

    _compare(found, expected, tolerance(info, dtype), exact, _random(info, spare))


def _random(info: Any, sample: Any) -> bool:
    """Whether nobody can foresee the result: attention with dropout, too, whose probability is the tenth argument of
    the function behind the layer."""
    dropout = sample.kwargs.get("dropout_p", 0.0)
    if info.name == "nn.functional.multi_head_attention_forward":
        dropout = sample.args[9]
    return info.name in RANDOM or dropout > 0


def _widened(sample: Any) -> Any:
    sample.input, sample.args, sample.kwargs = wide(sample.input), wide(sample.args), wide(sample.kwargs)
    return sample


def _judge_gradient(info: Any, function: Function, dtype: torch.dtype, sample: Any, compiled: bool) -> None:
    call = call_of(sample)
    if info.variant_test_name == "partial_views":
        raise NotMappedError("strides that reach beyond a view")
    inputs = [t for t in leaves((sample.input, sample.args, sample.kwargs)) if isinstance(t, torch.Tensor)]
    wanted = [i for i, t in enumerate(inputs) if t.requires_grad]
    expected = [t for t in leaves(_expected(info, sample)) if isinstance(t, torch.Tensor) and t.requires_grad]
    if _random(info, sample):
        raise NotMappedError("gradients of random results")
    if not wanted or not expected:
        raise NotMappedError("no gradient in PyTorch either")
    found = [t for t in leaves(_applied(function, call, compiled)) if isinstance(t, gc.Tensor) and t.requires_grad]
    if len(found) != len(expected):
        raise _Unequal(f"{len(found)} results have gradients, PyTorch's {len(expected)}")
    weights = [np.random.default_rng([_WEIGHT_SEED, i]).standard_normal(tuple(t.shape)) for i, t in enumerate(expected)]
    theirs = torch.autograd.grad(
        expected,
        [inputs[i] for i in wanted],
        [torch.tensor(w).to(t.dtype) for w, t in zip(weights, expected, strict=True)],
        allow_unused=True,
    )
    ours = gc.autograd.grad(
        found,
        [call.tensors[i] for i in wanted],
        [gc.tensor(w).to(t.dtype) for w, t in zip(weights, found, strict=True)],
        allow_unused=True,
    )
    kept = [
        (torch.zeros_like(inputs[i]) if b is None else b, gc.zeros_like(call.tensors[i]) if a is None else a)
        for i, a, b in zip(wanted, ours, theirs, strict=True)
    ]
    _compare([a for _, a in kept], [b for b, _ in kept], tolerance(info, dtype), None, False)


def tolerance(info: Any, dtype: torch.dtype) -> tuple[float, float]:
    """Relative and absolute: the widest that PyTorch's table states for the operator and type, at least the usual."""
    relative, absolute = USUAL.get(dtype, USUAL[torch.float32])
    for decorator in info.decorators:
        for part in getattr(decorator, "decorators", [decorator]):
            stated = part.d.get(dtype) if isinstance(part, toleranceOverride) else None
            if stated is not None:
                relative, absolute = max(relative, stated.rtol), max(absolute, stated.atol)
    return relative, absolute


def _compare(
    found: list[Any],
    expected: list[Any],
    allowed: tuple[float, float],
    exact: Callable[[], list[Any]] | None,
    shapes_only: bool,
) -> None:
    """Raises what differs. What is beyond the tolerance passes where it is no farther than it from the f64 result, or
    not farther than PyTorch's result is."""
    if len(found) != len(expected):
        raise _Unequal(f"{len(found)} results, PyTorch has {len(expected)}")
    for place, (a, b) in enumerate(zip(found, expected, strict=True)):
        x, y = array_of(a), array_of(b)
        kind = (_type_name(a), tuple(x.shape))
        if kind != (_type_name(b), tuple(y.shape)):
            raise _Unequal(f"{kind[0]}{list(kind[1])}, PyTorch {_type_name(b)}{list(y.shape)}")
        if shapes_only or _close(x, y, allowed):
            continue
        if exact is not None and x.dtype == np.float32 and _as_near(x, y, array_of(exact()[place]), allowed):
            continue
        raise _Unequal(_difference(x, y))


def _type_name(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return str(value.dtype).removeprefix("torch.")
    return value.dtype.long_name if isinstance(value, gc.Tensor) else type(value).__name__


def _close(x: np.ndarray, y: np.ndarray, allowed: tuple[float, float]) -> bool:
    if x.dtype.kind not in "fc":
        return bool(np.array_equal(x, y))
    return bool(np.allclose(x, y, rtol=allowed[0], atol=allowed[1], equal_nan=True))


def _as_near(x: np.ndarray, y: np.ndarray, exact: np.ndarray, allowed: tuple[float, float]) -> bool:
    if exact.shape != x.shape or exact.dtype != np.float64:
        return False
    finite = np.isfinite(exact) & np.isfinite(x) & np.isfinite(y)
    if not np.array_equal(x[~finite], y[~finite], equal_nan=True):
        return False
    error = np.abs(x - exact)[finite]
    room = np.maximum(np.abs(y - exact)[finite], allowed[1] + allowed[0] * np.abs(exact)[finite])
    return bool(np.all(error <= room))


def _difference(x: np.ndarray, y: np.ndarray) -> str:
    if x.dtype.kind in "fc":
        with np.errstate(all="ignore"):
            apart = ~np.isclose(x, y, rtol=1e-7, atol=1e-9, equal_nan=True)
            order = np.abs(np.nan_to_num(x - y, nan=np.inf)) * apart
    else:
        apart = x != y
        order = apart
    at = np.unravel_index(int(np.argmax(order)), x.shape) if x.ndim else ()
    return f"{x[at]!r}, PyTorch {y[at]!r} at {list(map(int, at))}; {int(np.sum(apart))} of {x.size}"


def _error_rows(info: Any) -> Iterator[Row]:
    if info.error_inputs_func is None:
        return
    torch.manual_seed(0)
    for wrong in info.error_inputs("cpu"):
        yield _shown(wrong.sample_input), _error_action(info, wrong)


def _error_action(info: Any, wrong: Any) -> Callable[[Function], None]:
    def action(function: Function) -> None:
        call = call_of(wrong.sample_input)
        sample = wrong.sample_input
        try:
            info.op(sample.input, *sample.args, **sample.kwargs)
        except Exception as error:
            wanted = _class_of(error)
        else:
            raise NotMappedError("PyTorch raises nothing")
        arguments, keywords = call.filled(call.tensors)
        try:
            function(*arguments, **keywords)
        except Exception as error:
            if not isinstance(error, wanted):
                text = (str(error).splitlines() or [""])[0]
                raise _Unequal(f"{type(error).__name__} ({text}), PyTorch {wanted.__name__}") from None
        else:
            raise _Unequal(f"no error, PyTorch {wanted.__name__} ({wrong.error_regex})")

    return action


def _class_of(error: BaseException) -> type[BaseException]:
    """The most special built-in class of an error."""
    known = {c for c in vars(builtins).values() if isinstance(c, type) and issubclass(c, BaseException)}
    return next(c for c in type(error).__mro__ if c in known)


def _with_named_elements(dim: Callable[[Any], int], only_places: bool = False) -> Callable[[Any, list[Any]], list[Any]]:
    """For operators that may name any of equal elements: the elements in the place of indices."""

    def replaced(sample: Any, results: list[Any]) -> list[Any]:
        places = torch.as_tensor(array_of(results[0 if only_places else 1]))
        if sample.input.ndim == 0:
            return results
        along = dim(sample)
        apart = places.ndim < sample.input.ndim
        full = places.unsqueeze(along) if apart else places
        named = sample.input.detach().gather(along, full)
        return [*results[: 0 if only_places else 1], named]

    return replaced


def _argument(place: int, usual: int) -> Callable[[Any], int]:
    def dim(sample: Any) -> int:
        if "dim" in sample.kwargs:
            return sample.kwargs["dim"]
        return sample.args[place] if len(sample.args) > place else usual

    return dim


ORDERS: dict[str, Callable[[Any, list[Any]], list[Any]]] = {
    "topk": _with_named_elements(_argument(1, -1)),
    "kthvalue": _with_named_elements(_argument(1, -1)),
    "mode": _with_named_elements(_argument(0, -1)),
    "argsort": _with_named_elements(_argument(0, -1), only_places=True),
}
"""Operators that may name any of equal elements."""
