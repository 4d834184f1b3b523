"""Compiled training steps: forward, loss, gradients and the optimizer's update rule in one native call."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from operator import is_
from typing import Any, NamedTuple

import numpy as np

from graphc.base import config, module_path
from graphc.base.dtypes import float32, float64
from graphc.base.errors import ArgumentError, GradientError, HookError, ShapeError, TraceError
from graphc.base.interruptions import kept_outside
from graphc.base.locks import Lock
from graphc.base.mutation_epoch import EPOCH
from graphc.compiled.bindings import Modules, Slot
from graphc.compiled.bound_program import bind, binding_of, bound_values, build
from graphc.compiled.function import no_class
from graphc.compiled.graph_module import as_callable
from graphc.compiled.guards import Recompiles
from graphc.compiled.machine import HOST, machine_named, machine_of
from graphc.compiled.number_places import MOST_ANSWERS, Fresh, Given, GivenNumbers, NumberPlaces
from graphc.compiled.outside import Outside
from graphc.compiled.program_table import ProgramTable, trim
from graphc.compiled.recompile_warning import RecompileCount, argument_names
from graphc.compiled.sized_traces import (
    DimsOfCalls,
    SizedCall,
    SizedTrace,
    SizedTraces,
    Sizes,
    keys_of,
    program_for,
    structure_at,
    value_at,
)
from graphc.compiled.user_passes import passed
from graphc.compiled.variant import no_hooks
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph, Value, input_path
from graphc.ir.op import Trait
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.autodiff import vjp_graph
from graphc.ops.define import as_type
from graphc.ops.state import state_write
from graphc.passes.base import Pass
from graphc.passes.pipeline import arrange
from graphc.tape.grad_mode import enable_grad, is_grad_enabled, is_inference_mode_enabled, no_grad
from graphc.tape.hooks import call_hook
from graphc.tensors.placement import on_host
from graphc.tensors.structure import (
    LEAF,
    Branch,
    Leaf,
    Structure,
    check_static,
    flatten,
    given_for,
    shape_of,
    unflatten,
)
from graphc.tensors.tensor import Tensor
from graphc.tracing.attributes import recording, set_again
from graphc.tracing.identity import check_apart, repeats
from graphc.tracing.trace import Traced, graph_name, modules_of, settled, trace_function
from graphc.tracing.tracer import Tracer

Number = bool | int | float


class _Argument(NamedTuple):
    """A number of an optimizer's group that is an argument of the program."""

    group: int
    """Number of the group."""
    name: str
    dtype: np.dtype


class _Rule:
    """The numbers of one parameter group: those that are arguments of the program, in the precision of the group's
    parameters, and those that are part of it."""

    def __init__(self, optimizer: Any, index: int, graph: Graph):
        group = optimizer.param_groups[index]
        self.values: dict[str, Any] = dict(optimizer.hyper(group))
        self.inputs: list[_Argument] = []
        """The numbers that are arguments, in order."""
        wide = any(p.dtype is float64 for p in group["params"])
        dtype = float64 if wide else float32
        for name in optimizer.schedulable:
            value = self.values.get(name)
            if _is_static(value):
                continue
            argument = graph.add_input(TensorType(dtype), f"group{index}.{name}")
            self.values[name] = Tensor._wrap(argument)
            self.inputs.append(_Argument(index, name, dtype.numpy))


def _is_static(value: Any) -> bool:
    """Numbers that are absent or 0 are part of the program, which then does without what they switch off."""
    return not isinstance(value, Tensor) and (not isinstance(value, (int, float)) or value == 0)


class _Settings:
    """What a program depends on of the optimizer: its parameters, and all numbers that are no arguments."""

    def __init__(self, optimizer: Any):
        self._optimizer = optimizer
        self._settings = self._read(optimizer)
        self._seen = self._values(optimizer)

    @staticmethod
    def _read(optimizer: Any) -> tuple[Any, ...]:
        found = []
        for group in optimizer.param_groups:
            kept = {k: v for k, v in optimizer.hyper(group).items() if k not in optimizer.schedulable or _is_static(v)}
            found.append((tuple(map(id, group["params"])), flatten(kept)[1]))
        return tuple(found)

    @staticmethod
    def _values(optimizer: Any) -> list[Any]:
        values: list[Any] = []
        for group in optimizer.param_groups:
            values += group.values()
            values += group["params"]
        return values

    def holds(self) -> bool:
        """Whether they are as they were; nearly always nothing was assigned at all."""
        optimizer = self._optimizer
        values = self._values(optimizer)
        if len(values) == len(self._seen) and all(map(is_, values, self._seen)):
            return True
        if self._read(optimizer) != self._settings:
            return False
        self._seen = values
        return True

    def why(self) -> str:
        """What has changed."""
        return "a parameter or a setting of the optimizer was replaced"


