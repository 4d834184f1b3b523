"""Native programs that take and give tensors of PyTorch."""

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
from graphc.checks.reduce import compile_reported
from graphc.compiler.compile import load_compiled
from graphc.compiler.contents import changes
from graphc.files.manifest import PREPACKED
from graphc.interop.aten.graph import AtenGraph, Ref
from graphc.interop.aten.run import Runner
from graphc.interop.torch.fx import DTYPES, dtype_of
from graphc.interop.torch.layout import Layout, exact_strides, is_dense, is_lazy, layout_of
from graphc.interop.torch.native import NONE, Native, Natives, Parts, empty
from graphc.interop.torch.sizes import Sizes
from graphc.interop.torch.weights import Weights
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph, Value
from graphc.ir.graph.interpret import Reemitter, assumed, settle
from graphc.ops.state import state_write
from graphc.runtime import threads
from graphc.runtime.call_sizes import REMEMBERED, CallSizes
from graphc.runtime.tensor_call import ARGUMENT, MADE, OBJECT, SAME, Input, Output
from graphc.tensors.generator import PATH as GENERATOR
from graphc.tensors.structure import NumberTensor
from graphc.tensors.tensor import Tensor
from graphc.tracing.trace import Traced, trace_function

_thread_count = torch.get_num_threads
_TORCH = {ours.name: theirs for theirs, ours in DTYPES.items()}


