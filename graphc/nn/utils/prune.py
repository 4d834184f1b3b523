"""Pruning: parameters of modules with a mask that sets some of their elements to zero."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import numpy as np

from graphc.base.errors import ArgumentError, AttributeValueError, ShapeError
from graphc.nn.computed import compute_attribute, stop_computing
from graphc.nn.module import Module
from graphc.tape.grad_mode import no_grad
from graphc.tensors.creation import as_tensor, ones_like, randperm
from graphc.tensors.methods import shaping
from graphc.tensors.tensor import Tensor


class BasePruningMethod(ABC):
    """A way to choose what is pruned, and the rule of a pruned parameter: whenever it is read, in compiled code too, it
    is ``name_orig * name_mask``. The module has it as a forward pre-hook, by which it is found; the hook does nothing.

    Subclasses define ``compute_mask(t, default_mask)``, which returns ``default_mask`` with more zeros, and
    ``PRUNING_TYPE``: what of a tensor that is pruned already they look at, ``unstructured`` at single elements that are
    left, ``structured`` at slices along ``dim`` that are left, ``global`` at everything.
    """

    PRUNING_TYPE: ClassVar[str] = "unstructured"
    is_traced_hook: ClassVar[bool] = True
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        """The pre-hook."""
        return None

    def compute(self, module: Any) -> Tensor:
        """The parameter as it is read."""
        return self.apply_mask(module)

    def assign(self, module: Any, value: Tensor) -> None:
        """Sets what the mask is applied to."""
        with no_grad():
            module._parameters[f"{self._tensor_name}_orig"].copy_(value)

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """A mask of zeros and ones for ``t``, with zeros where ``default_mask`` has them."""

    def apply_mask(self, module: Module) -> Tensor:
        """The parameter with its mask, as a function of what is trained."""
        name = self._tensor_name
        original = getattr(module, f"{name}_orig")
        return getattr(module, f"{name}_mask").to_dtype(original.dtype) * original

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prunes parameter ``name`` of a module by ``cls(*args, **kwargs)``, beyond what pruned it before; by the
        size of ``importance_scores`` where they are given, else of the parameter itself. Returns the hook."""
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        before = _hook_of(module, name)
        tensor = getattr(module, name, None)
        if not isinstance(tensor, Tensor) or (before is None and name not in module._parameters):
            raise AttributeValueError(f"{type(module).__name__} has no parameter {name!r} to prune")
        scores = tensor if importance_scores is None else importance_scores
        if tuple(scores.shape) != tuple(tensor.shape):
            raise ShapeError(
                f"importance_scores of shape {list(scores.shape)} for a parameter of shape {list(tensor.shape)}"
            )
        with no_grad():
            if before is None:
                _start(module, name, method.compute_mask(scores.detach(), ones_like(tensor)))
            else:
                container = PruningContainer(before[1])
                container.add_pruning_method(method)
                old = getattr(module, f"{name}_mask")
                module._buffers[f"{name}_mask"] = container.compute_mask(scores.detach(), old)
                del module._forward_pre_hooks[before[0]]
                method = container
        compute_attribute(module, name, method)
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """``t`` with zeros where this method prunes it."""
        scores = t if importance_scores is None else importance_scores
        if tuple(scores.shape) != tuple(t.shape):
            raise ShapeError(f"importance_scores of shape {list(scores.shape)} for a tensor of {list(t.shape)}")
        return t * self.compute_mask(scores, ones_like(t) if default_mask is None else default_mask)

    def remove(self, module: Module) -> None:
        """Makes the pruned values the parameter, and takes mask and original away."""
        name = self._tensor_name
        if _hook_of(module, name) is None:
            raise AttributeValueError(f"{type(module).__name__}: {name!r} is not pruned")
        original = getattr(module, f"{name}_orig")
        with no_grad():
            original.data = self.apply_mask(module).detach()
        stop_computing(module, name)
        del module._parameters[f"{name}_orig"]
        del module._buffers[f"{name}_mask"]
        module.register_parameter(name, original)


def _start(module: Module, name: str, mask: Tensor) -> None:
    """Keeps the parameter as ``name_orig`` beside a first mask."""
    original = module._parameters[name]
    del module._parameters[name]
    module.register_parameter(f"{name}_orig", original)
    module.register_buffer(f"{name}_mask", mask)


