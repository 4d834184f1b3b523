"""Optimizer: parameter groups, state, and a step based on a pure update rule that can also be traced."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar, TypedDict

import numpy as np

from graphc.base.errors import ArgumentError, AttributeValueError, StateDictError, TraceError
from graphc.base.progress import PYTHON, shown
from graphc.base.public import reduced
from graphc.base.switches import are_deterministic_algorithms_enabled
from graphc.ops.dispatch import active
from graphc.ops.pointwise import elementwise as ew
from graphc.optim.traced_step import apply_in_trace, step_in_trace
from graphc.tape.grad_mode import enable_grad, no_grad, reset_recording, set_recording
from graphc.tape.hooks import RemovableHandle
from graphc.tensors.complex_numbers import view_as_complex, view_as_real
from graphc.tensors.creation import as_tensor
from graphc.tensors.native import native_loop
from graphc.tensors.placement import is_on_device
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front
from graphc.tracing.trace import is_tracing

Group = dict[str, Any]
State = dict[str, Tensor]


STEPS = 8
"""Number of steps run by operations without a preference; the next one is a native call."""


class ImplementationOptions(TypedDict, total=False):
    """PyTorch's options for the implementation of a step; here a step is one program, or one operation after the other.
    All but ``differentiable`` are accepted and change nothing."""

    foreach: bool | None
    """Update parameters of a kind together."""
    fused: bool | None
    """Run a step as one kernel."""
    capturable: bool
    """Let a recorded program contain the step."""
    differentiable: bool
    """Let gradients flow through the step; not supported."""


def settings_of(arguments: dict[str, Any]) -> Group:
    """Return the settings among the arguments of an optimizer's ``__init__``, which passes its ``locals()``."""
    return {n: value for n, value in arguments.items() if n not in ("self", "params", "options", "__class__")}