class Program:
    """A graph of ATen operators as native code, called with tensors of PyTorch and ints.

    Arguments are read where they lie, results lie in memory of PyTorch. Arguments that lie in another order than the
    examples did are copied first. It uses as many threads as PyTorch does, unless graphc was told how many. Several
    threads may call it at once."""

    def __init__(
        self,
        graph: AtenGraph,
        examples: Sequence[Any],
        outputs: Sequence[Any],
        weights: Collection[int],
        watch: str,
        sizes: Sizes | None = None,
        assumptions: Assumptions | None = None,
        written: Sequence[int] = (),
    ):
        """``examples`` are what stands for the arguments: tensors, fake ones too, and SymInts. ``outputs`` are the same
        for the results, from which their strides are taken. ``weights`` are the numbers of the arguments that are
        parameters and buffers, which ``watch`` says how to look at (see Weights). ``sizes`` reads sizes; in
        ``assumptions`` stands what is assumed of them, which whoever calls the program asks. What the graph gives last
        is written to the arguments with the numbers ``written``, where they lie: dense ones of fixed sizes.

        Raises UnsupportedError and what a trace raises."""
        self._boxed_call = True
        """By which AOTAutograd knows that it takes a list; with the instance, from which Dynamo's wrapper copies it."""
        self._random: np.ndarray | None = None
        """The seed and the step of random numbers: each call takes a seed from PyTorch's generator."""
        self._lock = Lock()
        """Calls that draw random numbers take turns."""
        sizes = sizes or Sizes()
        self.assumptions = assumptions or Assumptions()
        self._arguments = [_Argument.of(e, sizes) for e in examples]
        self._written = tuple(written)
        count = len(graph.output) - len(self._written)
        self._results = _results(graph, outputs[:count], examples, sizes)
        self._patterns = ShapePatterns([a.shape for a in self._arguments], graph.inputs)
        with located(UNKNOWN):  # NOTE: the line of whoever compiles says nothing, and would be part of digests.
            traced = trace_function(
                self._traceable(graph),
                [a.leaf() for a in self._arguments],
                name=graph.name,
                patterns=self._patterns,
                modules=(),
                assumptions=self.assumptions,
            )
        # NOTE: the memory of a weight is read whenever it is prepared; another one would be a copy of what it was once.
        dense = {i for i in weights if is_dense(examples[i]) and not is_lazy(examples[i])}
        self._compile(traced, dense, watch)
        self._made = [r for r in self._results if r.is_made]
        self._all_made = len(self._made) == len(self._results)
        self._plans: dict[Any, _Plan] = {}
        """What calls do, by element types, sizes and strides of the arguments that are no weights."""
        self._natives = Natives(self.program, self._weights)
        self._last: Native = NONE
        """What the call before was, or would have been were it native."""

    def _traceable(self, graph: AtenGraph) -> Callable[..., list[Any]]:
        """The graph as a function of arrays that gives arrays, as they lie in memory."""
        runner = Runner(graph)

        def run(*arrays: Any) -> list[Any]:
            given = [a.viewed(array) for a, array in zip(self._arguments, arrays, strict=True)]
            found = runner(*given)
            results, rest = found[: len(self._results)], found[len(self._results) :]
            self._results = [r.known(value) for r, value in zip(self._results, results, strict=True)]
            made = [r.stored(value) for r, value in zip(self._results, results, strict=True) if r.is_made]
            return made + [self._arguments[i].stored(value) for i, value in zip(self._written, rest, strict=True)]

        return run

    def _compile(self, traced: Traced, weights: Collection[int], watch: str) -> None:
        graph = traced.graph
        graph.assumptions = tuple(self.assumptions.found.values())
        settled = settle(graph)
        image = dict(zip(graph.inputs, settled.inputs, strict=True))
        with assumed(settled):
            inputs = [image[v] for v in traced.inputs]
            paths = {inputs[i]: str(i) for i in weights}
            marked = _Marker(paths, {inputs[i]: str(i) for i in self._written}).transform(settled)
        self.graph = marked
        compiled = compile_reported(marked)
        self.program = load_compiled(compiled)
        known = {spec.path for spec in self.program.bound}
        self._written = tuple([i for i in self._written if str(i) in known])
        self.program.give_at([str(i) for i in self._written])
        first = None if compiled.prepacking is None else load_compiled(compiled.prepacking)
        state = traced.state()
        if GENERATOR in state:
            state[GENERATOR] = self._random = np.zeros(2, np.int64)
        others = [i for i in range(len(traced.inputs)) if i not in weights and i not in self._written]
        self._inputs = [*others, *self._written]
        paths = [spec.path for spec in self.program.bound]
        made = {PREPACKED + spec.name: i for i, spec in enumerate(first.outputs)} if first else {}
        sources = [state[p] if p in state else made.get(p, p) for p in paths]
        layouts = {i: layout for i in weights if (layout := self._arguments[i].layout) is not None}
        self._weights = Weights(first, sources, layouts, watch)

    def __call__(self, args: list[Any]) -> list[Any]:
        """The results for these arguments; the list is emptied."""
        if forward_ad._current_level >= 0:
            _check_tangents(args)
        native = self._last.following
        if (found := native.call(args)) is None:
            return self._called(args)
        self._last = native
        return found

    def _called(self, args: list[Any]) -> list[Any]:
        """The same through Python, for arguments of any sizes."""
        if (count := _thread_count()) != threads.followed:
            threads.follow(count)
        state = count, threads.words(), changes()
        given = [args[i] for i in self._inputs]
        key = tuple([x if type(x) is int else (x.dtype, x.shape, x.stride(), is_lazy(x)) for x in given])
        plan = self._plans.get(key) or self._planned(key, args)
        for n, layout in plan.moved:
            given[n] = layout.held(given[n])
        bound = self._weights.bound(args)
        arrays = bound.arrays
        addresses = [x.data_ptr() for x in given] if plan.numbers is None else _addresses(given, plan.numbers)
        results: list[Any] = []
        for parts in plan.results:
            result = empty(*parts)
            results.append(result)
            addresses.append(result.data_ptr())
        if self._random is None:
            self.program.run_at(addresses, plan.sizes, arrays, lambda: self._arrays(given))
            self._last = self._natives.after(self._last, plan, bound, arrays, state, lambda: self._parts(plan, args))
        else:
            with self._lock:
                self._random[:] = torch.empty((), dtype=torch.int64).random_().item(), 0
                self.program.run_at(addresses, plan.sizes, arrays, lambda: self._arrays(given))
        if not self._all_made:
            results = [results[n] if n >= 0 else rest(args) for n, rest in plan.rest]
        args.clear()
        return results

    def _parts(self, plan: _Plan, args: Sequence[Any]) -> Parts | None:
        """What a native call does for arguments like these; None where it is not one for it: of complex tensors it does
        not see whether they are conjugated."""
        given = [args[i] for i in self._inputs]
        if any(isinstance(x, torch.Tensor) and x.is_complex() for x in given):
            return None
        if plan.moved or any(isinstance(r.value, _View) for r in self._results):
            return None
        results: list[Output] = []
        firsts: list[int] = []
        for place, (result, (number, rest)) in enumerate(zip(self._results, plan.rest, strict=True)):
            if result.is_made:
                results.append(Output(MADE, value=plan.results[number]))
                firsts.append(place)
            elif number >= 0:
                results.append(Output(SAME, firsts[number]))
            elif isinstance(result.value, _Given):
                results.append(Output(ARGUMENT, result.value.number))
            else:
                results.append(Output(OBJECT, value=rest(args)))
        return plan.sizes, [Input(i, x) for i, x in zip(self._inputs, given, strict=True)], results, len(args)

    def _planned(self, key: tuple[Any, ...], args: Sequence[Any]) -> _Plan:
        """What calls on arguments of these sizes do. Raises ShapeError where they do not fit, and UnsupportedError for
        FakeTensors; Dynamo makes another program for arguments of another type, so that one look is enough."""
        if any(isinstance(x, FakeTensor) for x in args):
            raise UnsupportedError("a FakeTensor holds no data to compute with", remedy="call it with tensors")
        shapes = [a.shape_of(x) for a, x in zip(self._arguments, args, strict=True)]
        values = self._patterns.solve(shapes)
        given = [(self._arguments[i], args[i], shapes[i]) for i in self._inputs]
        read = given[: len(self.program.inputs)]
        sizes = self._sizes([shape for *_, shape in read], {d.name: size for d, size in values.items()})
        for (*_, spec), (argument, x, shape) in zip(sizes.inputs, read, strict=True):
            if argument.layout is not None:
                self.program.check(spec, np.broadcast_to(np.empty((), dtype_of(x.dtype).numpy), shape))
        moved = [
            (n, a.layout)
            for n, (a, x, _) in enumerate(given)
            if a.layout is not None and (not a.layout.fits(x.shape, x.stride()) or is_lazy(x))
        ]
        if any(n >= len(read) for n, _ in moved):
            raise UnsupportedError("an argument that is written to lies otherwise than the example did")
        numbers = [None if a.layout is not None else ctypes.c_int64(x) for a, x, _ in given]
        results = [r.kind(shape) for r, (_, _, shape, _) in zip(self._made, sizes.outputs, strict=True)]
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
        """The arrays that the arguments are taken for."""
        pairs = zip(self._arguments, args, strict=True)
        return [np.asarray(x) if a.layout is None else a.layout.array(x) for a, x in pairs]

    def _arrays(self, given: Sequence[Any]) -> list[Any]:
        """What the program is called with, for the message of an error."""
        layouts = [self._arguments[i].layout for i in self._inputs]
        return [x if layout is None else layout.array(x) for x, layout in zip(given, layouts, strict=True)]