class _Updated:
    """That what stands in the place of each parameter which a program updates is the parameter of the optimizer."""

    def __init__(self, pairs: Sequence[tuple[Slot, Tensor]]):
        self._pairs = pairs
        self._counted = all(slot.counted for slot, _ in pairs)
        self._seen = -1
        """The mutation epoch when ``holds`` looked last and was true."""

    def holds(self) -> bool:
        """Whether no parameter was replaced in the model."""
        epoch = EPOCH[0]
        if self._seen == epoch and self._counted:
            return True
        if not all([slot.tensor() is parameter for slot, parameter in self._pairs]):
            return False
        self._seen = epoch
        return True


class _Program:
    """A training step for one signature."""

    def __init__(
        self, step: CompiledStep, traced: Traced, outside: Outside, taken: GivenNumbers, leaves: Sequence[Any]
    ):
        self.model = step.model
        self.optimizer = step.optimizer
        self.given = taken
        """How it takes numbers that each call gives."""
        no_hooks(step.name, traced)
        if traced.training is not None:
            raise TraceError(
                f"{step.name}: the model or the loss calls backward or steps an optimizer itself",
                remedy="graphc.compile of the whole training function, called with the batch",
            )
        self.machine = machine_of(step.target, [*leaves, *[a.tensor for a in traced.arguments]])
        self.traced = passed(traced, step.passes.first, self.machine)
        self._effects = self.traced.effects
        self._outside = outside
        self.account = self._outside.account([_Settings(step.optimizer)])
        graph, parameters = self._differentiate(step.optimizer)
        slots = self._slots(step.optimizer, parameters)
        self._given: list[float] = []
        """The optimizer's numbers of the last step, where they were plain ones."""
        self._numbers: list[np.ndarray] = []
        """Arrays of them."""
        self.hyper = self._append_update(step.optimizer, graph, parameters)
        self.graph = graph
        self.program = build(graph, step.passes.pipeline, self.machine)
        order = [v.node.attrs["path"] for v in bound_values(graph, self.program)]
        written = {n.operands[0].node.attrs["path"] for n in graph.nodes() if n.op.has(Trait.STATE_WRITE)}
        self.binding = binding_of(self.program, [slots[p] for p in order], [p in written for p in order])
        self.calls = bind(self.program, self.binding, self.account.words, len(graph.outputs))
        self.single = self.traced.structure == Branch(tuple, (), (Leaf(), Leaf()))

    def _differentiate(self, optimizer: Any) -> tuple[Graph, dict[Value, tuple[Value, Tensor]]]:
        """The graph with gradients; for each parameter to update its argument, with gradient and tensor."""
        traced = self.traced
        value = traced.graph.outputs[0]
        if value.type.size != 1:
            raise ShapeError(f"the loss must be one number, got {value.type}", remedy="loss.mean() or loss.sum()")
        if not traced.differentiable[0]:
            raise GradientError("the loss does not depend on any parameter that requires gradients")
        known = {id(p) for group in optimizer.param_groups for p in group["params"]}
        wanted = [a for a in traced.arguments if id(a.tensor) in known and traced.reached.get(a.value) == 0]
        if not wanted:
            raise ArgumentError(
                "compile_step: the optimizer holds no parameter that the loss depends on",
                remedy=f"an optimizer of the parameters of this {graph_name(self.model)}: model.parameters()",
            )
        joint = vjp_graph(traced.graph, [a.value for a in wanted], [0], unit=True)
        position = {v: i for i, v in enumerate(traced.graph.inputs)}
        count = len(traced.graph.outputs)
        gradients = joint.outputs[count:]
        joint.set_outputs(joint.outputs[:count])
        parameters = {
            joint.inputs[position[a.value]]: (gradient, a.tensor) for a, gradient in zip(wanted, gradients, strict=True)
        }
        return joint, parameters

    def _slots(self, optimizer: Any, parameters: dict[Value, tuple[Value, Tensor]]) -> dict[str, Slot]:
        """The tensors that the program reads and writes, by path; optimizer state is made where it does not exist."""
        slots = dict(self._outside.slots)
        self.updated = _Updated([(slots[input_path(value)], param) for value, (_, param) in parameters.items()])
        self.states: list[tuple[Any, Any]] = []
        for argument, (_, param) in parameters.items():
            state = optimizer.state_of(param)
            if state:
                self.states.append((param, state))
            for name, tensor in state.items():
                path = _state_path(argument, name)
                slots[path] = Slot(tensor, (state, name), f"state {path!r}")
        return slots

    def _append_update(
        self, optimizer: Any, graph: Graph, parameters: dict[Value, tuple[Value, Tensor]]
    ) -> list[_Argument]:
        """Traces the update rule for every parameter; returns the numbers that became arguments, in order."""
        numbers: list[_Argument] = []
        by_param = {id(param): (value, gradient) for value, (gradient, param) in parameters.items()}
        tracer = Tracer(graph)
        tracer.differentiable = False
        contents = _taken_writes(graph, parameters)
        with kept_outside(), dispatch.use(tracer), module_path.outside(), no_grad(), recording(True) as reads:
            reads.reach(optimizer, "")
            for index, group in enumerate(optimizer.param_groups):
                present = [p for p in group["params"] if id(p) in by_param]
                rule = _Rule(optimizer, index, graph) if present else None
                numbers += rule.inputs if rule else []
                for param in present:
                    assert rule is not None
                    argument, gradient = by_param[id(param)]
                    _update(tracer, optimizer, param, (argument, contents[argument], gradient), rule)
        self.account.watched += tuple(settled(reads, f"{type(optimizer).__name__}.update"))
        return numbers

    def holds(self, optimizer: Any) -> bool:
        """Whether nothing outside has changed that the program depends on."""
        state_of = optimizer.state.get
        for param, state in self.states:
            if state_of(param) is not state:
                return False
        return self.binding.holds() and self.account.holds() and self.updated.holds()

    def why(self) -> list[str]:
        """What has changed."""
        found = [*self.given.why(), *self.binding.why(), *self.account.why()]
        if not self.updated.holds():
            found.append("a parameter of the optimizer was replaced in the model")
        return found or ["the state of the optimizer was replaced"]

    used = 0
    """See program_table."""
    is_stale = False

    @property
    def nbytes(self) -> int:
        """Bytes of code, constants, scratch memory, and outputs that are used again."""
        return self.calls.nbytes

    def prepacked(self) -> Sequence[np.ndarray]:
        """Nothing that is made of weights outlives a step, which writes them."""
        return ()

    def run(self, leaves: Sequence[Any], sizes: Sizes | None) -> tuple[Any, Any]:
        """One step, for these sizes of named dimensions; what the loss and what the model returned."""
        if self.traced.written:
            check_apart(self.traced.graph.name, self.traced.written, leaves)
        structure, effects = self.traced.structure, self._effects
        if sizes:
            structure = structure_at(structure, sizes)
            effects = tuple([(table, name, value_at(value, sizes)) for table, name, value in effects])
        if effects:
            set_again(effects)
        groups = self.optimizer.param_groups
        given = [self.optimizer.number(groups[i], name) for i, name, _ in self.hyper]
        if not (self._given and all(map(is_, given, self._given))):
            self._numbers = [_array(value, dtype) for value, (_, _, dtype) in zip(given, self.hyper, strict=True)]
            self._given = given if all([type(value) is float for value in given]) else []
        found = [Tensor._wrap(a) for a in self.calls.run([*map(given_for, leaves), *self._numbers])]
        if self.single:
            return found[0], found[1]
        return unflatten(structure, found)


