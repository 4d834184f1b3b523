"""Judge operators by the samples of PyTorch's table: results, gradients, compiled code, errors, element types."""

from __future__ import annotations

import builtins
import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_device_type import precisionOverride, toleranceOverride
from torch.testing._internal.common_methods_invocations import op_db

import graphc as gc
from tools.conformance.compare import USUAL, compare, weighted_gradients
from tools.conformance.names import EXCLUDED, RANDOM, SIZED_BY_VALUES, UP_TO_SIGNS, Function, find
from tools.conformance.samples import Call, NotMappedError, array_of, call_of, copied, type_of, wide
from tools.conformance.tally import Row, UnequalError
from tools.trees import leaves

TYPES = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
FORWARD, GRADIENT, COMPILED, COMPILED_GRADIENT = "forward", "gradient", "compiled", "compiled gradient"
ERRORS, INTEGERS = "errors", "integers"
COLUMNS = {
    FORWARD: "results, f32",
    GRADIENT: "gradients, f64",
    COMPILED: "compiled results, f32",
    COMPILED_GRADIENT: "compiled gradients, f64",
    ERRORS: "wrong calls raise the same error as in PyTorch",
    INTEGERS: "results of booleans and integers",
}
_OTHER_GRADIENTS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "as_strided": (lambda info, _: info.variant_test_name == "partial_views", "strides that reach beyond a view"),
    "as_strided_scatter": (
        lambda *_: True,
        "gradients of as_strided_scatter, which fail according to PyTorch's own table",
    ),
    "nn.functional.embedding_bag": (
        lambda _, sample: sample.kwargs.get("scale_grad_by_freq", False),
        "gradients of embedding_bag by frequency, which PyTorch divides by how often another index occurs",
    ),
}
"""Gradients left out of the comparison, by operator."""
_OTHER_RESULTS: dict[str, tuple[Callable[[Any], bool], str]] = {
    name: (
        lambda sample: sample.args[:1] == (1,) and bool((sample.input <= 0).any()),
        "poles of the trigamma function, of which the rounding of pi makes large numbers in PyTorch",
    )
    for name in ("polygamma", "special.polygamma")
}
"""Results left out of the comparison, by operator."""
_OTHER_OUT = {
    "arange": "`out=` of whole numbers, in which PyTorch's arange computes",
    "complex": "`out=` of another precision: converted, as by all functions",
    "multinomial": "`out=` of a higher kind of element type: converted, as by all functions",
}
"""Calls with ``out=`` that graphc takes, or refuses as another error, by operator."""
DIFFERENT: dict[str, dict[str, str]] = {}
"""Operators with samples that are known to differ, with the cause, by column."""


def standing() -> dict[str, str]:
    """Return ``mapped``, ``missing`` or the reason for leaving it out, for each operator."""
    return {i.formatted_name: _standing(i) for i in op_db}


def _standing(info: Any) -> str:
    if info.name in EXCLUDED:
        return EXCLUDED[info.name]
    return "mapped" if find(info.name, info.variant_test_name) else "missing"


def rows(subject: str, column: str) -> list[Row]:
    """Return the samples of an operator in a column."""
    info = next(i for i in op_db if i.formatted_name == subject)
    function = find(info.name, info.variant_test_name)
    assert function is not None
    return list(_error_rows(info, function) if column == ERRORS else _rows(info, function, column))


def _rows(info: Any, function: Function, column: str) -> Iterator[Row]:
    dtypes = TYPES if column == INTEGERS else (_dtype_of(column),)
    gradient = "gradient" in column
    if gradient and not info.supports_autograd:
        return
    for dtype in dtypes:
        if dtype not in info.dtypes:
            continue
        torch.manual_seed(0)
        for sample in info.sample_inputs("cpu", dtype, requires_grad=gradient):
            yield _row(info, function, dtype, sample, column)


def _dtype_of(column: str) -> torch.dtype:
    return torch.float64 if "gradient" in column else torch.float32


def _row(info: Any, function: Function, dtype: torch.dtype, sample: Any, column: str) -> Row:
    def action() -> None:
        type_of(dtype)
        if "compiled" in column and info.name in SIZED_BY_VALUES:
            raise NotMappedError("results whose size, or Python value, depends on elements: not in compiled code")
        judge = _judge_gradient if "gradient" in column else _judge_result
        judge(info, function, dtype, sample, "compiled" in column)

    return f"{str(dtype).removeprefix('torch.')} {_shown(sample)}", action