class _Plan(NamedTuple):
    """What calls on arguments of the same sizes have in common."""

    sizes: CallSizes
    moved: tuple[tuple[int, Layout], ...]
    """The inputs that do not lie as the program takes them."""
    numbers: list[ctypes.c_int64 | None] | None
    """In the places of the inputs that are numbers where these lie in memory; None where there are none."""
    results: tuple[tuple[tuple[int, ...], tuple[int, ...], torch.dtype], ...]
    """Sizes, strides and element type of each tensor that is made."""
    rest: tuple[tuple[int, Callable[[Sequence[Any]], Any]], ...]
    """Of each result its number among those that are made, or -1 and what it is of the arguments."""


class _Argument(NamedTuple):
    """A tensor or a number that a call gives."""

    layout: Layout | None
    """How the tensor lies in memory; None of a number."""
    shape: Any
    """Of the array that it is taken for."""
    dtype: DType | None

    @classmethod
    def of(cls, example: Any, sizes: Sizes) -> _Argument:
        if isinstance(example, (int, torch.SymInt)):
            return cls(None, Number((sizes.of(example),)), None)
        if not isinstance(example, torch.Tensor):
            raise UnsupportedError(f"an argument of {type(example).__name__}")
        layout = layout_of(example)
        return cls(layout, layout.shape(sizes.shape(example.shape)), dtype_of(example.dtype))

    def leaf(self) -> Tensor:
        """What stands for it in a trace."""
        if self.dtype is None:
            return NumberTensor.of(0)
        return Tensor._wrap(np.broadcast_to(np.zeros((), self.dtype.numpy), [1 for _ in self.shape]))

    def viewed(self, array: Any) -> Any:
        """The tensor of an array."""
        return array if self.layout is None else self.layout.viewed(array)

    def stored(self, value: Any) -> Any:
        """The array of what is written to the tensor."""
        assert self.layout is not None
        return self.layout.stored(value if value.dtype is self.dtype else value.to(self.dtype))

    def shape_of(self, value: Any) -> tuple[int, ...]:
        """The shape of the array for an argument, the number itself for one."""
        return (value,) if self.layout is None else self.layout.shape(value.shape)