def _hook_of(module: Module, name: str) -> tuple[int, BasePruningMethod] | None:
    """The number and the hook that prunes a parameter."""
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return number, hook
    return None


class PruningContainer(BasePruningMethod):
    """Pruning methods of one parameter, one after the other."""

    def __init__(self, *args: Any):
        given = args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        for method in given:
            if not self._pruning_methods and isinstance(method, BasePruningMethod):
                self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Another method, for the same parameter."""
        if not isinstance(method, BasePruningMethod):
            raise ArgumentError(f"{type(method).__name__} is no BasePruningMethod")
        if self._pruning_methods and method._tensor_name != self._tensor_name:
            raise AttributeValueError(f"a container prunes {self._tensor_name!r}, the method {method._tensor_name!r}")
        inner = method._pruning_methods if isinstance(method, PruningContainer) else (method,)
        self._pruning_methods += inner

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, index: Any) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """What the last method leaves of ``default_mask``, looking at what is left."""
        method = self._pruning_methods[-1]
        if method.PRUNING_TYPE == "global":
            return method.compute_mask(t, default_mask)
        if method.PRUNING_TYPE == "unstructured":
            return _among_elements(method, t, default_mask)
        if method.PRUNING_TYPE == "structured":
            return _among_slices(method, t, default_mask)
        raise AttributeValueError(
            f"{type(method).__name__}.PRUNING_TYPE is {method.PRUNING_TYPE!r}",
            remedy="unstructured, structured or global",
        )


def _among_elements(method: BasePruningMethod, t: Tensor, default_mask: Tensor) -> Tensor:
    """The mask of a method that sees only the elements that are left, as a vector."""
    values, mask = t.detach().numpy(), np.array(default_mask.detach().numpy())
    kept = mask != 0
    mask[kept] = method.compute_mask(as_tensor(values[kept]), as_tensor(mask[kept])).numpy()
    return as_tensor(mask)


def _among_slices(method: BasePruningMethod, t: Tensor, default_mask: Tensor) -> Tensor:
    """The mask of a method that sees only the slices of which something is left."""
    values, mask = t.detach().numpy(), np.array(default_mask.detach().numpy())
    dim = getattr(method, "dim", 0) % t.ndim
    left = np.flatnonzero((mask != 0).any(tuple(d for d in range(t.ndim) if d != dim)))
    index = tuple(left if d == dim else slice(None) for d in range(t.ndim))
    mask[index] = method.compute_mask(as_tensor(values[index]), as_tensor(mask[index])).numpy()
    return as_tensor(mask)


def _count(amount: int | float, size: int) -> int:
    """How many of ``size`` things an amount is: an int itself, a float a share."""
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        raise ArgumentError(f"the amount is an int or a float, got {amount!r}")
    if (isinstance(amount, float) and not 0 <= amount <= 1) or amount < 0:
        raise AttributeValueError(f"the amount is {amount}", remedy="a share between 0 and 1, or a number of elements")
    if isinstance(amount, float):
        return round(amount * size)
    if amount > size:
        raise AttributeValueError(f"{amount} of {size} cannot be pruned", remedy="a smaller amount")
    return amount


def _need_slices(t: Tensor, dim: int) -> int:
    if t.ndim < 2:
        raise AttributeValueError(
            f"whole slices of a tensor of shape {list(t.shape)} cannot be pruned", remedy="an unstructured method"
        )
    if not -t.ndim <= dim < t.ndim:
        raise AttributeValueError(f"dim {dim} of a tensor of shape {list(t.shape)}")
    return dim % t.ndim


def _without(mask: Tensor, elements: np.ndarray) -> Tensor:
    """A copy of the mask with zeros at positions of its row-major order."""
    found = np.array(mask.detach().numpy())
    found.reshape(-1)[elements] = 0
    return as_tensor(found)


def _without_slices(mask: Tensor, dim: int, slices: np.ndarray) -> Tensor:
    found = np.array(mask.detach().numpy())
    found[tuple(slices if d == dim else slice(None) for d in range(found.ndim))] = 0
    return as_tensor(found)


class Identity(BasePruningMethod):
    """Prunes nothing, but keeps a mask."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class RandomUnstructured(BasePruningMethod):
    """Prunes elements at random: a number of them, or a share."""

    def __init__(self, amount: int | float):
        _count(amount, 1 << 62)
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _count(self.amount, t.numel())
        return _without(default_mask, randperm(t.numel()).numpy()[:count])


