"""The pass pipeline: the default sequence of graph passes, and the functions that run it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import is_dataclass
from itertools import chain
from typing import Any, NamedTuple

from graphc.base import config
from graphc.base.errors import ArgumentError, VerifyError
from graphc.base.pass_runner import Outcome, PassRun, PipelineRunner
from graphc.codegen.machine.costs import DEFAULT, Costs
from graphc.ir.graph.graph import INPUT, Graph, input_path, input_role
from graphc.ir.graph.interpret import answering, copy
from graphc.ir.graph.text import print_graph
from graphc.ir.graph.verify import verify_graph
from graphc.ir.op import Trait
from graphc.passes.base import STANDARD, Pass, PassResult, with_costs
from graphc.passes.batchnorm import BatchNormFolding
from graphc.passes.byte_products import ByteProducts
from graphc.passes.canonicalize import Canonicalize
from graphc.passes.checks import SettleChecks
from graphc.passes.cse import CommonSubexpressionElimination
from graphc.passes.dce import DeadCodeElimination
from graphc.passes.decompose import Decompose
from graphc.passes.fold import ConstantFolding
from graphc.passes.masked_products import MaskedProducts
from graphc.passes.narrow_products import NarrowProducts
from graphc.passes.padded_sums import JoinPaddedParts
from graphc.passes.read_codes import ReadCodes
from graphc.passes.rematerialize import Rematerialize
from graphc.passes.scalar_steps import ScalarSteps
from graphc.passes.scans import HoistFromSteps, MergeScans, OptimizeSteps, PruneScans, ShareInvariantStacks
from graphc.passes.slice_updates import UpdateSlices
from graphc.passes.split_complex import SplitComplex
from graphc.passes.update_order import EarlyCalls
from graphc.passes.winograd import Winograd

_SIMPLIFY: tuple[Pass, ...] = (
    Canonicalize(),
    ConstantFolding(),
    CommonSubexpressionElimination(),
    DeadCodeElimination(),
)
PASSES: tuple[Pass, ...] = (
    # All other passes handle real values only.
    SplitComplex(),
    # Shrink the graph first: every later pass has less to do.
    DeadCodeElimination(),
    # Before any rewrite: rewrites insert new nodes right before their readers.
    EarlyCalls(),
    Canonicalize(),
    ConstantFolding(),
    CommonSubexpressionElimination(),
    SettleChecks(),
    # Merge a scan with the second run of its step for the gradient; the backward step then needs fewer stacks.
    MergeScans(),
    OptimizeSteps(_SIMPLIFY),
    ShareInvariantStacks(),
    PruneScans(),
    # From here on, no pass differentiates the graph.
    ByteProducts(),
    Decompose(),
    # Decompositions of products repack weights, which all steps share.
    HoistFromSteps(),
    ScalarSteps(),
    JoinPaddedParts(),
    OptimizeSteps((JoinPaddedParts(),), "join-padded-parts-in-steps"),
    Canonicalize(),
    BatchNormFolding(),
    # Clean up after decomposition and folding: constants of weights, views of views, equal paddings.
    ConstantFolding(),
    Canonicalize(),
    Winograd(),
    ReadCodes(),
    CommonSubexpressionElimination(),
    SettleChecks(),
    DeadCodeElimination(),
    OptimizeSteps(_SIMPLIFY),
    PruneScans(),
    DeadCodeElimination(),
    UpdateSlices(),
    MaskedProducts(),
    OptimizeSteps((MaskedProducts(),), "masked-products-in-steps"),
    # Last, because it makes equal nodes, which CSE would merge.
    Rematerialize(),
)
"""Passes of ``optimize``, in order."""
PIPELINE = STANDARD
"""PASSES, under the name by which modules refer to them without importing them."""
_NARROW: tuple[Pass, ...] = (NarrowProducts(), OptimizeSteps((NarrowProducts(),), "narrow-products-in-steps"))
_OWN = frozenset(map(type, (*PASSES, *_NARROW)))


def with_narrow_products(passes: Sequence[Pass]) -> tuple[Pass, ...]:
    """Return a pipeline in which large products take bf16 factors, right before convolutions become other products."""
    position = next((i for i, step in enumerate(passes) if isinstance(step, Winograd)), len(passes))
    return (*passes[:position], *_NARROW, *passes[position:])


def optimize(graph: Graph, passes: Sequence[Pass] = PIPELINE, costs: Costs = DEFAULT) -> Graph:
    """Return a new graph with the same inputs, outputs and effects, optimized by ``passes``; ``graph`` is unchanged.

    Verifies the result, and with GRAPHC_VERIFY=pass the graph after every pass. After a pass that is not in PIPELINE,
    also verifies the graph and compares its interface (unless GRAPHC_VERIFY=off). Prints the graph to stderr after each
    pass named in GRAPHC_PRINT_AFTER. Passes with a field ``costs`` choose by ``costs``. Raises PassError, which names
    the pass and those before it, when a pass fails or leaves a wrong graph.
    """
    return run_passes(graph, passes, costs)[0]


def run_passes(graph: Graph, passes: Sequence[Pass] = PIPELINE, costs: Costs = DEFAULT) -> tuple[Graph, list[PassRun]]:
    """Run ``optimize``, and also return what each pass did."""
    with answering(graph):
        present, runs = _RUNNER([with_costs(step, costs) for step in passes], copy(graph))
    present.assumptions = graph.assumptions
    _name_outputs(graph, present)
    return present, runs


def _run(step: Pass, graph: Graph) -> Outcome[Graph]:
    foreign = type(step) not in _OWN and config.read().verify != "off"
    result = _run_foreign(step, graph) if foreign else step.run(graph)
    return Outcome(result.graph, result.changed, result.reasons)


_RUNNER = PipelineRunner[Pass, Graph](_run, verify_graph, print_graph)


def _run_foreign(step: Pass, graph: Graph) -> PassResult:
    """Run a pass from outside of PIPELINE, and verify its result without trusting it."""
    before = _surface(graph)
    result = step.run(graph)
    if not isinstance(result, PassResult):
        raise VerifyError(f"it returned {type(result).__name__}, not a PassResult")
    verify_graph(result.graph)
    for (what, had), (_, has) in zip(before, _surface(result.graph), strict=True):
        if had != has:
            raise VerifyError(f"the {what} were ({', '.join(had)}), it leaves ({', '.join(has)})")
    return result


def _surface(graph: Graph) -> list[tuple[str, list[str]]]:
    """Return the facts about a graph that callers rely on and no pass may change."""
    inputs = [" ".join(filter(None, (str(v.type), *map(str, input_role(v))))) for v in graph.inputs]
    written = [input_path(n.operands[0]) for n in graph.nodes() if n.op.has(Trait.STATE_WRITE)]
    return [
        ("inputs", inputs),
        ("types of the outputs", [str(v.type) for v in graph.outputs]),
        ("states that are written", sorted(written)),
    ]


class Arranged(NamedTuple):
    """A user's passes at their positions in the pipeline."""

    first: tuple[Pass, ...] = ()
    """Passes that run on the graph as traced, before it is differentiated."""
    pipeline: Sequence[Pass] = PIPELINE
    """PIPELINE with the other passes of the user."""