class _Result(NamedTuple):
    """What a call gives in one place."""

    number: int = -1
    """Among the tensors that the native code makes; -1 where it makes none for this place."""
    is_made: bool = False
    """Whether it is the first with this number."""
    value: Any = None
    """An argument by its number (see _Given), a view of one, None, a number or the size that is one."""
    dtype: DType | None = None
    sizes: Sequence[Any] = ()
    layout: Layout | None = None
    strides: tuple[int, ...] | None = None
    """Where no call changes them."""
    is_number: bool = False
    """Whether it is a number, which the trace computes of sizes."""

    def known(self, value: Any) -> _Result:
        """The result with what the trace has found for its place."""
        return self._replace(value=value) if self.is_number else self

    def stored(self, value: Any) -> Any:
        """The array of a result, of the element type that PyTorch gives it."""
        if not isinstance(value, Tensor) or self.layout is None or value.dim() != len(self.layout.order):
            raise CompileError(f"a result {value!r} where PyTorch computes a tensor of sizes {list(self.sizes)}")
        for found, wanted in zip(value.shape, self.sizes, strict=True):
            if isinstance(found, int) and isinstance(wanted, int) and found != wanted:
                raise CompileError(f"a result of sizes {list(value.shape)}, PyTorch computes {list(self.sizes)}")
        return self.layout.stored(value if value.dtype is self.dtype else value.to(self.dtype))

    def kind(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...], torch.dtype]:
        """Sizes, strides and element type of the tensor for this shape of the array."""
        assert self.layout is not None and self.dtype is not None
        sizes = self.layout.sizes(shape)
        return sizes, self.strides or self.layout.strides(sizes), _TORCH[self.dtype.name]


class _Given(NamedTuple):
    """An argument that is a result too."""

    number: int


class _View(NamedTuple):
    """A view of an argument, which is no tensor of its own: AOTAutograd takes its strides for those in the argument's
    memory."""

    number: int
    lies: tuple[tuple[Any, ...], tuple[Any, ...]]
    """Sizes and strides of the argument."""
    sizes: tuple[Any, ...]
    strides: tuple[Any, ...]
    offset: Any
    """From the argument's first element."""

    @staticmethod
    def of(output: Any, examples: Sequence[Any], sizes: Sizes) -> _View | None:
        """The view that a result is, if it is one: fake tensors share fake memory."""
        if not isinstance(output, FakeTensor):
            return None
        memory = StorageWeakRef(output.untyped_storage())
        for number, x in enumerate(examples):
            if isinstance(x, FakeTensor) and x.dtype == output.dtype and StorageWeakRef(x.untyped_storage()) == memory:
                try:
                    lies, shape = (sizes.shape(x.shape), sizes.shape(x.stride())), sizes.shape(output.shape)
                    offset = sizes.of(output.storage_offset()) - sizes.of(x.storage_offset())
                    return _View(number, lies, shape, sizes.shape(output.stride()), offset)
                except UnsupportedError:
                    return None
        return None

    def at(self, values: Any) -> Callable[[Sequence[Any]], torch.Tensor]:
        """What it is of the arguments of calls in which dimensions have these sizes."""
        expected, lies, sizes, strides = (
            tuple([at(n, values) for n in part]) for part in (*self.lies, self.sizes, self.strides)
        )
        offset = at(self.offset, values)

        def view(args: Sequence[Any]) -> torch.Tensor:
            given = args[self.number].detach()
            if given.stride() != lies:
                given = torch.empty_strided(expected, lies, dtype=given.dtype).copy_(given)
            return given.as_strided(sizes, strides, given.storage_offset() + offset)

        return view


