"""Native programs on PyTorch tensors."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd import forward_ad
from torch.multiprocessing.reductions import StorageWeakRef

from graphc.base.dtypes import DType
from graphc.base.errors import CompileError, UnsupportedError
from graphc.base.location import UNKNOWN
from graphc.base.location import at as located
from graphc.base.locks import Lock
from graphc.base.sizes.assumptions import Assumptions
from graphc.base.sizes.shape_patterns import Number, ShapePatterns
from graphc.base.sizes.size import SizeNumber, at
from graphc.checks.report import compile_reported
from graphc.compiler.compile import load_compiled
from graphc.compiler.contents import changes
from graphc.files.manifest import PREPACKED
from graphc.interop.aten.graph import AtenGraph, Ref
from graphc.interop.aten.run import Runner
from graphc.interop.torch.fx import DTYPES, dtype_of
from graphc.interop.torch.layout import Layout, exact_strides, is_dense, is_lazy, layout_of
from graphc.interop.torch.native import NONE, Native, Natives, Parts, empty
from graphc.interop.torch.sizes import GraphSizes
from graphc.interop.torch.weights import Weights
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph, Value
from graphc.ir.graph.interpret import Reemitter, assumed, settle
from graphc.ops.effects.state import state_write
from graphc.runtime import threads
from graphc.runtime.call_sizes import REMEMBERED, CallSizes
from graphc.runtime.tensor_call import ARGUMENT, MADE, OBJECT, SAME, Input, Output
from graphc.tensors.random.generator import PATH as GENERATOR
from graphc.tensors.structure import NumberTensor
from graphc.tensors.tensor import Tensor
from graphc.tracing.trace import Traced, trace_function

_thread_count = torch.get_num_threads
_TORCH = {ours.name: theirs for theirs, ours in DTYPES.items()}


class TorchProgram:
    """Graph of ATen operators as native code, called with PyTorch tensors and ints.

    Arguments are read in place, and results are in PyTorch's memory. Arguments with another layout than the examples
    are copied first. The program uses as many threads as PyTorch does, unless graphc's number of threads is set.
    Several threads may call it at once.
    """

    def __init__(
        self,
        graph: AtenGraph,
        examples: Sequence[Any],
        outputs: Sequence[Any],
        weights: Collection[int],
        watch: str,
        sizes: GraphSizes | None = None,
        assumptions: Assumptions | None = None,
        written: Sequence[int] = (),
    ):
        """Trace and compile a graph.

        ``examples`` are stand-ins for the arguments: tensors, also fake ones, and SymInts. ``outputs`` are stand-ins
        for the results, whose strides they define. ``weights`` are the indices of parameters and buffers, which are
        watched as ``watch`` says (see Weights). ``sizes`` reads sizes. ``assumptions`` collects assumptions about
        sizes; callers of the program must check them. The last results of the graph are written in place to the
        arguments with indices ``written``, which must be dense and of fixed sizes.

        Raises UnsupportedError and the errors of a trace.
        """
        self._boxed_call = True
        """Tells AOTAutograd that the call takes a list. An instance attribute, from which Dynamo's wrapper copies
        it."""
        self._random: np.ndarray | None = None
        """Seed and step of random numbers. Each call takes a seed from PyTorch's generator."""
        self._lock = Lock()
        """Serializes calls that draw random numbers."""
        sizes = sizes or GraphSizes()
        self.assumptions = assumptions or Assumptions()
        self._arguments = [_Argument.of(e, sizes) for e in examples]
        self._written = tuple(written)
        count = len(graph.output) - len(self._written)
        self._results = _results(graph, outputs[:count], examples, sizes)
        self._patterns = ShapePatterns([a.shape for a in self._arguments], graph.inputs)
        with located(UNKNOWN):  # NOTE: the line of the code that compiles is irrelevant, and would be part of digests.
            traced = trace_function(
                self._traceable(graph),
                [a.leaf() for a in self._arguments],
                name=graph.name,
                patterns=self._patterns,
                modules=(),
                assumptions=self.assumptions,
            )
        # NOTE: preparing a weight reads its memory again; a weight that is not dense or is lazy would be an old copy.
        dense = {i for i in weights if is_dense(examples[i]) and not is_lazy(examples[i])}
        self._compile(traced, dense, watch)
        self._computed = [r for r in self._results if r.is_computed]
        self._all_computed = len(self._computed) == len(self._results)
        self._plans: dict[Any, _Plan] = {}
        """Plans of calls by element types, sizes and strides of the arguments that are not weights."""
        self._natives = Natives(self.program, self._weights)
        self._last: Native = NONE
        """Native call of the previous call, or the one that it would have been."""

    def _traceable(self, graph: AtenGraph) -> Callable[..., list[Any]]:
        """Return the graph as a function from arrays to arrays in their memory layout."""
        runner = Runner(graph)

        def run(*arrays: Any) -> list[Any]:
            tensors = [a.viewed(array) for a, array in zip(self._arguments, arrays, strict=True)]
            values = runner(*tensors)
            results, writes = values[: len(self._results)], values[len(self._results) :]
            self._results = [r.known(value) for r, value in zip(self._results, results, strict=True)]
            computed = [r.stored(value) for r, value in zip(self._results, results, strict=True) if r.is_computed]
            return computed + [self._arguments[i].stored(value) for i, value in zip(self._written, writes, strict=True)]

        return run

    def _compile(self, traced: Traced, weights: Collection[int], watch: str) -> None:
        graph = traced.graph
        graph.assumptions = tuple(self.assumptions.found.values())
        settled = settle(graph)
        mapped_inputs = dict(zip(graph.inputs, settled.inputs, strict=True))
        with assumed(settled):
            inputs = [mapped_inputs[v] for v in traced.inputs]
            paths = {inputs[i]: str(i) for i in weights}
            marked = _Marker(paths, {inputs[i]: str(i) for i in self._written}).transform(settled)
        self.graph = marked
        compiled = compile_reported(marked)
        self.program = load_compiled(compiled)
        bound_paths = {spec.path for spec in self.program.bound}
        self._written = tuple([i for i in self._written if str(i) in bound_paths])
        self.program.give_at([str(i) for i in self._written])
        first = None if compiled.prepacking is None else load_compiled(compiled.prepacking)
        state = traced.state()
        if GENERATOR in state:
            state[GENERATOR] = self._random = np.zeros(2, np.int64)
        others = [i for i in range(len(traced.inputs)) if i not in weights and i not in self._written]
        self._inputs = [*others, *self._written]
        paths = [spec.path for spec in self.program.bound]
        prepared_indices = {PREPACKED + spec.name: i for i, spec in enumerate(first.outputs)} if first else {}
        sources = [state[p] if p in state else prepared_indices.get(p, p) for p in paths]
        layouts = {i: layout for i in weights if (layout := self._arguments[i].layout) is not None}
        self._weights = Weights(first, sources, layouts, watch)

    def __call__(self, args: list[Any]) -> list[Any]:
        """Return the results for these arguments. Empties the list."""
        if forward_ad._current_level >= 0:
            _check_tangents(args)
        native = self._last.successor
        if (results := native.call(args)) is None:
            return self._called(args)
        self._last = native
        return results

    def _called(self, args: list[Any]) -> list[Any]:
        """Call the program through Python, for arguments of any sizes."""
        if (count := _thread_count()) != threads.followed:
            threads.follow(count)
        state = count, threads.words(), changes()
        inputs = [args[i] for i in self._inputs]
        key = tuple([x if type(x) is int else (x.dtype, x.shape, x.stride(), is_lazy(x)) for x in inputs])
        plan = self._plans.get(key) or self._planned(key, args)
        for n, layout in plan.moved:
            inputs[n] = layout.held(inputs[n])
        bound = self._weights.bound(args)
        arrays = bound.arrays
        addresses = [x.data_ptr() for x in inputs] if plan.numbers is None else _addresses(inputs, plan.numbers)
        results: list[Any] = []
        for specification in plan.results:
            result = empty(*specification)
            results.append(result)
            addresses.append(result.data_ptr())
        if self._random is None:
            self.program.run_at(addresses, plan.sizes, arrays, lambda: self._arrays(inputs))
            self._last = self._natives.after(self._last, plan, bound, arrays, state, lambda: self._parts(plan, args))
        else:
            with self._lock:
                self._random[:] = torch.empty((), dtype=torch.int64).random_().item(), 0
                self.program.run_at(addresses, plan.sizes, arrays, lambda: self._arrays(inputs))
        if not self._all_computed:
            results = [results[n] if n >= 0 else from_arguments(args) for n, from_arguments in plan.rest]
        args.clear()
        return results

    def _parts(self, plan: _Plan, args: Sequence[Any]) -> Parts | None:
        """Return the specification of a native call for arguments like these, None where a native call is impossible.

        A native call does not see whether complex tensors are conjugated.
        """
        inputs = [args[i] for i in self._inputs]
        if any(isinstance(x, torch.Tensor) and x.is_complex() for x in inputs):
            return None
        if plan.moved or any(isinstance(r.value, _View) for r in self._results):
            return None
        results: list[Output] = []
        firsts: list[int] = []
        for position, (result, (number, from_arguments)) in enumerate(zip(self._results, plan.rest, strict=True)):
            if result.is_computed:
                results.append(Output(MADE, value=plan.results[number]))
                firsts.append(position)
            elif number >= 0:
                results.append(Output(SAME, firsts[number]))
            elif isinstance(result.value, _Given):
                results.append(Output(ARGUMENT, result.value.number))
            else:
                results.append(Output(OBJECT, value=from_arguments(args)))
        return plan.sizes, [Input(i, x) for i, x in zip(self._inputs, inputs, strict=True)], results, len(args)

    def _planned(self, key: tuple[Any, ...], args: Sequence[Any]) -> _Plan:
        """Return the plan of calls on arguments of these sizes.

        Raises ShapeError where the sizes do not fit, and UnsupportedError for FakeTensors. Checking once is enough:
        Dynamo compiles another program for arguments of another type.
        """
        if any(isinstance(x, FakeTensor) for x in args):
            raise UnsupportedError(
                "a FakeTensor holds no data to compute with", remedy="call the program with real tensors"
            )
        shapes = [a.shape_of(x) for a, x in zip(self._arguments, args, strict=True)]
        values = self._patterns.solve(shapes)
        inputs = [(self._arguments[i], args[i], shapes[i]) for i in self._inputs]
        read = inputs[: len(self.program.inputs)]
        sizes = self._sizes([shape for *_, shape in read], {d.name: size for d, size in values.items()})
        for (*_, spec), (argument, x, shape) in zip(sizes.inputs, read, strict=True):
            if argument.layout is not None:
                self.program.check(spec, np.broadcast_to(np.empty((), dtype_of(x.dtype).numpy), shape))
        moved = [
            (n, a.layout)
            for n, (a, x, _) in enumerate(inputs)
            if a.layout is not None and (not a.layout.fits(x.shape, x.stride()) or is_lazy(x))
        ]
        if any(n >= len(read) for n, _ in moved):
            raise UnsupportedError("an argument that is written to has another memory layout than its example")
        numbers = [None if a.layout is not None else ctypes.c_int64(x) for a, x, _ in inputs]
        results = [r.kind(shape) for r, (_, _, shape, _) in zip(self._computed, sizes.outputs, strict=True)]
        plan = _Plan(
            sizes,
            tuple(moved),
            numbers if any(n is not None for n in numbers) else None,
            tuple(results),
            tuple([(r.number, _rest(r.value, values)) for r in self._results]),
        )
        if len(self._plans) >= REMEMBERED:
            self._plans.clear()
        self._plans[key] = plan
        return plan

    def _sizes(self, shapes: Sequence[tuple[int, ...]], values: dict[str, int]) -> CallSizes:
        sizes = self.program.sizes
        return sizes.fixed or (sizes.of_values(values) if sizes.are_given else sizes.of_shapes(tuple(shapes)))

    def arrays(self, args: Sequence[Any]) -> list[np.ndarray]:
        """Return the arrays for which the program takes the arguments."""
        pairs = zip(self._arguments, args, strict=True)
        return [np.asarray(x) if a.layout is None else a.layout.array(x) for a, x in pairs]

    def _arrays(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the arguments of the program as arrays, for an error message."""
        layouts = [self._arguments[i].layout for i in self._inputs]
        return [x if layout is None else layout.array(x) for x, layout in zip(inputs, layouts, strict=True)]


class _Plan(NamedTuple):
    """Properties that calls on arguments of the same sizes share."""

    sizes: CallSizes
    moved: tuple[tuple[int, Layout], ...]
    """Inputs that must be copied to the layout of the program."""
    numbers: list[ctypes.c_int64 | None] | None
    """Memory for the inputs that are numbers, None for tensors. None if there are no numbers."""
    results: tuple[tuple[tuple[int, ...], tuple[int, ...], torch.dtype], ...]
    """Sizes, strides and element type of each result tensor to allocate."""
    rest: tuple[tuple[int, Callable[[Sequence[Any]], Any]], ...]
    """Index of each result among the allocated ones, or -1 and a function of the arguments."""


class _Argument(NamedTuple):
    """Tensor or number argument of a call."""

    layout: Layout | None
    """Memory layout of the tensor. None for a number."""
    shape: Any
    """Shape of the array for which it is taken."""
    dtype: DType | None

    @classmethod
    def of(cls, example: Any, sizes: GraphSizes) -> _Argument:
        if isinstance(example, (int, torch.SymInt)):
            return cls(None, Number((sizes.of(example),)), None)
        if not isinstance(example, torch.Tensor):
            raise UnsupportedError(f"programs take tensors and ints, not {type(example).__name__}")
        layout = layout_of(example)
        return cls(layout, layout.shape(sizes.shape(example.shape)), dtype_of(example.dtype))

    def leaf(self) -> Tensor:
        """Return its stand-in for a trace."""
        if self.dtype is None:
            return NumberTensor.of(0)
        return Tensor._wrap(np.broadcast_to(np.zeros((), self.dtype.numpy), [1 for _ in self.shape]))

    def viewed(self, array: Any) -> Any:
        """Return the tensor of an array."""
        return array if self.layout is None else self.layout.viewed(array)

    def stored(self, value: Any) -> Any:
        """Return the array to write to the tensor."""
        assert self.layout is not None
        return self.layout.stored(value if value.dtype is self.dtype else value.to(self.dtype))

    def shape_of(self, value: Any) -> tuple[int, ...]:
        """Return the shape of the array for an argument, or the number itself."""
        return (value,) if self.layout is None else self.layout.shape(value.shape)


class _Result(NamedTuple):
    """Result of a call."""

    number: int = -1
    """Index among the tensors that native code computes, -1 where it computes none for this result."""
    is_computed: bool = False
    """Whether it is the first with this index."""
    value: Any = None
    """An argument by its index (see _Given), a view of one, None, a number or a size."""
    dtype: DType | None = None
    sizes: Sequence[Any] = ()
    layout: Layout | None = None
    strides: tuple[int, ...] | None = None
    """Strides, if no call changes them."""
    is_number: bool = False
    """Whether it is a number that the trace computes from sizes."""

    def known(self, value: Any) -> _Result:
        """Return the result with the value from the trace."""
        return self._replace(value=value) if self.is_number else self

    def stored(self, value: Any) -> Any:
        """Return the array of a result, in PyTorch's element type."""
        if not isinstance(value, Tensor) or self.layout is None or value.dim() != len(self.layout.order):
            raise CompileError(f"graphc computes {value!r} where PyTorch computes a tensor of sizes {list(self.sizes)}")
        for traced_size, expected in zip(value.shape, self.sizes, strict=True):
            if isinstance(traced_size, int) and isinstance(expected, int) and traced_size != expected:
                raise CompileError(
                    f"graphc computes a result of sizes {list(value.shape)} where PyTorch computes {list(self.sizes)}"
                )
        return self.layout.stored(value if value.dtype is self.dtype else value.to(self.dtype))

    def kind(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...], torch.dtype]:
        """Return sizes, strides and element type of the tensor for this shape of the array."""
        assert self.layout is not None and self.dtype is not None
        sizes = self.layout.sizes(shape)
        return sizes, self.strides or self.layout.strides(sizes), _TORCH[self.dtype.name]