def _shown(sample: Any) -> str:
    def one(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
        if isinstance(value, (list, tuple)):
            return "(" + ", ".join(map(one, value)) + ")"
        return repr(value)

    arguments = [one(v) for v in (sample.input, *sample.args)] + [f"{k}={one(v)}" for k, v in sample.kwargs.items()]
    return ", ".join(arguments)[:160]


def _expected(info: Any, sample: Any) -> Any:
    """Return PyTorch's result; some samples are expected to raise."""
    torch.manual_seed(0)
    try:
        return info.op(sample.input, *sample.args, **sample.kwargs)
    except Exception as error:
        raise NotMappedError(f"PyTorch raises {type(error).__name__} itself") from None


def _seen(info: Any, sample: Any, result: Any) -> list[Any]:
    """Return the compared part of a result of either library."""
    return list(leaves(sample.output_process_fn_grad(result) if info.name in UP_TO_SIGNS else result))


def _applied(info: Any, function: Function, sample: Any, call: Call, compiled: bool) -> Any:
    """Return the compared part of graphc's result."""

    def run(*tensors: gc.Tensor) -> Any:
        arguments, keywords = call.filled(tensors)
        return _seen(info, sample, function(*arguments, **keywords))

    return (gc.compile(run) if compiled else run)(*call.tensors)


def _judge_result(info: Any, function: Function, dtype: torch.dtype, sample: Any, compiled: bool) -> None:
    applies, reason = _OTHER_RESULTS.get(info.name, (lambda _: False, ""))
    if not dtype.is_floating_point and applies(sample):
        raise NotMappedError(reason)
    call = call_of(sample)
    spare, plain = copied(sample), copied(sample)
    expected = _seen(info, sample, _expected(info, plain))
    with gc.no_grad():
        results = _applied(info, function, sample, call, compiled)
    if info.name in ORDERS:
        results, expected = ORDERS[info.name](sample, results), ORDERS[info.name](sample, expected)

    def exact() -> list[Any]:
        return _seen(info, sample, _expected(info, _widened(spare)))

    compare(results, expected, tolerance(info, dtype), exact, _random(info, spare))


def _random(info: Any, sample: Any) -> bool:
    """Return whether the result is unpredictable. That includes attention with dropout, whose probability is the tenth
    argument of the function under the layer, and singular vectors of a part of a matrix of full rank."""
    dropout = sample.kwargs.get("dropout_p", 0.0)
    if info.name == "nn.functional.multi_head_attention_forward":
        dropout = sample.args[9]
    return info.name in RANDOM or dropout > 0 or (info.name == "svd_lowrank" and sample.kwargs["M"] is not None)


def _widened(sample: Any) -> Any:
    sample.input, sample.args, sample.kwargs = wide(sample.input), wide(sample.args), wide(sample.kwargs)
    return sample


def _judge_gradient(info: Any, function: Function, dtype: torch.dtype, sample: Any, compiled: bool) -> None:
    for name, (applies, reason) in _OTHER_GRADIENTS.items():
        if name == info.name and applies(info, sample):
            raise NotMappedError(reason)
    variables = [t for t in _tensors(sample) if t.requires_grad]
    sample = _allowed_operands(info, sample)
    call = call_of(sample)
    inputs = call.sources
    differentiable = [i for i, t in enumerate(inputs) if t.requires_grad]
    expected = [t for t in _seen(info, sample, _expected(info, sample)) if isinstance(t, torch.Tensor)]
    if _random(info, sample):
        raise NotMappedError("gradients of random results")
    if not differentiable or not any(t.requires_grad for t in expected):
        raise NotMappedError("no gradient in PyTorch either")
    results = [t for t in _applied(info, function, sample, call, compiled) if isinstance(t, gc.Tensor)]
    if len(results) != len(expected):
        raise UnequalError(f"{len(results)} tensors, PyTorch {len(expected)}")
    operands = [inputs[i] for i in differentiable]
    ours = weighted_gradients(gc, results, [call.tensors[i] for i in differentiable])
    theirs = weighted_gradients(torch, expected, operands)
    compare(ours, theirs, tolerance(info, dtype), shapes_only=True)
    results, expected = (_pulled_back(operands, g, variables) for g in (ours, theirs))
    compare(results, expected, tolerance(info, dtype))


def _allowed_operands(info: Any, sample: Any) -> Any:
    """Return the operands in the form in which the table checks gradients: a symmetric or triangular matrix, computed
    from the sample's. Outside of that form two gradients may differ, and both are right."""
    changed = copy.copy(sample)

    def keep(value: Any, /, *args: Any, **kwargs: Any) -> Any:
        changed.input, changed.args, changed.kwargs = value, args, kwargs

    info.gradcheck_wrapper(keep, sample.input, *sample.args, **sample.kwargs)
    return changed


def _pulled_back(operands: list[torch.Tensor], grads: list[Any], variables: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return the gradients with respect to the operands' inputs."""
    seeds = [torch.from_numpy(array_of(g).copy()) for g in grads]
    gradients = torch.autograd.grad(operands, variables, seeds, retain_graph=True, allow_unused=True)
    return [torch.zeros_like(v) if g is None else g for v, g in zip(variables, gradients, strict=True)]


def _tensors(sample: Any) -> list[torch.Tensor]:
    return [t for t in leaves((sample.input, sample.args, sample.kwargs)) if isinstance(t, torch.Tensor)]


def tolerance(info: Any, dtype: torch.dtype) -> tuple[float, float]:
    """Return relative and absolute: the widest that PyTorch's table states for the operator and type, at least the
    usual."""
    relative, absolute = USUAL.get(dtype, USUAL[torch.float32])
    for decorator in info.decorators:
        for entry in getattr(decorator, "decorators", [decorator]):
            if isinstance(entry, toleranceOverride) and dtype in entry.d:
                relative, absolute = max(relative, entry.d[dtype].rtol), max(absolute, entry.d[dtype].atol)
            if isinstance(entry, precisionOverride):
                absolute = max(absolute, entry.d.get(dtype, 0.0))
    return relative, absolute


def _error_rows(info: Any, function: Function) -> Iterator[Row]:
    if info.error_inputs_func is None:
        return
    torch.manual_seed(0)
    for wrong in info.error_inputs("cpu"):
        yield _shown(wrong.sample_input), _error_action(info, function, wrong)


def _error_action(info: Any, function: Function, wrong: Any) -> Callable[[], None]:
    def action() -> None:
        sample = wrong.sample_input
        if info.name in _OTHER_OUT and "out" in sample.kwargs:
            raise NotMappedError(_OTHER_OUT[info.name])
        call = call_of(sample)
        try:
            info.op(sample.input, *sample.args, **sample.kwargs)
        except Exception as error:
            error_class = _class_of(error)
        else:
            raise NotMappedError("PyTorch raises nothing")
        arguments, keywords = call.filled(call.tensors)
        try:
            function(*arguments, **keywords)
        except Exception as error:
            if not isinstance(error, error_class):
                text = (str(error).splitlines() or [""])[0]
                raise UnequalError(f"{type(error).__name__} ({text}), PyTorch {error_class.__name__}") from None
        else:
            _allowed(info, sample, error_class, call)
            raise UnequalError(f"no error, PyTorch {error_class.__name__} ({wrong.error_regex})")

    return action


def _allowed(info: Any, sample: Any, error_class: type[BaseException], call: Call) -> None:
    """Raise NotMappedError for calls that graphc takes on purpose."""
    operands = (sample.input, *sample.args)
    if _share_memory(_tensors(sample)):
        raise NotMappedError("tensors that share memory: copied, and results are there before they are written")
    if info.name.startswith("__") and not call.tensors:
        raise NotMappedError("tensor methods called with numbers alone")
    if (
        error_class in (TypeError, AttributeError)
        and call.tensors
        and any(isinstance(v, (int, float)) for v in operands)
    ):
        raise NotMappedError("a number beside a tensor where PyTorch wants two tensors: taken, as in the array API")
    if len({t.dtype for t in call.tensors}) > 1:
        raise NotMappedError("operands of several element types: promoted, as documented")


def _share_memory(tensors: list[torch.Tensor]) -> bool:
    """Return whether two tensors, or two elements of one, share an address."""
    stored = [t.untyped_storage() for t in tensors]
    repeated = any(s.nbytes() < t.numel() * t.element_size() for t, s in zip(tensors, stored, strict=True))
    return repeated or len({s.data_ptr() for s in stored if s.nbytes()}) < sum(s.nbytes() > 0 for s in stored)


def _class_of(error: BaseException) -> type[BaseException]:
    """Return the most special built-in class of an error."""
    builtin_classes = {c for c in vars(builtins).values() if isinstance(c, type) and issubclass(c, BaseException)}
    return next(c for c in type(error).__mro__ if c in builtin_classes)


def _with_named_elements(dim: Callable[[Any], int], only_places: bool = False) -> Callable[[Any, list[Any]], list[Any]]:
    """Return a function of the results that reads the elements at the indices, for operators that may name any of equal
    elements."""

    def replaced(sample: Any, results: list[Any]) -> list[Any]:
        indices = torch.as_tensor(np.ascontiguousarray(array_of(results[0 if only_places else 1])))
        if sample.input.ndim == 0:
            return results
        along = dim(sample)
        apart = indices.ndim < sample.input.ndim
        full = indices.unsqueeze(along) if apart else indices
        named = sample.input.detach().gather(along, full)
        return [*results[: 0 if only_places else 1], named]

    return replaced


def _argument(position: int, usual: int) -> Callable[[Any], int]:
    def dim(sample: Any) -> int:
        if "dim" in sample.kwargs:
            return sample.kwargs["dim"]
        return sample.args[position] if len(sample.args) > position else usual

    return dim


ORDERS: dict[str, Callable[[Any, list[Any]], list[Any]]] = {
    "topk": _with_named_elements(_argument(1, -1)),
    "kthvalue": _with_named_elements(_argument(1, -1)),
    "mode": _with_named_elements(_argument(0, -1)),
    "sort": _with_named_elements(_argument(0, -1)),
    "argsort": _with_named_elements(_argument(0, -1), only_places=True),
}
"""Operators that may name any of equal elements."""
