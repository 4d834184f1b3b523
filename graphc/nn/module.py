"""Module: base class that holds parameters, buffers and children, and calls ``forward`` together with its hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from graphc.base import module_path, mutation_epoch
from graphc.base.device import CPU
from graphc.base.device import device as device_of
from graphc.base.dtypes import DType, bfloat16, dtype_of, float16, float32, float64
from graphc.base.errors import ArgumentError, AttributeValueError, DTypeError, GraphcError, MemberError
from graphc.base.lazy import deferred
from graphc.base.mutation_epoch import Members
from graphc.base.progress import MODULE, shown
from graphc.base.public import reduced
from graphc.base.sizes.symbolic import KINDS
from graphc.guards import attributes
from graphc.nn.module_hooks import ModuleHooks, call_with_hooks, run_registration_hooks
from graphc.nn.module_state import ModuleState
from graphc.nn.module_tree import check_member_name
from graphc.nn.parameter import Buffer, Parameter
from graphc.ops import dispatch
from graphc.ops.define import no_tensor
from graphc.tape.grad_mode import no_grad
from graphc.tensors.creation import empty_like, from_numpy
from graphc.tensors.placement import placement
from graphc.tensors.tensor import Tensor
from graphc.tracing.trace import runs_as_python

__all__ = ["Module"]

compile_module = deferred("graphc.calls.function:compile")

_HOOK_TABLES = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


class Module(ModuleState, ModuleHooks):
    """Base class of networks and their parts.

    Subclasses call ``super().__init__()``, assign parameters, buffers and child modules as attributes, and define
    ``forward``. A call of the module runs pre-hooks, ``forward`` and forward hooks; autograd differentiates it. A
    compiled module that is assigned stays compiled as attribute, and the module inside becomes the child.

    Args:
        args, kwargs: none, unless a subclass sets ``call_super_init``.

    Returns:
        The module, in training mode.

    Raises:
        ArgumentError: unexpected arguments.

    Example:
        >>> import graphc as gc
        >>> class Scale(gc.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.factor = gc.nn.Parameter(gc.tensor(2.0))
        ...
        ...     def forward(self, x):
        ...         return self.factor * x
        >>> Scale()(gc.ones(3))
        tensor([2., 2., 2.], grad_fn=<MulBackward>)
        >>> [name for name, parameter in Scale().named_parameters()]
        ['factor']
    """

    dump_patches = False
    call_super_init = False
    _compiled: Any = None
    """Compiled function that runs the calls after ``compile()``; copies and pickles leave it out."""
    _backend: Any = None
    """Unused: older versions stored a kernel library here, and programs of that time still read the attribute."""

    def __init__(self, *args: Any, **kwargs: Any):
        if not self.call_super_init and (args or kwargs):
            unexpected = [repr(a) for a in args] + [f"{name}={value!r}" for name, value in kwargs.items()]
            raise ArgumentError(f"{type(self).__name__}: Module.__init__ got unexpected arguments {unexpected}")
        attributes.born(self)
        members = self.__dict__
        members["training"] = True
        members["_parameters"] = Members()
        members["_buffers"] = Members()
        members["_non_persistent_buffers_set"] = set()
        members["_modules"] = Members()
        members["_is_full_backward_hook"] = None
        for table in _HOOK_TABLES:
            members[table] = Members()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # Calls

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the module's output; subclasses define it.

        Layers of graphc take arrays as tensors that share their memory. Your own ``forward`` gets them as they are.
        """
        raise NotImplementedError(f'module {type(self).__name__} does not define "forward"')

    @shown(MODULE, lambda call: type(call["self"]).__name__)
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._compiled is not None and not (runs_as_python() or dispatch.runs_python()):
            return self._compiled(*args, **kwargs)
        for argument in (*args, *kwargs.values()) if kwargs else args:
            if argument.__class__ is np.ndarray and _is_layer(self):
                args = tuple(map(_tensor_of, args))
                kwargs = {name: _tensor_of(value) for name, value in kwargs.items()}
                break
        module_path.enter(self)
        try:
            if self._has_hooks():
                return call_with_hooks(self, args, kwargs)
            return self.forward(*args, **kwargs)
        except GraphcError as error:
            module_path.note_origin(error)
            raise
        except AttributeError as error:
            clearer_error = _taken_for_tensor(self, {**dict(enumerate(args)), **kwargs}, error)
            if clearer_error is None:
                raise
            raise clearer_error from error
        finally:
            module_path.leave()

    def compile(self, **options: Any) -> None:
        """Run calls of this module as native code from now on; takes the options of ``graphc.compile``."""
        self.__dict__["_compiled"] = compile_module(self, **options)

    # Registration

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter under ``name``; None reserves the name for an absent parameter."""
        table = self._table("_parameters", "a parameter")
        check_member_name(name, "parameter", self, table)
        if isinstance(param, Module):
            raise ArgumentError(
                f"register_parameter({name!r}): {type(param).__name__} is a Module",
                remedy=f"call add_module({name!r}, module), or assign it as an attribute",
            )
        if param is not None:
            if not isinstance(param, Parameter):
                raise ArgumentError(
                    f"register_parameter({name!r}): {type(param).__name__} is not a Parameter",
                    remedy="pass nn.Parameter(tensor), or None",
                )
            if param.grad_fn is not None:
                raise AttributeValueError(
                    f"register_parameter({name!r}): the tensor was computed from others (grad_fn {param.grad_fn})",
                    remedy="register the leaf it depends on, and compute the tensor in forward()",
                )
            param = run_registration_hooks("parameter", self, name, param)
        table[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that belongs to the module without being a parameter.

        It is in ``state_dict`` when ``persistent``.

        Example:
            >>> import graphc as gc
            >>> module = gc.nn.Module()
            >>> module.register_buffer("mean", gc.zeros(2))
            >>> list(module.state_dict())
            ['mean']
        """
        table = self._table("_buffers", "a buffer")
        check_member_name(name, "buffer", self, table)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise ArgumentError(
                f"register_buffer({name!r}): {type(tensor).__name__} is not a tensor",
                remedy="pass graphc.tensor(...), or None",
            )
        table[name] = run_registration_hooks("buffer", self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a child module under ``name``, as an attribute assignment does."""
        table = self._table("_modules", "a module")
        if module is not None and not isinstance(module, Module):
            raise no_module(f"add_module({name!r})", module)
        check_member_name(name, "module", self, table)
        table[name] = run_registration_hooks("module", self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Add a child module, as ``add_module`` does."""
        self.add_module(name, module)

    def _table(self, table: str, what: str) -> dict[str, Any]:
        if table not in self.__dict__:
            raise MemberError(
                f"{type(self).__name__} is assigned {what} before Module.__init__ ran",
                remedy="call super().__init__() first",
            )
        return self.__dict__[table]

    # Attributes

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Parameter):
            self._table("_parameters", "a parameter")
            attributes.assigning(self, name)
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif name in self.__dict__.get("_parameters", ()):
            self._expect_none(name, value, "parameter", "nn.Parameter")
            self._parameters[name] = None
        elif isinstance(value, Module):
            table = self._table("_modules", "a module")
            self._forget(name, "_modules")
            table[name] = run_registration_hooks("module", self, name, value)
        elif (child := _compiled_module(value)) is not None:
            table = self._table("_modules", "a module")
            self._forget(name, "_modules")
            table[name] = run_registration_hooks("module", self, name, child)
            object.__setattr__(self, name, value)
        elif name in self.__dict__.get("_modules", ()):
            self._expect_none(name, value, "child module", "nn.Module")
            self.__dict__.pop(name, None)
            self._modules[name] = None
        elif isinstance(value, Buffer) or name in self.__dict__.get("_buffers", ()):
            self._set_buffer(name, value)
        else:
            before = self.__dict__.get(name, self)
            if before is not value:
                attributes.assigning(self, name)
                # NOTE: replacing a number by another one invalidates only the guards on that number.
                if type(value) not in KINDS or type(before) not in KINDS or name == "training":
                    mutation_epoch.note()
            object.__setattr__(self, name, value)

    def _set_buffer(self, name: str, value: Any) -> None:
        attributes.assigning(self, name)
        table = self._table("_buffers", "a buffer")
        if value is not None and not isinstance(value, Tensor):
            self._expect_none(name, value, "buffer", "graphc.Tensor")
        if name not in table:
            self._forget(name, "_buffers")
        if isinstance(value, Buffer):
            self.register_buffer(name, value, value.persistent)
        else:
            table[name] = run_registration_hooks("buffer", self, name, value)

    def _expect_none(self, name: str, value: Any, kind: str, expected: str) -> None:
        if value is not None:
            raise ArgumentError(
                f"{type(self).__name__}.{name} is a {kind} and cannot become a {type(value).__name__}",
                remedy=f"assign a {expected} or None, or `del` it first",
            )

    def _forget(self, name: str, keep: str) -> None:
        """Remove ``name`` from every table that holds attributes, except the table ``keep``."""
        members = self.__dict__
        members.pop(name, None)
        for table in ("_parameters", "_buffers", "_modules"):
            if table != keep:
                members[table].pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __getattr__(self, name: str) -> Any:
        members = self.__dict__
        for table in ("_parameters", "_buffers", "_modules"):
            if table in members and name in members[table]:
                return members[table][name]
        error = MemberError(f"{type(self).__name__!r} object has no attribute {name!r}")
        error.name, error.obj = name, self
        raise error

    def __delattr__(self, name: str) -> None:
        for table in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(table, ()):
                del self.__dict__[table][name]
                self.__dict__.pop(name, None)
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)
        mutation_epoch.note()

    def __dir__(self) -> list[str]:
        names = {*object.__dir__(self), *self._parameters, *self._buffers, *self._modules}
        return sorted(name for name in names if not name[:1].isdigit())

    def __reduce_ex__(self, protocol: Any) -> Any:
        return reduced(super().__reduce_ex__(max(2, protocol)))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_compiled"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        mutation_epoch.note()
        self.__dict__.update(state)
        for table in _HOOK_TABLES:
            hooks = self.__dict__.get(table, ())
            if not isinstance(hooks, Members):
                self.__dict__[table] = Members(hooks)

    # Conversion

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the data of every parameter, gradient and buffer by ``fn`` of it, children first.

        Parameters stay the same objects, so optimizers that hold them see the new data.
        """
        if recurse:
            for module in self.children():
                module._apply(fn)
        for parameter in self._parameters.values():
            if parameter is None:
                continue
            grad = parameter.grad
            with no_grad():
                parameter.data = fn(parameter.data)
                if grad is not None:
                    grad.data = fn(grad.data)
                    parameter.grad = grad
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Convert parameters and buffers in place and return this module.

        Call it as ``to(device)``, ``to(dtype)``, ``to(device, dtype)`` or ``to(tensor)``. Only floating-point tensors
        are cast.
        """
        dtype, device = _conversion_target(args, kwargs)
        if device is not None and device.type != CPU.type:
            placement().check(device)
        if dtype is None:
            return self if device is None else self._apply(lambda t: t.to(device))
        if not dtype.is_floating_point:
            raise DTypeError(f"Module.to: parameters cannot become {dtype!r}", remedy="pass a floating-point dtype")
        options = {} if device is None else {"device": device}
        return self._apply(lambda t: t.to(dtype=dtype if t.dtype.is_floating_point else None, **options))

    def type(self, dst_type: Any) -> Self:
        """Cast all parameters and buffers, of any type, to ``dst_type``."""
        dtype = dtype_of(dst_type)
        return self._apply(lambda t: t.to(dtype))

    def float(self) -> Self:
        """Cast floating-point parameters and buffers to f32."""
        return self.to(float32)

    def double(self) -> Self:
        """Cast floating-point parameters and buffers to f64."""
        return self.to(float64)

    def half(self) -> Self:
        """Cast floating-point parameters and buffers to f16."""
        return self.to(float16)

    def bfloat16(self) -> Self:
        """Cast floating-point parameters and buffers to bf16."""
        return self.to(bfloat16)

    def to_empty(self, *, device: Any = None, recurse: bool = True) -> Self:
        """Give parameters and buffers new memory with undefined content."""
        target = None if device is None else device_of(device)
        return self._apply(lambda t: empty_like(t, device=target), recurse)

    def share_memory(self) -> Self:
        """Move parameters and buffers to memory shared with processes forked from this one."""
        return self._apply(lambda t: t.share_memory_())

    def cpu(self) -> Self:
        """Move parameters and buffers to the CPU's memory; return this module."""
        return self.to("cpu")

    def cuda(self, device: Any = None) -> Self:
        """Move parameters and buffers to a GPU; raise DeviceError when none is available."""
        return self.to("cuda" if device is None else f"cuda:{device}")

    # Text

    def extra_repr(self) -> str:
        """Return the text that ``repr`` shows in this module's parentheses; subclasses override it."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr().split("\n") if self.extra_repr() else []
        children = [f"({name}): " + repr(module).replace("\n", "\n  ") for name, module in self._modules.items()]
        lines = extra + children
        if not children and len(extra) <= 1:
            return f"{self._get_name()}({''.join(extra)})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


attributes.watch(Module)


def _is_layer(module: Module) -> bool:
    """Return whether graphc defines ``forward``. Those of users may want the arrays that they are called with."""
    return next(c for c in type(module).__mro__ if "forward" in vars(c)).__module__.startswith("graphc.nn.")


def _tensor_of(argument: Any) -> Any:
    """Return a tensor that shares the memory of an array of numbers, and anything else unchanged."""
    return from_numpy(argument) if argument.__class__ is np.ndarray and argument.dtype.kind in "biufc" else argument


def _taken_for_tensor(module: Module, args: dict[Any, Any], error: AttributeError) -> GraphcError | None:
    """Build the error for a list, number or array that forward used as a tensor, or return None.

    The keys of ``args`` are the positions and the names of the arguments.
    """
    for key, value in args.items():
        plain = isinstance(value, (list, tuple, int, float, np.ndarray))
        if value is error.obj and plain and hasattr(Tensor, error.name or ""):
            clearer_error = no_tensor(f"{type(module).__name__}, argument {key}", value)
            module_path.note_origin(clearer_error)
            return clearer_error
    return None


def _compiled_module(value: Any) -> Module | None:
    """Return the module from which ``graphc.compile`` made ``value``, or None."""
    child = vars(value).get("_target") if getattr(type(value), "is_compiled", False) else None
    return child if isinstance(child, Module) else None


def no_module(call: str, value: Any) -> ArgumentError:
    """Build the error for a value that should have been a module."""
    if isinstance(value, type) and issubclass(value, Module):
        return ArgumentError(f"{call}: {value.__name__} is a class", remedy=f"pass an instance: {value.__name__}(...)")
    remedy = None
    if _compiled_module(value) is not None:
        remedy = "pass the module itself, and compile it in place by module.compile()"
    elif isinstance(value, (list, tuple)):
        remedy = "pass Sequential(*layers)"
    elif callable(value):
        remedy = "pass a layer such as nn.ReLU(), or call the function in forward()"
    return ArgumentError(f"{call}: {type(value).__name__} is not a Module", remedy=remedy)


def _conversion_target(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[DType | None, device_of | None]:
    """Return the element type and the device named by the arguments of ``Module.to``."""
    accepted = {"device", "dtype", "tensor", "non_blocking", "memory_format", "copy"}
    if unknown := set(kwargs) - accepted:
        raise ArgumentError(f"Module.to: unknown argument {sorted(unknown)}", remedy=f"pass one of {sorted(accepted)}")
    dtype: DType | None = None
    device: device_of | None = None
    for value in (*args, kwargs.get("device"), kwargs.get("dtype"), kwargs.get("tensor")):
        if isinstance(value, Tensor):
            dtype, device = value.dtype, value.device
        elif isinstance(value, DType):
            dtype = value
        elif value is not None and not isinstance(value, bool):
            device = device_of(value)
    return dtype, device
