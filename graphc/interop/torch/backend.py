"""The backend of ``torch.compile(model, backend="graphc")``."""

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
from graphc.interop.torch.program import Program
from graphc.interop.torch.programs import Programs, programs_of
from graphc.interop.torch.sizes import Sizes
from graphc.interop.torch.training import partition
from graphc.interop.torch.weights import FROZEN, LIVE
from graphc.interop.torch.writes import Writing, prepared, without_writes

OPTIONS = {"weights": (LIVE, FROZEN), "fallback": (TORCH, ERROR), "check": (False, True)}
"""What ``options=`` may say, the default first."""


class Backend:
    """Called by Dynamo with each graph that it captures."""

    def __call__(self, module: fx.GraphModule, examples: Sequence[Any], **named: Any) -> Callable[..., Any]:
        """A callable that computes what ``module`` does. Raises ArgumentError for unknown options and modes."""
        # Those of Inductor ask for what is done anyway.
        if (mode := named.get("mode")) is not None and mode not in (modes := list_mode_options()):
            raise ArgumentError(f"mode={mode!r}", remedy=f"one of {', '.join(map(repr, modes))}, all alike to graphc")
        options = checked(named.pop("options", None) or {})
        whole: list[Program | Programs] = []
        written: set[int] = set()

        def training(graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
            written.update(written_arguments(module, len(examples)))
            return compile_fx(graph, inputs, (), options)

        def backward(graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
            return _held(compile_fx(graph, inputs, (), options), graph)

        def inference(graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
            written.update(written_arguments(module, len(examples)))
            run = compile_fx(graph, inputs, _weights(inputs), options)
            if isinstance(run, (Program, Programs)) and _is_plain(inputs, examples):
                whole.append(run)
            return run

        # PyTorch computes each graph, too, where it is compared, and reads what graphc does not.
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
        return _unboxed(whole[0]) if whole else compiled


def checked(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with their defaults; raises ArgumentError for others."""
    if not isinstance(options, Mapping):
        raise ArgumentError(
            f"options are a dictionary, not {type(options).__name__}", remedy='options={"weights": "frozen"}'
        )
    for name, value in options.items():
        if name not in OPTIONS:
            raise ArgumentError(f"the backend graphc has no option {name!r}", remedy=f"one of {', '.join(OPTIONS)}")
        if value not in OPTIONS[name]:
            raise ArgumentError(f"option {name}={value!r}", remedy=f"one of {', '.join(map(repr, OPTIONS[name]))}")
    return {name: options.get(name, values[0]) for name, values in OPTIONS.items()}


def compile_fx(
    module: fx.GraphModule, examples: Sequence[Any], weights: Collection[int], options: Mapping[str, Any]
) -> Callable[..., Any]:
    """What computes a graph of ATen operators: a program, and PyTorch where graphc cannot. ``weights`` are those of
    Program; a step of training changes all weights, so that in training nothing is prepared of them."""

    def native(part: fx.GraphModule, given: Sequence[Any], known: Collection[int]) -> Callable[..., Any]:
        part, after, within = without_writes(part, options["check"])
        output = next(node for node in reversed(part.graph.nodes) if node.op == "output")
        results = [getattr(a, "meta", {}).get("val") for a in output.args[0]]
        part, more, numbers = with_call_numbers(part)
        given, graph = [*given, *more], read_fx(part)

        def make(sizes: Sizes, assumptions: Assumptions) -> Program:
            named = (graph, given, results, known, options["weights"], sizes, assumptions, within)
            return CheckedProgram(part, options["fallback"], *named) if options["check"] else Program(*named)

        run = programs_of(given, graph.inputs, make)
        run = run if numbers is None else Numbered(run, numbers)
        return Writing(run, after) if after else run

    plain, views = without_views(module)
    run = divide(plain, examples, prepared(weights, plain), native, options["fallback"])
    return run if views is None else Aliases(run, views)


def _held(run: Callable[..., Any], graph: fx.GraphModule) -> Callable[..., Any]:
    """What computes a backward pass, for gradients of results that are lazy, too: no guard of Dynamo sees these."""
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
    """The numbers of the arguments that are parameters and buffers, and to which the graph itself does not write."""
    context = TracingContext.try_get()
    if context is None or context.fw_metadata is None:
        return set()
    known, written = context.fw_metadata.static_input_indices or (), context.fw_metadata.mutated_inp_runtime_indices
    return {i for i in known if i < len(examples) and isinstance(examples[i], torch.Tensor)} - {*written}


def _is_plain(inputs: Sequence[Any], examples: Sequence[Any]) -> bool:
    """Whether what computes a graph for inference computes all that was captured: of the same arguments, with none
    written to, and with results of its own. What AOTAutograd does around a call has then no effect, for graphc's
    programs record no gradients and know nothing of autocast; and it takes longer than theirs do."""
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


def _differ(given: Any, example: Any) -> bool:
    """Whether two things are not one argument: AOTAutograd takes apart what consists of several tensors."""
    if not isinstance(example, torch.Tensor):
        return isinstance(given, torch.Tensor)
    plain = isinstance(given, torch.Tensor) and not is_traceable_wrapper_subclass(example)
    return not plain or (given.dtype, given.dim()) != (example.dtype, example.dim())


def _unboxed(program: Program | Programs) -> Callable[..., list[Any]]:
    call = program.__call__

    def run(*args: Any) -> list[Any]:
        return call([*args])

    return run


graphc = Backend()
"""One object for all models: Dynamo compiles again where the backend is another one."""