class _Given(NamedTuple):
    """Argument returned as a result."""

    number: int


class _View(NamedTuple):
    """View of an argument, as a view and not a tensor of its own: AOTAutograd expects its strides in the argument's
    memory."""

    number: int
    argument: tuple[tuple[Any, ...], tuple[Any, ...]]
    """Sizes and strides of the argument."""
    sizes: tuple[Any, ...]
    strides: tuple[Any, ...]
    offset: Any
    """Offset from the argument's first element."""

    @staticmethod
    def of(output: Any, examples: Sequence[Any], sizes: GraphSizes) -> _View | None:
        """Return a result as a view of an argument, or None. Fake tensors share fake memory."""
        if not isinstance(output, FakeTensor):
            return None
        memory = StorageWeakRef(output.untyped_storage())
        for number, x in enumerate(examples):
            if isinstance(x, FakeTensor) and x.dtype == output.dtype and StorageWeakRef(x.untyped_storage()) == memory:
                try:
                    argument, shape = (sizes.shape(x.shape), sizes.shape(x.stride())), sizes.shape(output.shape)
                    offset = sizes.of(output.storage_offset()) - sizes.of(x.storage_offset())
                    return _View(number, argument, shape, sizes.shape(output.stride()), offset)
                except UnsupportedError:
                    return None
        return None

    def at(self, values: Any) -> Callable[[Sequence[Any]], torch.Tensor]:
        """Return the view as a function of the arguments, for these sizes of the dimensions."""
        expected, own_strides, sizes, strides = (
            tuple([at(n, values) for n in symbolic]) for symbolic in (*self.argument, self.sizes, self.strides)
        )
        offset = at(self.offset, values)

        def view(args: Sequence[Any]) -> torch.Tensor:
            base = args[self.number].detach()
            if base.stride() != own_strides:
                base = torch.empty_strided(expected, own_strides, dtype=base.dtype).copy_(base)
            return base.as_strided(sizes, strides, base.storage_offset() + offset)

        return view


