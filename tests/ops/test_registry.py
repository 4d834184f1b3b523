"""Facts about the registry: it holds every op of the specification, once."""

from __future__ import annotations

from graphc.ir.op import REGISTRY, Trait
from graphc.ops import registry
from graphc.ops.define import OpFunction

WANTED = """
    add sub mul div floor_div mod pow neg abs sign reciprocal eq ne lt le gt ge
    logical_and logical_or logical_xor logical_not bit_and bit_or bit_xor bit_not shift_left shift_right
    where cast maximum minimum exp expm1 log log1p sqrt rsqrt sin cos tanh erf floor ceil round trunc isnan isfinite
    sum prod max min argmax argmin any all reshape transpose broadcast_to slice pad concat flip
    gather scatter_add iota constant matmul conv conv_grad_input conv_grad_weight max_pool max_pool_grad avg_pool
    random_bits tap state_read state_write stop_gradient call
"""


def test_every_op_is_there():
    assert set(WANTED.split()) <= set(REGISTRY)


def test_what_a_composition_could_do_is_no_op():
    """An op is there for a kernel of its own, or for a gradient that is better than that of what it is composed of.

    Four have neither. What argsort is composed of depends on the size, and numpy sorts at once. Products of bytes are
    quads for native code alone: numpy multiplies all bytes at once, and ONNX has an operator for each product."""
    composed = [op for op in REGISTRY.values() if op.lower is None and op.lower_nest is None]
    names = {op.name for op in composed if op.vjp is None and not op.has(Trait.GENERATOR)}
    assert names == {"argsort", "byte_matmul", "byte_conv", "real_byte_conv"}


def test_a_function_is_called_as_its_op():
    for family in registry.FAMILIES:
        for name, value in vars(family).items():
            if isinstance(value, OpFunction):
                assert value.op.name == name and REGISTRY[name] is value.op
