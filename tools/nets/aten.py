"""Judge the rules of ATen operators by PyTorch's own tables of samples: ``python -m tools.nets.aten``.

A case is an operator of ``op_db`` and an element type. Its samples run in PyTorch, forward and backward, and every call
of an ATen operator that happens on the way is repeated with the rule of the table. Needs the extra ``conformance``.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._python_dispatch import TorchDispatchMode

import graphc
from graphc.base.difference import Tolerance
from graphc.base.difference import difference as compare
from graphc.errors import UnsupportedError
from graphc.interop.aten.table import find
from tools.damage.forked import alarm
from tools.nets.run import DIFFERENT, EQUAL, FAILED, REFUSED, Net, Outcome, main
from tools.trees import leaves, mapped

SAMPLES, GRADIENTS, CALLS = 8, 3, 4
"""Samples of an operator, samples with a backward pass, and repeated calls of one ATen operator with other shapes or
numbers."""
SECONDS = 20
"""Time limit for one call; longer is a failure."""
TYPES = {"f32": torch.float32, "i64": torch.int64, "bool": torch.bool}
_KNOWN = {getattr(torch, n) for n in ("float32", "float64", "int64", "int32", "int8", "uint8", "bool")}
_LEFT_OUT = (torch.device, torch.layout, torch.memory_format)
_OF_MEMORY = {"device", "layout", "pin_memory", "memory_format", "generator"}
_RANDOM = frozenset(
    {"rand", "bernoulli", "dropout", "normal", "exponential", "uniform", "multinomial", "empty", "poisson", "geometric"}
    | {"cauchy", "rrelu", "as_strided"}
)
"""Name parts of operators with unpredictable results, and of ``as_strided``, which reads beyond the recorded part of a
call."""
_ORDERS = ("sort", "topk", "kthvalue", "argsort", "msort", "mode", "median")
"""Operators that may name any of equal elements: their indices are judged by the elements at these places."""
_REMADE: dict[str, Callable[..., list[Any]]] = {
    "aten._linalg_svd.default": lambda u, s, vh: (
        [s, *_orthonormal(u, vh.mT), (u[..., : s.shape[-1]] * s.unsqueeze(-2)) @ vh[..., : s.shape[-1], :]]
        if u.numel()
        else [u, s, vh]
    ),
    "aten._linalg_eigh.default": lambda w, v: (
        [w, *_orthonormal(v), (v * w.unsqueeze(-2)) @ v.mT] if v.numel() else [w, v]
    ),
    "aten.linalg_qr.default": lambda q, r: [*_orthonormal(q), r.tril(-1), q @ r if q.numel() else r.mT @ r],
}
"""Operators whose columns have arbitrary signs, and are arbitrary for repeated numbers, with the function of their
results that is compared: the product of the factors, and the orthonormality of the columns."""


def _orthonormal(*factors: Any) -> list[Any]:
    return [columns.mT @ columns if columns.numel() else columns for columns in factors]


class Recorder(TorchDispatchMode):
    """Recorder of calls of ATen operators in the table, with copies of arguments and results."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, Any, Any, Any]] = []
        self.missing: Counter[str] = Counter()
        self.names: set[str] = set()
        """Operators that can be judged here, those without a rule too."""
        self._seen: set[Any] = set()
        self._count: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the call, and keep it."""
        kwargs, name = kwargs or {}, str(func)
        key = (name, _key(args), _key(kwargs))
        can = name.startswith("aten.") and not any(r in name for r in _RANDOM) and _fits((args, kwargs))
        is_recorded = can and key not in self._seen and self._count[name] < CALLS
        if is_recorded and find(name) is None:
            self.missing[name] += 1
            is_recorded = False
        copies = (_copy(args), _copy(kwargs)) if is_recorded else ()
        result = func(*args, **kwargs)
        if can and _fits(result):
            self.names.add(name)
        if is_recorded and _fits(result):
            self._seen.add(key)
            self._count[name] += 1
            self.calls.append((name, *copies, _copy(result)))
        return result


def _tensors(value: Any) -> list[torch.Tensor]:
    return [t for t in leaves(value) if isinstance(t, torch.Tensor)]


def _fits(value: Any) -> bool:
    return all(t.dtype in _KNOWN and t.layout is torch.strided for t in _tensors(value))


def _key(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return str(value.dtype), tuple(value.shape)
    if isinstance(value, (list, tuple)):
        return tuple(map(_key, value))
    return tuple((k, _key(v)) for k, v in value.items()) if isinstance(value, dict) else repr(value)


def _copy(value: Any) -> Any:
    return mapped(value, lambda leaf: leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf)


def _ours(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)([_ours(item) for item in value if not isinstance(item, _LEFT_OUT)])
    if isinstance(value, dict):
        return {k: _ours(v) for k, v in value.items() if k not in _OF_MEMORY}
    if isinstance(value, torch.Tensor):
        return graphc.tensor(value.numpy().copy())
    if isinstance(value, torch.dtype):
        if value not in _KNOWN:
            raise UnsupportedError(f"graphc has no tensors of {value}")
        return getattr(graphc, str(value).removeprefix("torch."))
    return value


def record(case: str) -> Recorder:
    """Return the calls of ATen operators in the samples of a case."""
    name, kind = case.rsplit("/", 1)
    info = next(i for i in op_db if i.formatted_name == name)
    recorder = Recorder()
    for number, sample in zip(range(SAMPLES), _samples(info, TYPES[kind], False), strict=False):
        backward = kind == "f32" and number < GRADIENTS and info.supports_autograd
        # NOTE: some samples are expected to raise; the calls before the error are recorded.
        with suppress(Exception), recorder:
            info.op(sample.input, *sample.args, **sample.kwargs)
        if backward:
            with suppress(Exception):
                chosen = next(s for n, s in enumerate(_samples(info, TYPES[kind], True)) if n == number)
                with recorder:
                    results = _tensors(info.op(chosen.input, *chosen.args, **chosen.kwargs))
                    torch.autograd.backward([1.5 * t.sum() for t in results if t.requires_grad])
    return recorder


def _samples(info: Any, dtype: torch.dtype, gradient: bool) -> Iterator[Any]:
    torch.manual_seed(0)
    with suppress(Exception):
        yield from info.sample_inputs("cpu", dtype, requires_grad=gradient)


def judge_call(name: str, args: Any, kwargs: Any, expected: Any) -> Outcome:
    """Repeat one call with the rule of the table."""
    function: Any = find(name)
    try:
        with alarm(SECONDS), graphc.no_grad():
            operands = tuple([_ours(a) for a in args if not isinstance(a, _LEFT_OUT)])
            results = function(*operands, **_ours(kwargs))
        if any(word in name for word in _ORDERS):
            results, expected = _by_elements(name, results, expected, args, kwargs)
        if name in _REMADE:
            results, expected = _REMADE[name](*results), _REMADE[name](*expected)
    except UnsupportedError as error:
        return Outcome(REFUSED, f"{name}: {error.what}")
    except Exception as error:  # any exception of a rule is a finding
        return Outcome(FAILED, f"{name}: {type(error).__name__}: {error} {_key(args)} {_key(kwargs)}")
    fault = difference(results, expected)
    return Outcome(DIFFERENT, f"{name}: {fault} {_key(args)} {_key(kwargs)}") if fault else Outcome(EQUAL)


def _by_elements(name: str, result: Any, expected: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return both results, with the elements that indices name in their stead."""
    _, packet, overload = name.split(".")
    schema = getattr(getattr(torch.ops.aten, packet), overload)._schema
    arguments = {a.name: value for a, value in zip(schema.arguments, args, strict=False)} | kwargs
    values, dim = arguments["self"], arguments.get("dim", -1)

    def named(indices: Any) -> torch.Tensor:
        indices = indices if isinstance(indices, torch.Tensor) else torch.from_numpy(indices.numpy())
        if indices.dim() == values.dim():
            return values.gather(dim, indices)
        return values.gather(dim, indices.unsqueeze(dim)).squeeze(dim)

    if "argsort" in name:
        return _ours(named(result)), named(expected)
    if not isinstance(expected, (tuple, list)):
        return result, expected
    return (result[0], _ours(named(result[1]))), (expected[0], named(expected[1]))


