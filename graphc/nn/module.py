"""Module: holds parameters, buffers and child modules, and calls ``forward`` with its hooks around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from graphc.base import module_path, mutation_epoch
from graphc.base.device import CPU
from graphc.base.device import device as device_of
from graphc.base.dtypes import DType, bfloat16, dtype_of, float16, float32, float64
from graphc.base.errors import ArgumentError, AttributeValueError, DTypeError, GraphcError, MemberError
from graphc.base.lazy import deferred
from graphc.base.mutation_epoch import Members
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
from graphc.tensors.creation import empty_like
from graphc.tensors.placement import placement
from graphc.tensors.tensor import Tensor
from graphc.tracing.trace import runs_as_python

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
    ``forward``. Of a compiled module the module itself becomes the child; the attribute is the compiled one. Calling
    the module runs pre-hooks, ``forward``, and forward hooks; gradients come from the operations that forward applies.
    """

    dump_patches = False
    call_super_init = False
    _compiled: Any = None
    """What runs the calls after ``compile()``; copies and pickles do without."""
    _backend: Any = None
    """Which library of kernels a module uses was chosen here once; programs of that time look for it."""

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
        """What the module computes; subclasses define it."""
        raise NotImplementedError(f'module {type(self).__name__} does not define "forward"')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._compiled is not None and not (runs_as_python() or dispatch.runs_python()):
            return self._compiled(*args, **kwargs)
        module_path.enter(self)
        try:
            if self._has_hooks():
                return call_with_hooks(self, args, kwargs)
            return self.forward(*args, **kwargs)
        except GraphcError as error:
            module_path.note_origin(error)
            raise
        except AttributeError as error:
            found = _taken_for_tensor(self, args, error)
            if found is None:
                raise
            raise found from error
        finally:
            module_path.leave()

    def compile(self, **options: Any) -> None:
        """Makes calls of this module run as native code from now on, as those of ``graphc.compile(module)`` do, whose
        options these are."""
        self.__dict__["_compiled"] = compile_module(self, **options)

    # Registration

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter under ``name``; None keeps the name for one that does not exist."""
        table = self._table("_parameters", "a parameter")
        check_member_name(name, "parameter", self, table)
        if isinstance(param, Module):
            raise ArgumentError(
                f"register_parameter({name!r}): {type(param).__name__} is a Module",
                remedy=f"add_module({name!r}, module), or setattr",
            )
        if param is not None:
            if not isinstance(param, Parameter):
                raise ArgumentError(
                    f"register_parameter({name!r}): {type(param).__name__} is no Parameter",
                    remedy="nn.Parameter(tensor), or None",
                )
            if param.grad_fn is not None:
                raise AttributeValueError(
                    f"register_parameter({name!r}): the tensor was computed from others (grad_fn {param.grad_fn})",
                    remedy="register the leaf it depends on, and compute the tensor in forward()",
                )
            param = run_registration_hooks("parameter", self, name, param)
        table[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is no parameter but belongs to the module; it is in ``state_dict`` when persistent."""
        table = self._table("_buffers", "a buffer")
        check_member_name(name, "buffer", self, table)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise ArgumentError(
                f"register_buffer({name!r}): {type(tensor).__name__} is no tensor", remedy="graphc.tensor(...), or None"
            )
        table[name] = run_registration_hooks("buffer", self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a child module under ``name``, as an attribute assignment does."""
        table = self._table("_modules", "a module")
        if module is not None and not isinstance(module, Module):
            raise no_module(f"add_module({name!r})", module)
        check_member_name(name, "module", self, table)
        table[name] = run_registration_hooks("module", self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as ``add_module``."""
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
                # NOTE: a number for another one changes nothing but what is known of the number itself.
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

    def _expect_none(self, name: str, value: Any, kind: str, wanted: str) -> None:
        if value is not None:
            raise ArgumentError(
                f"{type(self).__name__}.{name} is a {kind} and cannot become a {type(value).__name__}",
                remedy=f"assign a {wanted} or None, or `del` it first",
            )

    def _forget(self, name: str, keep: str) -> None:
        """Removes ``name`` from everything that attributes live in, except the table ``keep``."""
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
            known = self.__dict__.get(table, ())
            if not isinstance(known, Members):
                self.__dict__[table] = Members(known)

    # Conversion

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replaces the data of every parameter, gradient and buffer by ``fn`` of it, children first.

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
        """``to(device)``, ``to(dtype)``, ``to(device, dtype)`` or ``to(tensor)``: converts parameters and buffers in
        place and returns this module. Only floating-point ones are cast."""
        dtype, place = _conversion_target(args, kwargs)
        if place is not None and place.type != CPU.type:
            placement().check(place)
        if dtype is None:
            return self if place is None else self._apply(lambda t: t.to(place))
        if not dtype.is_floating_point:
            raise DTypeError(f"Module.to: parameters cannot become {dtype!r}", remedy="a floating-point dtype")
        options = {} if place is None else {"device": place}
        return self._apply(lambda t: t.to(dtype=dtype if t.dtype.is_floating_point else None, **options))

    def type(self, dst_type: Any) -> Self:
        """Casts all parameters and buffers, of whatever type, to ``dst_type``."""
        dtype = dtype_of(dst_type)
        return self._apply(lambda t: t.to(dtype))

    def float(self) -> Self:
        """Casts floating-point parameters and buffers to f32."""
        return self.to(float32)

    def double(self) -> Self:
        """Casts floating-point parameters and buffers to f64."""
        return self.to(float64)

    def half(self) -> Self:
        """Casts floating-point parameters and buffers to f16."""
        return self.to(float16)

    def bfloat16(self) -> Self:
        """Casts floating-point parameters and buffers to bf16."""
        return self.to(bfloat16)

    def to_empty(self, *, device: Any = None, recurse: bool = True) -> Self:
        """Gives parameters and buffers new memory whose content is not defined."""
        place = None if device is None else device_of(device)
        return self._apply(lambda t: empty_like(t, device=place), recurse)

    def share_memory(self) -> Self:
        """Moves parameters and buffers to memory that processes forked from this one share with it."""
        return self._apply(lambda t: t.share_memory_())

    def cpu(self) -> Self:
        """Moves parameters and buffers to the CPU's memory; returns this module."""
        return self.to("cpu")

    def cuda(self, device: Any = None) -> Self:
        """Moves parameters and buffers to a GPU; raises DeviceError where there is none."""
        return self.to("cuda" if device is None else f"cuda:{device}")

    # Text

    def extra_repr(self) -> str:
        """What ``repr`` shows in the parentheses of this module; subclasses override it."""
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


def _taken_for_tensor(module: Module, args: tuple[Any, ...], error: AttributeError) -> GraphcError | None:
    """The error for a list, tuple or number among ``args`` of which a tensor's attribute was asked."""
    for number, value in enumerate(args):
        plain = isinstance(value, (list, tuple, int, float))
        if value is error.obj and plain and hasattr(Tensor, error.name or ""):
            found = no_tensor(f"{type(module).__name__}, argument {number}", value)
            module_path.note_origin(found)
            return found
    return None


def _compiled_module(value: Any) -> Module | None:
    """The module that ``graphc.compile`` made ``value`` of, or None."""
    child = vars(value).get("_target") if getattr(type(value), "is_compiled", False) else None
    return child if isinstance(child, Module) else None


def no_module(doing: str, value: Any) -> ArgumentError:
    """The error for a value that should have been a module."""
    if isinstance(value, type) and issubclass(value, Module):
        return ArgumentError(f"{doing}: {value.__name__} is a class", remedy=f"{value.__name__}(...), a module of it")
    remedy = None
    if _compiled_module(value) is not None:
        remedy = "module.compile(), which compiles a module in place, and the module itself here"
    elif isinstance(value, (list, tuple)):
        remedy = "Sequential(*layers)"
    elif callable(value):
        remedy = "a layer such as nn.ReLU(), or the function in forward()"
    return ArgumentError(f"{doing}: {type(value).__name__} is not a Module", remedy=remedy)


def _conversion_target(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[DType | None, device_of | None]:
    """The element type and the device named by the arguments of ``Module.to``."""
    known = {"device", "dtype", "tensor", "non_blocking", "memory_format", "copy"}
    if unknown := set(kwargs) - known:
        raise ArgumentError(f"Module.to: unknown argument {sorted(unknown)}", remedy=f"one of {sorted(known)}")
    found: DType | None = None
    place: device_of | None = None
    for value in (*args, kwargs.get("device"), kwargs.get("dtype"), kwargs.get("tensor")):
        if isinstance(value, Tensor):
            found, place = value.dtype, value.device
        elif isinstance(value, DType):
            found = value
        elif value is not None and not isinstance(value, bool):
            place = device_of(value)
    return found, place