def _array(value: Any, dtype: np.dtype) -> np.ndarray:
    return np.asarray(on_host(value._data) if isinstance(value, Tensor) else value, dtype)


def _state_path(argument: Value, name: str) -> str:
    return f"optimizer.{argument.node.attrs['path']}.{name}"


def _taken_writes(graph: Graph, parameters: Iterable[Value]) -> dict[Value, Value]:
    """What parameters hold after the forward pass; its writes of them go, for the update writes them, once."""
    contents = {parameter: parameter for parameter in parameters}
    for node in list(graph.nodes()):
        if node.op.has(Trait.STATE_WRITE) and node.operands[0] in contents:
            contents[node.operands[0]] = node.operands[1]
            graph.erase(node)
    return contents


def _update(tracer: Tracer, optimizer: Any, param: Any, values: tuple[Value, Value, Value], rule: _Rule) -> None:
    """Appends the update of one parameter, from what it holds then, and its state."""
    argument, content, gradient = values
    state = {}
    for name, tensor in optimizer.state_of(param).items():
        path = _state_path(argument, name)
        state[name] = tracer.graph.add_input(TensorType(tensor.dtype, tensor.shape), path, "state", path)
    images = {name: Tensor._wrap(value) for name, value in state.items()}
    new, new_state = optimizer.update(Tensor._wrap(content), _hooked(param, gradient), images, rule.values)
    _write(tracer, argument, new)
    for name, value in state.items():
        _write(tracer, value, new_state[name])