def _results(graph: AtenGraph, outputs: Sequence[Any], examples: Sequence[Any], sizes: Sizes) -> list[_Result]:
    """What calls give. An argument is given back itself, a view of one is a view, and what stands in two places is made
    once."""
    found: list[_Result] = []
    numbers: dict[str, int] = {}
    for value, output in zip(graph.output[: len(outputs)], outputs, strict=True):
        if not isinstance(value, Ref):
            found.append(_Result(value=value))
        elif isinstance(output, (int, torch.SymInt, torch.SymFloat)):
            found.append(_Result(is_number=True))
        elif value.name in graph.inputs:
            found.append(_Result(value=_Given(graph.inputs.index(value.name))))
        elif value.name in numbers:
            found.append(_Result(numbers[value.name]))
        elif view := _View.of(output, examples, sizes):
            found.append(_Result(value=view))
        else:
            numbers[value.name] = len(numbers)
            layout, strides = layout_of(output), exact_strides(output)
            shape, dtype = sizes.shape(output.shape), dtype_of(output.dtype)
            found.append(_Result(numbers[value.name], True, None, dtype, shape, layout, strides))
    return found


def _check_tangents(args: Sequence[Any]) -> None:
    """Raises UnsupportedError for arguments with forward-mode derivatives, which the results would not have: no guard
    of Dynamo asks for these."""
    for x in args:
        if isinstance(x, torch.Tensor) and forward_ad.unpack_dual(x).tangent is not None:
            raise UnsupportedError(
                "a compiled function does not carry forward-mode derivatives from its arguments to its results",
                remedy="the function itself, or torch.compile of a function that calls torch.func.jvp",
            )


def _rest(value: Any, values: Any) -> Callable[[Sequence[Any]], Any]:
    if isinstance(value, _Given):
        number = value.number
        return lambda args: args[number]
    if isinstance(value, _View):
        return value.at(values)
    known = value.at(values) if isinstance(value, SizeNumber) else at(value, values)
    return lambda _: known


def _addresses(given: Sequence[Any], numbers: Sequence[ctypes.c_int64 | None]) -> list[int]:
    """Where inputs lie, of which some are numbers."""
    return [
        x.data_ptr() if number is None else ctypes.addressof(number) for x, number in zip(given, numbers, strict=True)
    ]


class _Marker(Reemitter):
    """Makes weights of some arguments of a graph, and states of those to which its last results are written, by the
    paths that they get."""

    def __init__(self, paths: dict[Value, str], states: dict[Value, str]):
        super().__init__()
        self._paths = paths
        self._states = states

    def transform(self, graph: Graph) -> Graph:
        """The graph with these arguments."""
        found = super().transform(graph)
        count = len(found.outputs) - len(self._states)
        for state, value in zip(self._states, found.outputs[count:], strict=True):
            emit(found, state_write.op, (self.values[state], value), {}, name=f"{state.name}.next")
        found.set_outputs(found.outputs[:count])
        return found

    def copy_input(self, value: Value) -> Value:
        """The argument, of its class."""
        if value in self._states:
            return self.target.add_input(value.type, value.name, "state", self._states[value])
        if value not in self._paths:
            return super().copy_input(value)
        return self.target.add_input(value.type, value.name, "weight", self._paths[value])
