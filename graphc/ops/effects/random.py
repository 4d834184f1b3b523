"""Counter-based random bits: Philox 4x32-10 (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011).

The bits of element i depend only on the seed, the stream, the step and i, so every executor draws the same bits in any
order. A generator's state is (seed, step); the front end gives each random op of a module its own stream.

All four words of a counter are used: 64 consecutive elements take 16 counters, their first 16 elements the first words,
the next 16 the second words and so on. Neighbours thus have neighbouring counters, which suits lanes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from graphc.base.dtypes import float32, int32, int64
from graphc.base.errors import DTypeError, ShapeError
from graphc.base.sizes.size_relations import at_most
from graphc.ir.kernel.index import Index, flatten
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.kernel.nest import Scalar
from graphc.ir.op import Attr, Attrs, ErrorSample, OpDef, Trait
from graphc.ir.types import TensorType, row_major_strides
from graphc.ops.batch import BatchedOperand
from graphc.ops.define import define
from graphc.ops.pointwise.elementwise import bit_and, cast, mul, shift_right
from graphc.ops.rules import check_sizes, show
from graphc.ops.samples import array, plain

Word = TypeVar("Word")
Four = tuple[Word, Word, Word, Word]
Two = tuple[Word, Word]

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
LOW = 0xFFFFFFFF
WORDS, RUN = 4, 16
"""Words of one counter, and consecutive elements that take the same word of as many counters."""


def philox(
    counter: Four[Word],
    key: Two[Word],
    multiply: Callable[[int, Word], Two[Word]],
    xor: Callable[[Word, Word], Word],
    add: Callable[[Word, int], Word],
) -> Four[Word]:
    """Return the four output words, for any kind of 32-bit word; ``multiply`` returns the high and low word of a
    product."""
    a, b, c, d = counter
    k0, k1 = key
    for i in range(ROUNDS):
        if i:
            k0, k1 = add(k0, KEY_STEPS[0]), add(k1, KEY_STEPS[1])
        high0, low0 = multiply(MULTIPLIERS[0], a)
        high1, low1 = multiply(MULTIPLIERS[1], c)
        a, b, c, d = xor(xor(high1, b), k0), low1, xor(xor(high0, d), k1), low0
    return a, b, c, d


def _multiply_arrays(factor: int, word: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    product = word.astype(np.uint64) * np.uint64(factor)
    return (product >> np.uint64(32)).astype(np.uint32), product.astype(np.uint32)


def philox_arrays(counter: Four[Any], key: Two[Any]) -> Four[np.ndarray]:
    """Run Philox on numpy arrays of uint32; counter and key broadcast."""
    a, b, c, d, k0, k1 = (np.asarray(w, np.uint32) for w in (*counter, *key))
    with np.errstate(over="ignore"):
        return philox(
            (a, b, c, d), (k0, k1), _multiply_arrays, np.bitwise_xor, lambda w, step: np.add(w, np.uint32(step))
        )


def _infer(state: TensorType, shape: tuple[int, ...], stream: int) -> TensorType:
    if state.dtype is not int64:
        raise DTypeError(f"random_bits: the state is {state.dtype.name}, not i64", remedy="pass i64[2]: seed and step")
    if state.shape not in ((2,), (3,)):
        raise ShapeError(
            f"random_bits: the state has shape {show(state.shape)}, not [2] or [3]",
            remedy="pass seed and step, or seed, step and stream",
        )
    check_sizes("random_bits", shape)
    return TensorType(int32, shape)


def _reference(state: np.ndarray, shape: tuple[int, ...], stream: int) -> np.ndarray:
    seed, step, *streams = (int(v) & 0xFFFFFFFFFFFFFFFF for v in state)
    stream += sum(streams)
    size = math.prod(shape)
    counter = np.arange(-(-size // (WORDS * RUN)) * RUN, dtype=np.uint64)
    halves = counter.astype(np.uint32), (counter >> np.uint64(32)).astype(np.uint32)
    words = philox_arrays((*halves, stream & LOW, step & LOW), (seed & LOW, seed >> 32))
    bits = np.stack([word.reshape(-1, RUN) for word in words], axis=1)
    return bits.reshape(-1)[:size].view(np.int32).reshape(shape)


def _lower(c: LowerContext, index: tuple[Index, ...], state: OperandRef, shape: tuple[int, ...], stream: int) -> Scalar:
    nest = c.nest

    def halves(word: Scalar) -> tuple[Scalar, Scalar]:
        return word.cast(int32), nest.op("shr_unsigned", word, nest.const(32, int64)).cast(int32)

    def literal(value: int) -> Scalar:
        return nest.const(value - (1 << 32) if value >> 31 else value, int32)

    def multiply(factor: int, word: Scalar) -> tuple[Scalar, Scalar]:
        return nest.op("mulhi_unsigned", word, literal(factor)), nest.op("mul", word, literal(factor))

    offset = flatten(index, row_major_strides(shape))
    counter, number = offset // (WORDS * RUN) * RUN + offset % RUN, offset // RUN % WORDS
    if at_most(math.prod(shape), 1 << 31):
        halved = nest.index(counter, int32), literal(0)
    else:
        halved = halves(nest.index(counter, int64))
    seed, step = c.load(state, (Index(),)), c.load(state, (Index((), 1),))
    stream_word = literal(stream & LOW)
    if state.shape == (3,):
        stream_word = stream_word + c.load(state, (Index((), 2),)).cast(int32)
    start = (*halved, stream_word, step.cast(int32))
    words = philox(start, halves(seed), multiply, lambda a, b: a ^ b, lambda word, n: word + literal(n))
    word_number, result = nest.index(number, int32), words[0]
    for i, word in enumerate(words[1:], 1):
        result = nest.select(word_number.eq(i), word, result)
    return result


def _batched_random_bits(op: OpDef, size: int, operands: Sequence[BatchedOperand], attrs: Attrs) -> Any:
    return random_bits(operands[0].value, **{**attrs, "shape": (size, *attrs["shape"])})


random_bits = define(
    "random_bits",
    "32 random bits per element (i32). Element i in row-major order is word i // 16 % 4 of Philox 4x32-10 with key = "
    "seed and counter = (n, stream, step) for n = 16 * (i // 64) + i % 16. The state is seed and step, or seed, step "
    "and a number to add to the stream.",
    "state",
    _infer,
    attrs=[
        Attr("shape", "ints", "the shape of the result"),
        Attr("stream", "int", "the number of the stream; its low 32 bits count"),
    ],
    reference=_reference,
    lower=_lower,
    traits=Trait.PURE | Trait.GENERATOR | Trait.RANDOM,
    cost=120,
    batch=_batched_random_bits,
    samples=lambda: [
        plain(array([0, 0], "int64"), shape=(5,), stream=0),
        plain(array([-1, 1 << 40], "int64"), shape=(2, 3), stream=0xFFFFFFFF),
        plain(array([0x123456789ABCDEF, 17], "int64"), shape=(3, 5, 7), stream=0x9ABCDEF0),
        plain(array([5, 9], "int64"), shape=(2, 128), stream=3),
        plain(array([5, 9], "int64"), shape=(3, 100), stream=3),
        plain(array([7, -3], "int64"), shape=(), stream=-5),
        plain(array([7, 3], "int64"), shape=(0, 2), stream=1),
        plain(array([5, 9, 0xFFFFFFFE], "int64"), shape=(70,), stream=3),
    ],
    error_samples=[
        ErrorSample((TensorType(int32, (2,)),), "the state is i32", {"shape": (2,), "stream": 0}, DTypeError),
        ErrorSample((TensorType(int64, (4,)),), "shape [4], not [2] or [3]", {"shape": (2,), "stream": 0}, ShapeError),
        ErrorSample((TensorType(int64, (2,)),), "negative dimension", {"shape": (-2,), "stream": 0}, ShapeError),
    ],
)


def uniform(state: Any, shape: tuple[int, ...], stream: int, dtype: Any = float32) -> Any:
    """Return multiples of 2**-24, uniform in [0, 1), made from the upper 24 of the random bits; f32 or f64."""
    bits = bit_and(shift_right(random_bits(state, shape=shape, stream=stream), 8), 0xFFFFFF)
    return mul(cast(bits, dtype=dtype), 2.0**-24)