def _hooked(param: Any, gradient: Value) -> Any:
    """The gradient of a parameter after its hooks, which are part of the trace."""
    if param._post_hooks:
        raise TraceError(
            "compile_step: a hook that runs after a gradient was added to `grad` has none to see, for gradients are "
            "not kept",
            remedy="param.register_hook(hook), whose result is the gradient; or loss.backward() and optimizer.step()",
        )
    found = Tensor._wrap(gradient)
    for hook in list((param._hooks or {}).values()):
        given = call_hook(hook, found)
        found = found if given is None else given
    return found


def _write(tracer: Tracer, argument: Value, tensor: Tensor) -> None:
    tensor = tracer.local(tensor)
    value = as_type(tensor, argument.dtype)._data
    if value is not argument:
        emit(tracer.graph, state_write.op, (argument, value), {}, name=f"{argument.name}.next")


def _forward(model: Any, loss: Any, x: Any, y: Any) -> tuple[Any, Any]:
    output = model(*x)
    found = loss(output, *y)
    first = found[0] if isinstance(found, (tuple, list)) and found else found
    if not isinstance(first, Tensor):
        raise ArgumentError(
            f"compile_step: the loss returned {type(first).__name__} where the loss should be",
            remedy="return the loss, or a tuple that begins with it: return loss, {'accuracy': accuracy}",
        )
    return found, output


def _by_position(args: Sequence[Any], more: Sequence[Any]) -> tuple[Structure, list[Tensor]]:
    """The structure of a call with all of these by position, and its tensors."""
    leaves, structure = flatten(((*args, *more), {}))
    return structure, leaves