def _results(graph: AtenGraph, outputs: Sequence[Any], examples: Sequence[Any], sizes: GraphSizes) -> list[_Result]:
    """Return the results of calls.

    An argument is returned itself, a view of one is a view, and a value that occurs twice is computed once.
    """
    results: list[_Result] = []
    numbers: dict[str, int] = {}
    for value, output in zip(graph.output[: len(outputs)], outputs, strict=True):
        if not isinstance(value, Ref):
            results.append(_Result(value=value))
        elif isinstance(output, (int, torch.SymInt, torch.SymFloat)):
            results.append(_Result(is_number=True))
        elif value.name in graph.inputs:
            results.append(_Result(value=_Given(graph.inputs.index(value.name))))
        elif value.name in numbers:
            results.append(_Result(numbers[value.name]))
        elif view := _View.of(output, examples, sizes):
            results.append(_Result(value=view))
        else:
            numbers[value.name] = len(numbers)
            layout, strides = layout_of(output), exact_strides(output)
            shape, dtype = sizes.shape(output.shape), dtype_of(output.dtype)
            results.append(_Result(numbers[value.name], True, None, dtype, shape, layout, strides))
    return results


def _check_tangents(args: Sequence[Any]) -> None:
    """Raise UnsupportedError for arguments with forward-mode derivatives, which the results would lack.

    No guard of Dynamo checks for them.
    """
    for x in args:
        if isinstance(x, torch.Tensor) and forward_ad.unpack_dual(x).tangent is not None:
            raise UnsupportedError(
                "a compiled function does not carry forward-mode derivatives from its arguments to its results",
                remedy="call the original function, or compile a function that calls torch.func.jvp",
            )


