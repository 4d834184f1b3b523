"""Rules of loops, branches and calls."""

from __future__ import annotations

from collections.abc import Callable

from graphc.control.branch import cond, switch
from graphc.control.while_loop import imported_loop
from graphc.interop.stablehlo.call import OperationCall
from graphc.interop.stablehlo.graph import Block
from graphc.interop.stablehlo.registry import TABLE, TARGETS, rule, target
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors.tensor import Tensor


@rule("while")
def while_(call: OperationCall, *state: Tensor) -> tuple[Tensor, ...]:
    """Repeat the second region while the first one gives true: a loop of the compiled program."""
    test, body = call.block(0), call.block(1)
    step = lambda s: tuple(call.run(body, *s))  # noqa: E731
    return tuple(imported_loop(lambda s: call.run(test, *s)[0], step, state, call.runner.checkpoint))


def _branch(call: OperationCall, block: Block) -> Callable[[], tuple[Tensor, ...]]:
    return lambda: tuple(call.run(block))


@rule("if")
def if_(call: OperationCall, condition: Tensor) -> tuple[Tensor, ...]:
    """Run one of two regions."""
    return cond(condition, _branch(call, call.block(0)), _branch(call, call.block(1)))


@rule("case")
def case(call: OperationCall, index: Tensor) -> tuple[Tensor, ...]:
    """Run the region with a number; the last one for numbers out of range."""
    blocks = call.operation.blocks
    last = len(blocks) - 1
    inside = ew.logical_and(ew.ge(index, 0), ew.le(index, last))
    return switch(ew.where(inside, index, last), [_branch(call, b) for b in blocks])


@rule("func.call")
def call_function(call: OperationCall, *operands: Tensor) -> list[Tensor]:
    return call.runner.call(call.symbol("callee"), operands, call.pointwise)


@rule("composite")
def composite(call: OperationCall, *operands: Tensor) -> object:
    """Apply the rule of the operation that a composite is named for, or else the function that defines it."""
    entry = TABLE.get(str(call.attributes.get("name")))
    if entry is not None:
        return entry.rule(call, *operands)
    return call.runner.call(call.symbol("decomposition"), operands, call.pointwise)


@rule("custom_call")
def custom_call(call: OperationCall, *operands: Tensor) -> object:
    name = call.attributes.get("call_target_name")
    return TARGETS[str(getattr(name, "name", name))](call, *operands)


@target("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement")
def same_value(call: OperationCall, x: Tensor) -> Tensor:
    """Return the value: only its placement on devices changes."""
    return x


@rule("sdy.sharding_constraint")
def sharding_constraint(call: OperationCall, x: Tensor) -> Tensor:
    return x