def arrange(passes: Sequence[Pass]) -> Arranged:
    """Place a user's passes. A pass whose attribute ``after`` names a pass of PIPELINE runs directly after the last one
    of that name, in the given order; all others run first. Raises ArgumentError for an object that is not a pass or an
    unknown name."""
    for step in passes:
        _check_pass(step)
    after: dict[str, list[Pass]] = {}
    for step in passes:
        after.setdefault(getattr(step, "after", ""), []).append(step)
    first = tuple(after.pop("", ()))
    if not after:
        return Arranged(first)
    last = {own.name: i for i, own in enumerate(PIPELINE)}
    for name, steps in after.items():
        if name not in last:
            raise ArgumentError(
                f"pass {steps[0].name} runs after {name!r}, which is not a pass of the pipeline",
                remedy=f"set `after` to one of {', '.join(last)}",
            )
    placed = [(own, *(after.get(own.name, ()) if last[own.name] == i else ())) for i, own in enumerate(PIPELINE)]
    return Arranged(first, tuple(chain.from_iterable(placed)))


def _check_pass(step: Any) -> None:
    frozen = is_dataclass(step) and not isinstance(step, type) and type(step).__dataclass_params__.frozen  # type: ignore[attr-defined]
    if not frozen or not isinstance(getattr(step, "name", None), str) or not callable(getattr(step, "run", None)):
        raise ArgumentError(
            f"{step!r} is not a pass",
            remedy="pass an object of a class under @dataclass(frozen=True) with a field `name` and a method "
            "run(graph) that returns PassResult(graph, changed)",
        )


def _name_outputs(before: Graph, after: Graph) -> None:
    """Give outputs their old names back where a simpler node replaced them."""
    used = {v.name for v in (*after.inputs, *(r for n in after.nodes() for r in n.results))}
    for old, new in zip(before.outputs, after.outputs, strict=True):
        if old.name not in used and new.node.op is not INPUT and not new.is_scalar_constant:
            after.rename(new, old.name)
            used.add(old.name)