class CompiledStep:
    """One training step as one native call; see ``compile_step``."""

    def __init__(
        self,
        model: Any,
        loss: Callable[..., Any],
        optimizer: Any,
        passes: Sequence[Pass] = (),
        target: str = HOST,
        dims: Any = None,
    ):
        if not callable(model) or not callable(loss):
            raise ArgumentError("compile_step takes a model, a callable loss, and an optimizer")
        for value in (model, loss):
            no_class("compile_step", value)
        if not hasattr(optimizer, "update") or not hasattr(optimizer, "param_groups"):
            raise ArgumentError(
                f"compile_step: {type(optimizer).__name__} has no update rule", remedy="an optimizer of graphc.optim"
            )
        self.model, self.loss, self.optimizer = model, loss, optimizer
        self.passes = arrange(passes)
        self._given_passes = tuple(passes)
        self.target = target
        self.name = f"{graph_name(model)}_step"
        self._recompiles = Recompiles(self.name)
        self.last_output: Any = None
        """What the model gave in the last step."""
        self._programs: ProgramTable[_Program] = ProgramTable(self._forget)
        self._count = RecompileCount(self.name, self._argument_names)
        self._modules: Modules | None = None
        self._numbers = NumberPlaces()
        self._dims = dims
        self._calls = DimsOfCalls(dims, model, self._argument_names())
        self._traces = SizedTraces()
        self._lock = Lock()
        self._log = config.logger("compile")

    def __call__(self, x: Any, *y: Any) -> Any:
        """Trains on one batch and returns what the loss returned. ``x`` is the model's input, a tuple for several;
        ``y`` is given to ``loss(output, *y)``."""
        args = x if isinstance(x, tuple) else (x,)
        structure: Any = (len(args), len(y))
        leaves: Sequence[Any] = (*args, *y)
        # NOTE: loops, not comprehensions: each of those is a call of a function before Python 3.12.
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                opened = self._calls.with_numbers((*args, *y), {})[0]
                args, y = opened[: len(args)], opened[len(args) :]
                leaves, structure = flatten((args, y))
                break
        shape, given = (structure, []) if type(structure) is tuple else self._numbers.opened(structure)
        modules = self._modules
        if modules is None or not modules.holds():
            found = [m for t in (self.model, self.loss) for _, m in modules_of(t)]
            modules = self._modules = Modules(found)
            self._programs.clear()
            self._traces.clear()
        types = tuple([(t.dtype, shape_of(t)) for t in leaves])
        key = (shape, types, modules.training(), True, repeats(leaves), machine_of(self.target, leaves))
        for leaf in leaves:
            if leaf._counter is None or (leaf._node is not None and leaf._requires_grad):
                raise self._refusal(leaves)
        if not is_grad_enabled() or is_inference_mode_enabled():
            raise self._refusal(leaves)
        call = self._calls.of(*_by_position(args, y)) if self._calls.is_any else None
        program, numbers = self._find(key, given, call) or self._new(key, structure, modules, args, y, call)
        optimizer = self.optimizer
        if getattr(optimizer, "_step_pre_hooks", None):
            self._run_pre_hooks(program)
        loss, self.last_output = program.run([*leaves, *numbers] if numbers else leaves, call and call.sizes)
        optimizer.step_count += 1
        if getattr(optimizer, "_step_post_hooks", None):
            self._run_hooks("_step_post_hooks")
        return loss

    def _refusal(self, leaves: Sequence[Any]) -> GradientError:
        """Why there is no step, as eager mode has no gradient then."""
        if not is_grad_enabled() or is_inference_mode_enabled():
            mode = "inference_mode" if is_inference_mode_enabled() else "no_grad"
            return GradientError(
                f"{self.name}: a training step inside of {mode}(), where operations are not recorded for gradients",
                remedy="call the step outside of it; with enable_grad() around the call if it is only no_grad()",
            )
        if any([leaf._counter is None for leaf in leaves]):
            return GradientError(
                f"{self.name}: an input was made in inference mode and cannot be saved for a backward pass",
                remedy="input.clone() outside of inference mode, or no_grad instead of it",
            )
        return GradientError(
            f"{self.name}: an input is the result of an operation with gradients, which the step would not reach",
            remedy="input.detach(), or make the operation part of the model",
        )

    def __reduce__(self) -> Any:
        return CompiledStep, (self.model, self.loss, self.optimizer, self._given_passes, self.target, self._dims)

    def _forget(self) -> None:
        """Nothing but the table refers to a program."""

    def _argument_names(self) -> list[str]:
        return [*argument_names(self.model), *argument_names(self.loss)[1:]]

    def _find(self, key: Any, given: Given, call: SizedCall | None) -> tuple[_Program, list[Tensor]] | None:
        """The program for a call, and the numbers that the call gives as tensors."""
        for program in (p for known in keys_of(call, key) for p in self._programs.find(known)):
            fits = call is None or program.traced.assumptions.broken(call.sizes) is None
            if fits and program.holds(self.optimizer) and (numbers := program.given.tensors(given)) is not None:
                if program is not self._programs.last:
                    self._programs.use(program)
                return program, numbers
        return None

    def _new(
        self, key: Any, structure: Any, modules: Modules, args: Any, target: Any, call: SizedCall | None
    ) -> tuple[_Program, list[Tensor]]:
        with self._lock:
            shape, given = self._numbers.learned(structure, self._programs)
            key = (shape, *key[1:])
            if found := self._find(key, given, call):
                return found
            known = call and self._traces.find(call.key(key), call.sizes, given)
            if known is None:
                check_static(structure if isinstance(structure, Branch) else LEAF)
                before = self._programs.items() if call is None else self._traces.items()
                self._recompiles.tell(call.key(key) if call else key, dict(before), modules, self._numbers.remarks)
                shape, given, traced, taken = self._numbers.traced(
                    structure, lambda fresh: self._trace(args, target, fresh, call)
                )
                key = (shape, *key[1:])
                if taken.is_none and (found := self._find(key, given, call)):
                    return found
                trace = SizedTrace(traced, Outside(traced, modules), taken)
                if call is not None:
                    self._traces.add(call.key(key), trace)
                known = trace, taken.of_trace()
            trace, numbers = known
            taken, outside, leaves = trace.numbers, trace.outside, _by_position(args, target)[1]
            program, key = program_for(
                trace, call, key, lambda _, found: _Program(self, found, outside, taken, leaves), self.name
            )
            program.holds(self.optimizer)
            self._programs.add(key, program)
            if len([p for p in self._programs.find(key) if p.given.asks]) > MOST_ANSWERS:
                self._numbers.fix(taken.asks)
            self._log.info("%s: variant %d", self.name, len(self._programs))
            trim()
            self._count.note(key, 3)
            return program, numbers

    def _trace(self, args: Any, target: Any, fresh: Fresh, call: SizedCall | None) -> Traced:
        forward = functools.partial(_forward, self.model, self.loss)
        named = [*modules_of(self.model), *((f"loss.{prefix}", m) for prefix, m in modules_of(self.loss))]
        sized = call.arguments() if call else {}
        with enable_grad():
            return trace_function(forward, (args, target), {}, self.name, named, True, numbers=fresh(), **sized)

    def _run_pre_hooks(self, program: _Program) -> None:
        """Hooks that run before the update may look, but not write: forward and update are one here."""
        before = [(t._data, t._version) for t in program.binding.tensors()]
        self._run_hooks("_step_pre_hooks")
        after = [(t._data, t._version) for t in program.binding.tensors()]
        if any([a[0] is not b[0] or a[1] != b[1] for a, b in zip(before, after, strict=True)]):
            raise HookError(
                f"{self.name}: a hook before the optimizer's step wrote to a tensor of the model, which would change "
                "the forward pass too: that is one with the update",
                remedy="write in a hook after the step, or between steps",
            )

    def _run_hooks(self, table: str) -> None:
        for hook in list(getattr(self.optimizer, table, {}).values()):
            hook(self.optimizer, (), {})

    @property
    def graphs(self) -> list[Graph]:
        """The graphs of all signatures so far, before optimization."""
        return [p.graph for p in self._programs]