def difference(result: Any, expected: Any) -> str:
    """Describe the difference from PyTorch's result; empty where there is none."""
    if isinstance(expected, (list, tuple)):
        if not isinstance(result, (list, tuple)) or len(result) != len(expected):
            return f"{type(result).__name__} for {len(expected)} results"
        faults = (difference(a, b) for a, b in zip(result, expected, strict=True))
        return next((f for f in faults if f), "")
    if not isinstance(expected, torch.Tensor):
        same = type(result) is type(expected) and (result == expected or (result != result and expected != expected))
        return "" if same else f"{result!r}, not {expected!r}"
    if not isinstance(result, graphc.Tensor):
        return f"{type(result).__name__} for a tensor"
    apart = compare("", result.numpy(), expected.detach().numpy(), Tolerance(2e-4, 1e-4), same_dtype=True)
    return "" if apart.is_within else str(apart)


def cases(seed: int) -> Iterator[str]:
    """Yield every operator with every element type that both it and graphc have, in seeded order."""
    names = [f"{i.formatted_name}/{kind}" for i in op_db for kind, dtype in TYPES.items() if dtype in i.dtypes]
    random.Random(seed).shuffle(names)
    yield from names


def judge(case: str) -> Outcome:
    """Return the worst outcome of a case's calls; refused where the table has none of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        recorded = record(case)
        outcomes = [judge_call(*call) for call in recorded.calls]
    bad = [o for o in outcomes if o.kind in (DIFFERENT, FAILED)]
    if bad:
        return bad[0]._replace(detail="\n".join([o.detail for o in bad]))
    refused = [o.detail for o in outcomes if o.kind == REFUSED] + [f"no rule for {n}" for n in recorded.missing]
    return Outcome(REFUSED, "\n".join(refused)) if refused else Outcome(EQUAL)


NET = Net("aten", (__doc__ or "").splitlines()[0], cases, judge)

if __name__ == "__main__":
    sys.exit(main(NET))
