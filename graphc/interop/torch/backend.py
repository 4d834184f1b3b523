"""Backend of ``torch.compile(model, backend="graphc")``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import default_partition
from torch._guards import TracingContext
from torch._inductor import list_mode_options
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from graphc.base.errors import ArgumentError
from graphc.base.sizes.assumptions import Assumptions
from graphc.interop.torch.aliases import Aliases, without_views
from graphc.interop.torch.call_numbers import Numbered, with_call_numbers
from graphc.interop.torch.checked import CheckedProgram
from graphc.interop.torch.fallback import ERROR, TORCH, divide
from graphc.interop.torch.fx import read_fx
from graphc.interop.torch.layout import is_lazy
from graphc.interop.torch.overlaps import SameOverlaps, written_arguments
from graphc.interop.torch.program import TorchProgram
from graphc.interop.torch.programs import Programs, programs_of
from graphc.interop.torch.sizes import GraphSizes
from graphc.interop.torch.training import partition
from graphc.interop.torch.weights import FROZEN, LIVE
from graphc.interop.torch.writes import Writing, prepared, without_writes

OPTIONS = {"weights": (LIVE, FROZEN), "fallback": (TORCH, ERROR), "check": (False, True)}
"""Values of ``options=``, the default first."""


class Backend:
    """Compiler for the graphs captured by Dynamo."""

    def __call__(self, module: fx.GraphModule, examples: Sequence[Any], **named: Any) -> Callable[..., Any]:
        """Return a callable that computes what ``module`` does. Raises ArgumentError for unknown options and modes."""
        # Inductor's modes request what graphc does anyway.
        if (mode := named.get("mode")) is not None and mode not in (modes := list_mode_options()):
            raise ArgumentError(
                f"mode={mode!r}", remedy=f"use one of {', '.join(map(repr, modes))}; graphc treats them alike"
            )
        options = checked(named.pop("options", None) or {})
        programs: list[TorchProgram | Programs] = []
        written: set[int] = set()

        def training(graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
            written.update(written_arguments(module, len(examples)))
            return compile_fx(graph, inputs, (), options)

        def backward(graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
            return _materializing(compile_fx(graph, inputs, (), options), graph)

        def inference(graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
            written.update(written_arguments(module, len(examples)))
            run = compile_fx(graph, inputs, _weights(inputs), options)
            if isinstance(run, (TorchProgram, Programs)) and _is_plain(inputs, examples):
                programs.append(run)
            return run

        # For comparison PyTorch computes each graph, too, and reads tensors that graphc does not.
        cut = default_partition if options["check"] else partition
        compiled = aot_autograd(
            fw_compiler=training,
            bw_compiler=backward,
            inference_compiler=inference,
            partition_fn=cut,
            keep_inference_input_mutations=True,
        )(module, examples)
        if written:
            return SameOverlaps(compiled, module, examples, written)
        return _unboxed(programs[0]) if programs else compiled


def checked(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with their defaults. Raises ArgumentError for unknown ones."""
    if not isinstance(options, Mapping):
        raise ArgumentError(
            f"options must be a dictionary, not {type(options).__name__}", remedy='pass options={"weights": "frozen"}'
        )
    for name, value in options.items():
        if name not in OPTIONS:
            raise ArgumentError(f"the backend graphc has no option {name!r}", remedy=f"use {', '.join(OPTIONS)}")
        if value not in OPTIONS[name]:
            raise ArgumentError(f"option {name}={value!r}", remedy=f"use one of {', '.join(map(repr, OPTIONS[name]))}")
    return {name: options.get(name, values[0]) for name, values in OPTIONS.items()}