class Optimizer:
    """Base of optimizers. A subclass defines ``init_state`` and ``update``.

    ``update`` is pure: it returns the new parameter and the new state, in tensor operations. So the same rule runs
    eagerly in ``step`` and inside of a compiled training step. ``hyper`` contains the numbers of a group: those in
    ``schedulable`` may be Python floats or 0-d tensors, all others are Python values.

    Example:
        >>> import graphc as gc
        >>> first, second = gc.nn.Linear(2, 2), gc.nn.Linear(2, 1)
        >>> groups = [{"params": first.parameters()}, {"params": second.parameters(), "lr": 0.01}]
        >>> optimizer = gc.optim.SGD(groups, lr=0.1)
        >>> [group["lr"] for group in optimizer.param_groups]
        [0.1, 0.01]
    """

    schedulable: ClassVar[tuple[str, ...]] = ("lr", "weight_decay")
    """Numbers of a group that may change between steps without a new trace."""
    optional_entries: ClassVar[Mapping[str, str | None]] = {}
    """Entries that a loaded state may lack, with the option that needs them, or None if every step does. The first step
    that needs such an entry begins it; so does a step after the option was switched on."""
    native: bool | None = None
    """Whether ``step`` is one native call: True, False or None.

    None applies to graphc's optimizers: steps are native once compiled code has computed a gradient, after ``STEPS``
    steps, or with ``use_deterministic_algorithms``. GRAPHC_EAGER=reference disables native steps.
    """
    updates: Any = None
    """The native updates of this optimizer, cached by their creator."""
    is_compilable: ClassVar[bool] = True
    """Whether ``update`` is the whole step, so that compiled code can contain it."""

    def __init__(self, params: Any, defaults: Group, options: ImplementationOptions | None = None):
        _check_options(type(self).__name__, options or {})
        self.defaults = defaults
        self.state: defaultdict[Tensor, State] = defaultdict(dict)
        self.param_groups: list[Group] = []
        self.step_count = 0
        """Number of updates of the parameters, by eager and compiled steps."""
        self._step_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._step_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._state_hooks: dict[str, OrderedDict[int, Callable[..., Any]]] = {}
        if isinstance(params, Tensor):
            raise ArgumentError(
                f"{type(self).__name__}: got one tensor instead of a list of parameters", remedy="pass [parameter]"
            )
        if not isinstance(params, Iterable):
            raise ArgumentError(
                f"{type(self).__name__}: {type(params).__name__} is not an iterable of parameters",
                remedy="pass model.parameters()",
            )
        groups = list(params)
        if not groups:
            raise AttributeValueError(f"{type(self).__name__} got an empty list of parameters")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    # The rule

    def init_state(self, param: Tensor) -> State:
        """Return the state of ``param`` before its first step; ``update`` replaces its tensors."""
        raise NotImplementedError(f"{type(self).__name__} does not define init_state")

    def update(self, param: Tensor, grad: Tensor, state: State, hyper: Group) -> tuple[Tensor, State]:
        """Return the parameter and its state after a step with ``grad``, without in-place changes."""
        raise NotImplementedError(f"{type(self).__name__} does not define update")

    def new_values(self, param: Tensor, grad: Tensor, state: State, hyper: Group) -> tuple[Tensor, State]:
        """Apply ``update``; a complex parameter is viewed as adjacent real and imaginary parts."""
        if not param.dtype.is_complex:
            return self.update(param, grad, state, hyper)
        complex_names = [name for name, value in state.items() if value.dtype.is_complex]
        real_state = {name: view_as_real(value) if name in complex_names else value for name, value in state.items()}
        value, after = self.update(view_as_real(param), view_as_real(grad), real_state, hyper)
        return view_as_complex(value), after | {name: view_as_complex(after[name]) for name in complex_names}

    @property
    def rule(self) -> Optimizer:
        """The optimizer that defines ``update``: this one, unless it wraps another."""
        return self

    def hyper(self, group: Group) -> Group:
        """Return the numbers and flags of a group, without its parameters."""
        return {name: value for name, value in group.items() if name != "params"}

    def number(self, group: Group, name: str) -> Any:
        """Return the current value of the schedulable number ``name`` of a group."""
        return group[name]

    # Groups

    def add_param_group(self, param_group: Group) -> None:
        """Add parameters with their own options; missing options come from the defaults.

        Raises AttributeValueError for a parameter that is already in a group, ArgumentError for a value other than a
        tensor.
        """
        if not isinstance(param_group, dict):
            raise ArgumentError(f"a parameter group must be a dict, got {type(param_group).__name__}")
        group = dict(param_group)
        params = group.get("params", ())
        if isinstance(params, set):
            raise ArgumentError("parameters in a set have no fixed order", remedy="pass a list")
        named = [p if isinstance(p, tuple) else (None, p) for p in ([params] if isinstance(params, Tensor) else params)]
        group["params"] = [p for _, p in named]
        if any(name is not None for name, _ in named):
            group["param_names"] = [name for name, _ in named]
        self._check_params(group["params"])
        for name, value in self.defaults.items():
            group.setdefault(name, value)
        self.check_group(group)
        self.param_groups.append(group)

    def _check_params(self, params: list[Any]) -> None:
        used_ids = {id(p) for group in self.param_groups for p in group["params"]}
        for param in params:
            if not isinstance(param, Tensor):
                raise ArgumentError(f"{type(self).__name__} takes tensors, got {type(param).__name__}")
            if not param.is_leaf:
                raise AttributeValueError(f"{type(self).__name__}: cannot optimize a tensor that is not a leaf")
            if id(param) in used_ids:
                raise AttributeValueError(f"{type(self).__name__}: a parameter appears more than once")
            used_ids.add(id(param))

    def check_group(self, group: Group) -> None:
        """Raise AttributeValueError for invalid options; subclasses extend it."""
        for name in ("lr", "weight_decay", "eps", "momentum"):
            value = group.get(name, 0.0)
            if not isinstance(value, Tensor) and not value >= 0.0:
                raise AttributeValueError(f"{type(self).__name__}: {name} must be 0 or more, got {value}")

    def group_of(self, param: Tensor) -> Group:
        """Return the group that holds ``param``."""
        for group in self.param_groups:
            if id(param) in map(id, group["params"]):
                return group
        raise AttributeValueError(f"{type(self).__name__} does not hold this parameter")

    def state_of(self, param: Tensor, group: Group | None = None) -> State:
        """Return the state of ``param``; create it, and the entries of options switched on since, on first use.

        ``group`` is the parameter's group, which is looked up if absent.
        """
        state = self.state[param]
        if not state or self._lacks_entry(state, group or self.group_of(param)):
            with no_grad():
                initial = _on_device_of(param, self.init_state(param))
                state.update((name, value) for name, value in initial.items() if name not in state)
        return state

    def _lacks_entry(self, state: State, group: Group) -> bool:
        optional = self.rule.optional_entries.items()
        return any([name not in state and not (option and is_zero(group[option])) for name, option in optional])

    # Several processes

    def owned(self, params: list[Tensor]) -> list[Tensor]:
        """Return the parameters that this process updates; a sharded optimizer leaves some to other processes."""
        return params

    def from_others(self, params: Sequence[Tensor], values: Mapping[int, Tensor]) -> list[tuple[Tensor, Tensor]]:
        """Exchange new values with the other processes. ``values`` maps the identities of this process's parameters in
        ``params`` to their new values; return pairs of a parameter of another process and its new value."""
        return []

    # Steps

    @shown(PYTHON, lambda call: f"{type(call['self']).__name__}.step")
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient, in place, and return the result of ``closure()``.

        All new values are computed before the first is written, so an error leaves every parameter unchanged. If
        compiled code has computed gradients, or ``native`` is set, the step traces ``update`` and runs as one native
        call. In a compiled function the update becomes part of its code.
        """
        if active() is not None and is_tracing():
            return step_in_trace(self, closure)
        for hook in list(self._step_pre_hooks.values()):
            hook(self, (closure,), {})
        recording = set_recording(False)
        try:
            loss = self._run(closure)
        finally:
            reset_recording(recording)
        self.step_count += 1
        for hook in list(self._step_post_hooks.values()):
            hook(self, (closure,), {})
        return loss

    def _run(self, closure: Callable[[], Any] | None) -> Any:
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        if not self._run_natively():
            params = [p for group in self.param_groups for p in group["params"]]
            self._write(self._compute({id(p): p.grad for p in params if p.grad is not None}))
        return loss

    def apply_gradients(self, gradients: Mapping[int, Tensor], condition: Any = None) -> None:
        """Update parameters in place with gradients by ``id`` of the parameter. Leave out hooks and the step count.

        Where ``condition``, a boolean tensor, is false, nothing changes. In a trace the update becomes part of the
        graph.
        """
        if is_tracing():
            apply_in_trace(self, gradients, condition)
            return
        changes = self._compute(gradients, condition)
        params = [p for group in self.param_groups for p in group["params"] if id(p) in gradients]
        self._write([*changes, *self.from_others(params, {id(target): value for target, value in changes})])

    def _run_natively(self) -> bool:
        """Run the update as one native call; return False if operations must do it."""
        params = [p for group in self.param_groups for p in group["params"] if p._grad is not None]
        wish = self.native
        if wish is None and type(self).__module__.partition(".")[0] != "graphc":
            return False
        if wish is None and (self.step_count >= STEPS or are_deterministic_algorithms_enabled()):
            wish = True
        loop = native_loop(params, wish)
        return loop is not None and loop.update(self, self.owned(params))

    def _compute(self, gradients: Mapping[int, Tensor], condition: Any = None) -> list[tuple[Tensor, Tensor]]:
        """Return pairs of a tensor and its new value, for all parameters with a gradient and their state."""
        changes: list[tuple[Tensor, Tensor]] = []
        for group in self.param_groups:
            hyper = self.hyper(group)
            for param in self.owned([p for p in group["params"] if id(p) in gradients]):
                changes += self.changes_of(param, gradients[id(param)], self.state_of(param, group), hyper, condition)
        return changes

    def changes_of(
        self, param: Tensor, grad: Tensor, state: State, hyper: Group, condition: Any = None
    ) -> list[tuple[Tensor, Tensor]]:
        """Return pairs of a tensor and its new value, for a parameter and its state.

        Where ``condition`` is false, the new values are the former ones.
        """
        value, new_state = self.new_values(param, grad, state, hyper)
        pairs = [(param, value), *((state[n], new_state[n]) for n in state if n in new_state)]
        return pairs if condition is None else [(old, ew.where(condition, new, old)) for old, new in pairs]

    @staticmethod
    def _write(changes: Iterable[tuple[Tensor, Tensor]]) -> None:
        for target, value in changes:
            target.copy_(value)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Remove the gradients of all parameters, or set them to zero."""
        is_eager = active() is None
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none and is_eager:
                    param._grad = None
                elif set_to_none:
                    param.grad = None
                elif param.grad is not None:
                    param.grad = param.grad.detach()
                    param.grad.zero_()

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step."""
        handle = RemovableHandle(self._step_pre_hooks)
        self._step_pre_hooks[handle.id] = hook
        return handle

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        handle = RemovableHandle(self._step_post_hooks)
        self._step_post_hooks[handle.id] = hook
        return handle

    def _add_state_hook(self, table: str, hook: Callable[..., Any], prepend: bool) -> RemovableHandle:
        hooks = self._state_hooks.setdefault(table, OrderedDict())
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        return handle

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` before ``state_dict``."""
        return self._add_state_hook("save", hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` after ``state_dict``; it may return a replacement."""
        return self._add_state_hook("saved", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before ``load_state_dict``; it may return a replacement."""
        return self._add_state_hook("load", hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` after ``load_state_dict``."""
        return self._add_state_hook("loaded", hook, prepend)

    def _run_state_hooks(self, table: str, *args: Any) -> Any:
        """Pass the state dictionary through the hooks of a table, and return it."""
        for hook in list(self._state_hooks.get(table, {}).values()):
            replacement = hook(self, *args)
            args = args if replacement is None or not args else (replacement,)
        return args[0] if args else None

    # Saving

    def _numbers(self) -> dict[int, int]:
        """Return the index over all groups of each parameter, by identity."""
        params = [p for group in self.param_groups for p in group["params"]]
        return {id(p): i for i, p in enumerate(params)}

    def state_dict(self) -> dict[str, Any]:
        """Return state and options, with parameters replaced by their indices. State tensors are not copied."""
        self._run_state_hooks("save")
        numbers = self._numbers()
        state = {numbers[id(param)]: dict(entries) for param, entries in self.state.items() if entries}
        return self._run_state_hooks("saved", {"state": state, "param_groups": self._numbered_groups()})

    def sharded_state_dict(self) -> dict[str, Any]:
        """Return this process's share of ``state_dict`` for ``graphc.distributed.checkpoint``: all of it, unless
        processes shard the state."""
        return self.state_dict()

    def needs_entry(self, path: Sequence[Any]) -> bool:
        """Return whether ``load_state_dict`` in this process reads the entry at a path of keys in ``state_dict``."""
        return True

    def _numbered_groups(self) -> list[Group]:
        numbers = self._numbers()
        return [{**group, "params": [numbers[id(p)] for p in group["params"]]} for group in self.param_groups]

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load state and options from the ``state_dict`` of an optimizer with as many parameters.

        The options of this optimizer may differ; the loaded ones replace them. Entries of the state that no option
        needs now are kept. Raises StateDictError, without any change, if groups or shapes do not fit.
        """
        state_dict = self._run_state_hooks("load", {**state_dict})
        saved = list(state_dict["param_groups"])
        sizes = [len(g["params"]) for g in saved], [len(g["params"]) for g in self.param_groups]
        if sizes[0] != sizes[1]:
            raise StateDictError(
                f"{type(self).__name__}: the state dictionary has groups of {sizes[0]} parameters, "
                f"the optimizer of {sizes[1]}"
            )
        params = [p for group in self.param_groups for p in group["params"]]
        numbers = [n for group in saved for n in group["params"]]
        params_by_number = dict(zip(numbers, params, strict=True))
        options = [dict(group) for group in self.param_groups]
        try:
            for group, entries in zip(self.param_groups, saved, strict=True):
                group.update((name, deepcopy(value)) for name, value in entries.items() if name != "params")
            state = {
                params_by_number[n]: self._load_state(params_by_number[n], entries)
                for n, entries in state_dict["state"].items()
            }
        # NOTE: whatever a state dictionary raises, the options stay as they were.
        except BaseException:
            for group, former in zip(self.param_groups, options, strict=True):
                group.clear()
                group.update(former)
            raise
        self.state = defaultdict(dict, state)
        self._run_state_hooks("loaded")

    def _load_state(self, param: Tensor, entries: Mapping[str, Any]) -> State:
        """Return a copy of saved entries, in the element types of a fresh state where that has them."""
        fresh = _on_device_of(param, self.init_state(param))
        loaded: State = {}
        for name in fresh:
            if name not in entries and name not in self.rule.optional_entries:
                raise StateDictError(f"{type(self).__name__}: the state dictionary lacks {name!r} of a parameter")
        with no_grad():
            for name, value in entries.items():
                if value is None:
                    continue
                value = as_tensor(value)
                current = fresh.get(name)
                if current is None:
                    current = _on_device_of(param, {name: _blank_entry(param, value)})[name]
                elif tuple(value.shape) != tuple(current.shape):
                    raise StateDictError(
                        f"{type(self).__name__}: state {name!r} has shape {list(value.shape)}, "
                        f"the parameter needs {list(current.shape)}"
                    )
                loaded[name] = current.copy_(value)
        return loaded

    def __reduce_ex__(self, protocol: Any) -> Any:
        return reduced(super().__reduce_ex__(max(2, protocol)))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "updates"}

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines.extend(f"    {name}: {group[name]}" for name in sorted(group) if name != "params")
        return "\n".join([*lines, ")"])


