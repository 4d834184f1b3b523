"""Pruning: masks that set some elements of a module's parameters to zero."""

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
    """A method that chooses the elements to prune; it also computes the pruned parameter.

    A pruned parameter is ``name_orig * name_mask`` whenever it is read, in compiled code too. The module finds the
    method as one of its forward pre-hooks; the hook itself does nothing.

    Subclasses define ``compute_mask(t, default_mask)``, which returns ``default_mask`` with more zeros, and
    ``PRUNING_TYPE``, which says how much they see of a tensor pruned before: ``unstructured`` methods see the remaining
    single elements, ``structured`` ones the remaining slices along ``dim``, ``global`` ones everything.
    """

    PRUNING_TYPE: ClassVar[str] = "unstructured"
    is_traced_hook: ClassVar[bool] = True
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        """Do nothing: the pre-hook only marks the pruned parameter."""
        return None

    def compute(self, module: Any) -> Tensor:
        """Compute the parameter when it is read."""
        return self.apply_mask(module)

    def assign(self, module: Any, value: Tensor) -> None:
        """Set the tensor to which the mask is applied."""
        with no_grad():
            module._parameters[f"{self._tensor_name}_orig"].copy_(value)

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return a mask of zeros and ones for ``t``, with zeros where ``default_mask`` has them."""

    def apply_mask(self, module: Module) -> Tensor:
        """Apply the mask to the trained parameter."""
        name = self._tensor_name
        original = getattr(module, f"{name}_orig")
        return getattr(module, f"{name}_mask").to_dtype(original.dtype) * original

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune parameter ``name`` of a module by ``cls(*args, **kwargs)``, in addition to earlier pruning.

        Elements are chosen by ``importance_scores`` if given, else by the parameter itself. Returns the hook.
        """
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        before = _hook_of(module, name)
        tensor = getattr(module, name, None)
        if not isinstance(tensor, Tensor) or (before is None and name not in module._parameters):
            raise AttributeValueError(f"{type(module).__name__} has no parameter {name!r} to prune")
        scores = tensor if importance_scores is None else importance_scores
        if tuple(scores.shape) != tuple(tensor.shape):
            raise ShapeError(
                f"importance_scores have shape {list(scores.shape)}, the parameter has {list(tensor.shape)}"
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
        """Return ``t`` with zeros where this method prunes it."""
        scores = t if importance_scores is None else importance_scores
        if tuple(scores.shape) != tuple(t.shape):
            raise ShapeError(f"importance_scores have shape {list(scores.shape)}, the tensor has {list(t.shape)}")
        return t * self.compute_mask(scores, ones_like(t) if default_mask is None else default_mask)

    def remove(self, module: Module) -> None:
        """Make the pruned values the parameter, and remove mask and original."""
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
    """Store the parameter as ``name_orig`` and its first mask as ``name_mask``."""
    original = module._parameters[name]
    del module._parameters[name]
    module.register_parameter(f"{name}_orig", original)
    module.register_buffer(f"{name}_mask", mask)


def _hook_of(module: Module, name: str) -> tuple[int, BasePruningMethod] | None:
    """Return the id and the hook that prunes a parameter, or None."""
    for hook_id, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return hook_id, hook
    return None


class PruningContainer(BasePruningMethod):
    """Pruning methods of one parameter, applied in turn."""

    def __init__(self, *args: Any):
        methods = args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        for method in methods:
            if not self._pruning_methods and isinstance(method, BasePruningMethod):
                self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Append a method for the same parameter."""
        if not isinstance(method, BasePruningMethod):
            raise ArgumentError(f"{type(method).__name__} is not a BasePruningMethod")
        if self._pruning_methods and method._tensor_name != self._tensor_name:
            raise AttributeValueError(
                f"the container prunes {self._tensor_name!r}, but the method prunes {method._tensor_name!r}"
            )
        inner = method._pruning_methods if isinstance(method, PruningContainer) else (method,)
        self._pruning_methods += inner

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, index: Any) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Apply the last method to the elements that ``default_mask`` leaves, and return the new mask."""
        method = self._pruning_methods[-1]
        if method.PRUNING_TYPE == "global":
            return method.compute_mask(t, default_mask)
        if method.PRUNING_TYPE == "unstructured":
            return _among_elements(method, t, default_mask)
        if method.PRUNING_TYPE == "structured":
            return _among_slices(method, t, default_mask)
        raise AttributeValueError(
            f"{type(method).__name__}.PRUNING_TYPE is {method.PRUNING_TYPE!r}",
            remedy="set it to 'unstructured', 'structured' or 'global'",
        )


def _among_elements(method: BasePruningMethod, t: Tensor, default_mask: Tensor) -> Tensor:
    """Compute the mask of a method that sees only the remaining elements, as a vector."""
    values, mask = t.detach().numpy(), np.array(default_mask.detach().numpy())
    remaining = mask != 0
    mask[remaining] = method.compute_mask(as_tensor(values[remaining]), as_tensor(mask[remaining])).numpy()
    return as_tensor(mask)


def _among_slices(method: BasePruningMethod, t: Tensor, default_mask: Tensor) -> Tensor:
    """Compute the mask of a method that sees only slices with remaining elements."""
    values, mask = t.detach().numpy(), np.array(default_mask.detach().numpy())
    dim = getattr(method, "dim", 0) % t.ndim
    remaining = np.flatnonzero((mask != 0).any(tuple(d for d in range(t.ndim) if d != dim)))
    index = tuple(remaining if d == dim else slice(None) for d in range(t.ndim))
    mask[index] = method.compute_mask(as_tensor(values[index]), as_tensor(mask[index])).numpy()
    return as_tensor(mask)


def _count(amount: int | float, size: int) -> int:
    """Convert an amount to a number of elements: an int is the number, a float a fraction of ``size``."""
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        raise ArgumentError(f"the amount to prune must be an int or a float, got {amount!r}")
    if (isinstance(amount, float) and not 0 <= amount <= 1) or amount < 0:
        raise AttributeValueError(
            f"cannot prune the amount {amount}", remedy="pass a fraction from 0.0 to 1.0, or a number of elements"
        )
    if isinstance(amount, float):
        return round(amount * size)
    if amount > size:
        raise AttributeValueError(f"cannot prune {amount} of {size}", remedy=f"prune at most {size}")
    return amount


def _need_slices(t: Tensor, dim: int) -> int:
    if t.ndim < 2:
        raise AttributeValueError(
            f"cannot prune slices of a tensor of shape {list(t.shape)}", remedy="use an unstructured method"
        )
    if not -t.ndim <= dim < t.ndim:
        raise AttributeValueError(f"dim {dim} is out of range for a tensor of shape {list(t.shape)}")
    return dim % t.ndim


def _without(mask: Tensor, elements: np.ndarray) -> Tensor:
    """Copy the mask with zeros at the given row-major positions."""
    new_mask = np.array(mask.detach().numpy())
    new_mask.reshape(-1)[elements] = 0
    return as_tensor(new_mask)


def _without_slices(mask: Tensor, dim: int, slices: np.ndarray) -> Tensor:
    new_mask = np.array(mask.detach().numpy())
    new_mask[tuple(slices if d == dim else slice(None) for d in range(new_mask.ndim))] = 0
    return as_tensor(new_mask)


class Identity(BasePruningMethod):
    """Prunes nothing, but stores a mask."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class RandomUnstructured(BasePruningMethod):
    """Prunes random elements: a number or a fraction of them."""

    def __init__(self, amount: int | float):
        _count(amount, 1 << 62)
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _count(self.amount, t.numel())
        return _without(default_mask, randperm(t.numel()).numpy()[:count])


class L1Unstructured(BasePruningMethod):
    """Prunes the elements nearest to zero: a number or a fraction of them."""

    def __init__(self, amount: int | float):
        _count(amount, 1 << 62)
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _count(self.amount, t.numel())
        order = np.argsort(np.abs(t.detach().numpy()).reshape(-1), kind="stable")
        return _without(default_mask, order[:count])


class RandomStructured(BasePruningMethod):
    """Prunes random slices along ``dim``: a number or a fraction of them."""

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
    """Prunes the slices along ``dim`` with the smallest norm of order ``n``: a number or a fraction of them."""

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
            raise ShapeError(f"the mask has shape {list(self.mask.shape)}, the tensor has {list(default_mask.shape)}")
        return default_mask * self.mask.to_dtype(default_mask.dtype)


def identity(module: Module, name: str) -> Module:
    """Give parameter ``name`` a mask of ones. Returns the module, as all functions of this file do."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: int | float) -> Module:
    """Set random elements to zero: ``amount`` of them, or a fraction (a float) of the remaining ones."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: int | float, importance_scores: Tensor | None = None) -> Module:
    """Set the elements nearest to zero, or with the smallest scores, to zero: ``amount`` of them, or a fraction.

    Example:
        >>> import graphc as gc
        >>> layer = gc.nn.Linear(3, 1, bias=False)
        >>> with gc.no_grad():
        ...     weight = layer.weight.copy_(gc.tensor([[0.1, -2.0, 3.0]]))
        >>> pruned = gc.nn.utils.prune.l1_unstructured(layer, "weight", amount=1)
        >>> layer.weight_mask
        tensor([[0., 1., 1.]])
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: int | float, dim: int) -> Module:
    """Set random slices along ``dim`` to zero: ``amount`` of them, or a fraction."""
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
    """Set the slices along ``dim`` with the smallest norm of order ``n`` to zero: ``amount`` of them, or a fraction."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Set parameter ``name`` to zero where ``mask`` is zero."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters, each given as (module, name), as if they were one vector.

    ``kwargs`` go to the pruning method.
    """
    pairs = list(parameters)
    if pruning_method.PRUNING_TYPE != "unstructured":
        raise ArgumentError(
            f"{pruning_method.__name__} does not prune single elements",
            remedy="pass an unstructured method such as L1Unstructured",
        )
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
        joint_mask = container.compute_mask(shaping.concatenate(scores, 0), shaping.concatenate(masks, 0))
    start = 0
    for module, name in pairs:
        tensor = getattr(module, name)
        custom_from_mask(module, name, joint_mask.narrow(0, start, tensor.numel()).reshape(*tensor.shape))
        start += tensor.numel()


def remove(module: Module, name: str) -> Module:
    """End the pruning of parameter ``name``: the pruned values become the parameter."""
    entry = _hook_of(module, name)
    if entry is None:
        raise AttributeValueError(f"{type(module).__name__}: {name!r} is not pruned", remedy="check with is_pruned")
    hook_id, method = entry
    method.remove(module)
    del module._forward_pre_hooks[hook_id]
    return module


def is_pruned(module: Module) -> bool:
    """Check whether a parameter of the module, or of a module below it, is pruned."""
    return any(
        isinstance(hook, BasePruningMethod) for child in module.modules() for hook in child._forward_pre_hooks.values()
    )