def compile_fx(
    module: fx.GraphModule, examples: Sequence[Any], weights: Collection[int], options: Mapping[str, Any]
) -> Callable[..., Any]:
    """Compile a graph of ATen operators to a program, with PyTorch for the operators that graphc cannot compute.

    ``weights`` are the weights of Program. Training changes all weights in each step, so nothing is prepacked in
    training.
    """

    def native(
        subgraph: fx.GraphModule, stand_ins: Sequence[Any], weight_indices: Collection[int]
    ) -> Callable[..., Any]:
        subgraph, after, within = without_writes(subgraph, options["check"])
        output = next(node for node in reversed(subgraph.graph.nodes) if node.op == "output")
        results = [getattr(a, "meta", {}).get("val") for a in output.args[0]]
        subgraph, more, numbers = with_call_numbers(subgraph)
        stand_ins, graph = [*stand_ins, *more], read_fx(subgraph)

        def make(sizes: GraphSizes, assumptions: Assumptions) -> TorchProgram:
            arguments = (graph, stand_ins, results, weight_indices, options["weights"], sizes, assumptions, within)
            return (
                CheckedProgram(subgraph, options["fallback"], *arguments)
                if options["check"]
                else TorchProgram(*arguments)
            )

        run = programs_of(stand_ins, graph.inputs, make)
        run = run if numbers is None else Numbered(run, numbers)
        return Writing(run, after) if after else run

    plain, views = without_views(module)
    run = divide(plain, examples, prepared(weights, plain), native, options["fallback"])
    return run if views is None else Aliases(run, views)


def _materializing(run: Callable[..., Any], graph: fx.GraphModule) -> Callable[..., Any]:
    """Wrap a backward pass to materialize lazy gradients of results, for which Dynamo has no guard."""
    inputs = graph.graph.find_nodes(op="placeholder")
    numbers = [i for i, node in enumerate(inputs) if "tangents" in str(node.target)]

    def call(args: list[Any]) -> Any:
        for i in numbers:
            if is_lazy(args[i]):
                args[i] = args[i].clone()
        return run(args)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


def _weights(examples: Sequence[Any]) -> set[int]:
    """Return the indices of parameters and buffers among the arguments, without those that the graph itself writes
    to."""
    context = TracingContext.try_get()
    if context is None or context.fw_metadata is None:
        return set()
    static, written = context.fw_metadata.static_input_indices or (), context.fw_metadata.mutated_inp_runtime_indices
    return {i for i in static if i < len(examples) and isinstance(examples[i], torch.Tensor)} - {*written}


def _is_plain(inputs: Sequence[Any], examples: Sequence[Any]) -> bool:
    """Check whether the inference graph computes everything that Dynamo captured.

    This requires the same arguments, no writes to them, and results of its own. AOTAutograd's work around a call then
    has no effect: graphc's programs record no gradients and ignore autocast. That work takes longer than the programs
    do.
    """
    metadata = getattr(TracingContext.try_get(), "fw_metadata", None)
    if metadata is None or len(inputs) != len(examples) or any(map(_differ, inputs, examples)):
        return False
    try:
        effects = (
            *(metadata.mutated_inp_runtime_indices, metadata.mutated_graph_handled_indices),
            *(metadata.num_outputs_aliased, metadata.num_intermediate_bases),
            *(metadata.dynamic_outputs, metadata.tokens, metadata.is_rng_op_functionalized),
            *(metadata.num_graphsafe_rng_states, metadata.grad_enabled_mutation is not None),
        )
    except AttributeError:  # another version of PyTorch
        return False
    return not any(effects)


def _differ(value: Any, example: Any) -> bool:
    """Check whether two values differ as arguments: AOTAutograd splits tensors that consist of several tensors."""
    if not isinstance(example, torch.Tensor):
        return isinstance(value, torch.Tensor)
    plain = isinstance(value, torch.Tensor) and not is_traceable_wrapper_subclass(example)
    return not plain or (value.dtype, value.dim()) != (example.dtype, example.dim())


def _unboxed(program: TorchProgram | Programs) -> Callable[..., list[Any]]:
    call = program.__call__

    def run(*args: Any) -> list[Any]:
        return call([*args])

    return run


graphc = Backend()
"""One object for all models: Dynamo compiles again when the backend object changes."""