def refuse_trace(what: str) -> None:
    """Raise TraceError in a compiled function: a schedule's step changes Python state."""
    if is_tracing():
        raise TraceError(
            f"{what} runs in a compiled function, where it would take effect only once, during the trace",
            remedy="use step = graphc.compile_step(model, loss, optimizer), which compiles the update too; step "
            "schedules outside",
        )


def _on_device_of(param: Tensor, state: State) -> State:
    """Move a state to the device of its parameter."""
    return {k: v.to(param.device) for k, v in state.items()} if is_on_device(param._data) else state


def zeros_like(param: Tensor) -> Tensor:
    """Return zeros in shape and type of ``param``."""
    return front().constant(np.zeros(param.shape, param.dtype.numpy))


def _blank_entry(param: Tensor, value: Tensor) -> Tensor:
    """Return zeros for an entry that a fresh state lacks: in the type of the parameter if they have its shape."""
    dtype = param.dtype if tuple(value.shape) == tuple(param.shape) else value.dtype
    return front().constant(np.zeros(value.shape, dtype.numpy))


def step_counter() -> Tensor:
    """Return the initial step count: 0 in f32, without dimensions."""
    return front().constant(np.zeros((), np.float32))


def decayed_gradient(param: Tensor, grad: Tensor, hyper: Group) -> Tensor:
    """Return the gradient of descent, with ``weight_decay`` times the parameter added."""
    if hyper["maximize"]:
        grad = -grad
    decay = hyper["weight_decay"]
    return grad if is_zero(decay) else grad + param * decay


def is_zero(number: Any) -> bool:
    """Return whether a number is the Python number 0, which disables its term; a tensor may have any value."""
    return isinstance(number, (int, float)) and number == 0


def _check_options(name: str, options: ImplementationOptions) -> None:
    unknown = options.keys() - ImplementationOptions.__annotations__.keys()
    if unknown:
        raise ArgumentError(f"{name} has no argument {min(unknown)!r}", remedy=f"see help(graphc.optim.{name})")
    if options.get("differentiable"):
        raise ArgumentError(
            f"{name}: differentiable=True is not supported",
            remedy="call graphc.func.functional_call(model, {name: p - lr * p_grad ...}, x), with "
            "grad(create_graph=True)",
        )