class L1Unstructured(BasePruningMethod):
    """Prunes the elements that are nearest to zero: a number of them, or a share."""

    def __init__(self, amount: int | float):
        _count(amount, 1 << 62)
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _count(self.amount, t.numel())
        order = np.argsort(np.abs(t.detach().numpy()).reshape(-1), kind="stable")
        return _without(default_mask, order[:count])


class RandomStructured(BasePruningMethod):
    """Prunes whole slices along ``dim`` at random: a number of them, or a share."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: int | float, dim: int = -1):
        _count(amount, 1 << 62)
        self.amount = amount
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        dim = _need_slices(t, self.dim)
        count = _count(self.amount, t.shape[dim])
        return _without_slices(default_mask, dim, randperm(t.shape[dim]).numpy()[:count])


class LnStructured(BasePruningMethod):
    """Prunes the slices along ``dim`` with the smallest norm of order ``n``: a number of them, or a share."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: int | float, n: Any, dim: int = -1):
        _count(amount, 1 << 62)
        self.amount = amount
        self.n = n
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        dim = _need_slices(t, self.dim)
        count = _count(self.amount, t.shape[dim])
        others = tuple(d for d in range(t.ndim) if d != dim)
        norms = t.detach().norm(self.n, others).numpy()
        return _without_slices(default_mask, dim, np.argsort(norms, kind="stable")[:count])


class CustomFromMask(BasePruningMethod):
    """Prunes where a given mask has zeros."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor):
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if tuple(self.mask.shape) != tuple(default_mask.shape):
            raise ShapeError(f"a mask of shape {list(self.mask.shape)} for {list(default_mask.shape)}")
        return default_mask * self.mask.to_dtype(default_mask.dtype)


def identity(module: Module, name: str) -> Module:
    """Gives parameter ``name`` a mask of ones. Returns the module, as all functions here do."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: int | float) -> Module:
    """Sets elements at random to zero: ``amount`` of them, or a share (a float) of those that are left."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: int | float, importance_scores: Tensor | None = None) -> Module:
    """Sets the elements nearest to zero, or those with the smallest scores, to zero: ``amount`` of them, or a share."""
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: int | float, dim: int) -> Module:
    """Sets slices along ``dim`` at random to zero: ``amount`` of them, or a share."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module,
    name: str,
    amount: int | float,
    n: Any,
    dim: int,
    importance_scores: Tensor | None = None,
) -> Module:
    """Sets the slices along ``dim`` with the smallest norm of order ``n`` to zero: ``amount`` of them, or a share."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Sets parameter ``name`` to zero where ``mask`` is zero."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prunes several parameters, (module, name) each, as if they were one vector; ``kwargs`` go to the method."""
    pairs = list(parameters)
    if pruning_method.PRUNING_TYPE != "unstructured":
        raise ArgumentError(f"{pruning_method.__name__} does not prune single elements", remedy="L1Unstructured")
    scores, masks = [], []
    for module, name in pairs:
        tensor = getattr(module, name)
        score: Any = (importance_scores or {}).get((module, name), tensor)
        scores.append(score.detach().reshape(-1))
        mask: Any = getattr(module, f"{name}_mask", None)
        masks.append(ones_like(tensor).reshape(-1) if mask is None else mask.detach().reshape(-1))
    container = PruningContainer()
    container._tensor_name = "everything"
    method = pruning_method(**kwargs)
    method._tensor_name = "everything"
    container.add_pruning_method(method)
    with no_grad():
        whole = container.compute_mask(shaping.concatenate(scores, 0), shaping.concatenate(masks, 0))
    start = 0
    for module, name in pairs:
        tensor = getattr(module, name)
        custom_from_mask(module, name, whole.narrow(0, start, tensor.numel()).reshape(*tensor.shape))
        start += tensor.numel()


def remove(module: Module, name: str) -> Module:
    """Ends the pruning of parameter ``name``: the pruned values become the parameter."""
    found = _hook_of(module, name)
    if found is None:
        raise AttributeValueError(f"{type(module).__name__}: {name!r} is not pruned", remedy="is_pruned tells")
    found[1].remove(module)
    del module._forward_pre_hooks[found[0]]
    return module


def is_pruned(module: Module) -> bool:
    """Whether a parameter of the module, or of one inside, is pruned."""
    return any(
        isinstance(hook, BasePruningMethod) for part in module.modules() for hook in part._forward_pre_hooks.values()
    )