def compile_step(
    model: Any,
    loss: Callable[..., Any],
    optimizer: Any,
    *,
    passes: Sequence[Pass] = (),
    target: str = HOST,
    device: Any = None,
    dims: Any = None,
) -> CompiledStep:
    """A callable ``step(x, y)`` that runs forward, ``loss(output, y)``, backward and the optimizer's update as one
    native call and returns what the loss returned: the loss, or a tuple or list that begins with it.

    ``x`` is the model's input (a tuple for several). Parameters, buffers, random state and optimizer state are updated
    in place. Numbers that schedulers change are arguments of the program, so a change needs no new trace. Gradients
    are not kept in ``grad``. Inside ``no_grad`` and ``inference_mode``, and of tensors made in the latter, a step
    raises GradientError, as ``backward`` does. Numbers among ``x`` and ``y`` are taken as ``compile`` takes them.

    The model may be a graph, bound to the tensors that were traced, and ``passes`` are graph passes of one's own: both
    as ``compile`` takes them. Those without ``after`` see forward pass and loss, before gradients; others the whole
    step. ``target`` is what the code is made for, and ``device`` where it runs, as for ``compile``: of a model on a
    device the whole step is done there, and nothing but the results comes to the host. ``dims`` names sizes of ``x``
    and ``y`` as it does there, by the names that model and loss have for them: one trace serves the shorter last batch,
    too.
    """
    return CompiledStep(as_callable(model), loss, optimizer, passes, machine_named(target, device), dims)