def _rest(value: Any, values: Any) -> Callable[[Sequence[Any]], Any]:
    if isinstance(value, _Given):
        number = value.number
        return lambda args: args[number]
    if isinstance(value, _View):
        return value.at(values)
    constant = value.at(values) if isinstance(value, SizeNumber) else at(value, values)
    return lambda _: constant


def _addresses(inputs: Sequence[Any], numbers: Sequence[ctypes.c_int64 | None]) -> list[int]:
    """Return the addresses of inputs, of which some are numbers."""
    return [
        x.data_ptr() if number is None else ctypes.addressof(number) for x, number in zip(inputs, numbers, strict=True)
    ]


class _Marker(Reemitter):
    """Turns some arguments of a graph into weights, and those to which its last results are written into states.

    ``paths`` and ``states`` map arguments to their paths.
    """

    def __init__(self, paths: dict[Value, str], states: dict[Value, str]):
        super().__init__()
        self._paths = paths
        self._states = states

    def transform(self, graph: Graph) -> Graph:
        """Return the graph with these weights and states."""
        result = super().transform(graph)
        count = len(result.outputs) - len(self._states)
        for state, value in zip(self._states, result.outputs[count:], strict=True):
            emit(result, state_write.op, (self.values[state], value), {}, name=f"{state.name}.next")
        result.set_outputs(result.outputs[:count])
        return result

    def copy_input(self, value: Value) -> Value:
        """Copy the argument with its class."""
        if value in self._states:
            return self.target.add_input(value.type, value.name, "state", self._states[value])
        if value not in self._paths:
            return super().copy_input(value)
        return self.target.add_input(value.type, value.name, "weight", self._paths[value])
