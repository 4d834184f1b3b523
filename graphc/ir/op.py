"""Op definitions: attributes, traits, rules, and the registry that everything else derives from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import Enum, Flag, auto
from typing import Any

import numpy as np

from graphc.base import own_ops
from graphc.base.dtypes import DType, dtype_of
from graphc.base.errors import ArgumentError, AttributeValueError, GraphcError, VerifyError
from graphc.base.records import dataclass
from graphc.base.sizes.size import SizeNumber, is_size
from graphc.ir.types import TensorType

Attrs = dict[str, Any]
Types = tuple[TensorType, ...]


class Trait(Flag):
    """Assumptions of passes about an op. Without PURE a node is never removed, merged or moved past an effect."""

    NONE = 0
    PURE = auto()
    """The results depend on operands and attributes only; there are no side effects."""
    ELEMENTWISE = auto()
    """Result element i depends on element i of each operand (after numpy broadcasting)."""
    COMMUTATIVE = auto()
    """The first two operands may be exchanged."""
    VIEW = auto()
    """Result elements are operand elements at other indices (or a padding constant); lowering is index arithmetic."""
    REDUCTION = auto()
    """One operand, reduced along some axes by an associative operation."""
    CONTRACTION = auto()
    """A sum of products over reduced axes: matrix product, convolution and their gradients."""
    GENERATOR = auto()
    """No tensor operand is read element by element (iota, constant, random bits): cheap to recompute."""
    MATERIALIZE = auto()
    """Must be computed by a kernel of its own; never inlined into a consumer."""
    STORES_ONCE = auto()
    """``lower_nest`` stores every element of the result once; elementwise consumers may be fused there."""
    RANDOM = auto()
    """The result is random numbers, which differ between the entries of a batch on request."""
    EFFECT = auto()
    """Writes state or is observed from outside; keeps its order with other effects."""
    CHECK = auto()
    """The result is true when the call must stop before it writes any state; nothing reads it."""
    STATE_READ = auto()
    """Operand 0 is a param or state argument of the graph, and the result is its content at entry."""
    STATE_WRITE = auto()
    """Operand 0 is a param or state argument of the graph, and result 0 is its content after the call."""
    IDENTITY = auto()
    """The results equal the operands, bit by bit: the op only matters to gradients or to order."""
    REINTERPRETS = auto()
    """The result has the memory layout of the single operand, byte for byte: complex numbers as pairs, or vice
    versa."""
    CONVERSION = auto()
    """Result element i is element i of the single operand, converted to the element type in the attribute ``dtype``."""
    LOOP = auto()
    """Applies the graph in its attribute ``body`` ``length`` times, backwards with ``reverse``. The first ``carries``
    operands are the carries of the first step, and the first results those of the last one; each step takes a slice of
    the next ``sequences`` operands; all steps share the others. See ops.flow.loop."""
    BRANCH = auto()
    """Applies one of the graphs in its attributes ``then`` and ``otherwise`` to the operands after the first, which is
    the condition. See ops.flow.branch."""
    WHILE = auto()
    """Applies the graph in its attribute ``body`` while the graph in ``test`` returns true. See ops.flow.while_loop."""
    RECOMPUTED = auto()
    """The result may be modified before a backward pass; its rules then get it recomputed from the operands."""
    WAITS = auto()
    """The result is operand 0, whose computation is delayed until operand 1 is computed; operand 1 is not read."""
    HOST = auto()
    """Calls a Python function, named in the attribute ``name``, with the operands; it returns the results. Operand 0
    and result 0 are tokens, which order such calls."""
    ORDERED = auto()
    """Calls Python if the attribute ``ordered`` is set. Then operand 0 and result 0 are tokens, as for HOST, and the op
    is an effect."""


class ZeroSign(Enum):
    """Effect of the sign of a zero in an operand on a result."""

    SEEN = auto()
    """More than the sign of a zero: 1 / x is an infinity with that sign."""
    KEPT = auto()
    """At most the signs of zeros in the result, as for views and sums of two."""
    HIDDEN = auto()
    """None: both zeros give the same result."""


class Dims(Enum):
    """Kinds of dimensions of an operand or a result."""

    ANY = auto()
    IMAGE = auto()
    """Image of a batch, channel, then the dimensions over which a window slides."""
    WINDOW = auto()
    """Channel of the result, channel of the operand, then offsets in a window: weights of a convolution."""
    SAME = auto()
    """The dimensions of all others with SAME."""


class OnParts(Enum):
    """Derivation of an op on complex numbers from itself on real and imaginary parts."""

    EACH = auto()
    """Apply the op to the real parts and to the imaginary parts separately."""
    BILINEAR = auto()
    """Linear in each of its two operands: expand (a + bi)(c + di) with the op for the products."""


@dataclass(frozen=True)
class ImageRule:
    """Kinds of dimensions of an op on images."""

    operands: tuple[Dims, ...]
    result: Dims


@dataclass(frozen=True)
class Halo:
    """Elements that a view puts before and after its operand along each dimension, all of one value."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    value: bool | int | float


Bounds = tuple[int, int]
"""Smallest and largest element of an integer tensor; bools count as 0 and 1."""


@dataclass(frozen=True)
class Attr:
    """An attribute of an op."""

    name: str
    kind: str
    """``int``, ``float``, ``bool``, ``str``, ``dtype``, ``ints`` a tuple of ints, ``pairs`` a tuple of int tuples (an
    int may be a size known only at run time), ``graph`` a sub-graph, ``array`` a constant numpy array (read-only),
    ``scalar`` a Python bool, int or float."""
    doc: str = ""
    default: Any = None
    required: bool = True
    """If False, ``default`` is used (and the attribute is still stored and printed)."""

    def normalize(self, value: Any) -> Any:
        """Return the canonical, hashable form of ``value``; raise AttributeValueError for a wrong kind."""
        try:
            return _NORMALIZE[self.kind](value)
        except (TypeError, ValueError) as error:
            raise AttributeValueError(f"attribute {self.name} must be {self.kind}, got {value!r}") from error


def _as_int(value: Any) -> int:
    if is_size(value):
        return value
    if isinstance(value, bool) or int(value) != value:
        raise ValueError(value)
    return int(value)


def _as_bool(value: Any) -> bool:
    if value not in (True, False):
        raise ValueError(value)
    return bool(value)


def _as_str(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(value)
    return value


def _as_dtype(value: Any) -> DType:
    if value is None:
        raise ValueError(value)
    return dtype_of(value)


def _as_array(value: Any) -> np.ndarray:
    array = np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)
    if array.flags.writeable:
        array = array.copy()
        array.flags.writeable = False
    return array


def _as_scalar(value: Any) -> bool | int | float:
    if is_size(value):
        return int(value)
    if isinstance(value, SizeNumber):
        return float(value)
    return value.item() if isinstance(value, np.generic) else {bool: bool, int: int, float: float}[type(value)](value)


_NORMALIZE: dict[str, Callable[[Any], Any]] = {
    "int": _as_int,
    "float": float,
    "bool": _as_bool,
    "str": _as_str,
    "ints": lambda v: tuple(_as_int(i) for i in v),
    "pairs": lambda v: tuple(tuple(_as_int(i) for i in p) for p in v),
    "dtype": _as_dtype,
    "graph": lambda v: v,
    "array": _as_array,
    "scalar": _as_scalar,
}


@dataclass(frozen=True)
class Sample:
    """Sample inputs of an op for its tests."""

    operands: tuple[np.ndarray, ...]
    attrs: Attrs = field(default_factory=dict)
    differentiable: bool = True
    """False at a kink or for integer operands: no finite-difference check."""


@dataclass(frozen=True)
class ErrorSample:
    """A wrong application: operand types and attributes, and a fragment of the expected error message."""

    types: Types
    message: str
    attrs: Attrs = field(default_factory=dict)
    error: type[GraphcError] = GraphcError


@dataclass(frozen=True, eq=False)
class OpDef:
    """Definition of an op. Ops are compared by identity."""

    name: str
    doc: str
    operands: tuple[str, ...]
    """Operand names; a last name that starts with ``*`` is variadic."""
    attrs: tuple[Attr, ...]
    infer: Callable[..., TensorType | Types]
    """Type rule: ``infer(*operand_types, **attrs)``; raises ShapeError, DTypeError or AttributeValueError."""
    reference: Callable[..., Any] | None = None
    """Meaning in numpy: ``reference(*arrays, **attrs)`` -> array or tuple of arrays. Must not write to its operands;
    the result may alias an operand only for VIEW ops."""
    vjp: tuple[Callable[..., Any] | None, ...] | Callable[..., Any] | None = None
    """Gradient rule, written in ops. A tuple has one entry per operand: ``rule(g, result, *operands, **attrs)`` ->
    gradient of that operand (None: not differentiable); for ops with several results ``g`` and ``result`` are tuples,
    with None in ``g`` for results without gradient. A single callable (for variadic ops) returns all gradients."""
    jvp: Callable[..., Any] | None = None
    """Forward rule of an op with one result where ``vjp`` does not determine it: ``jvp(tangents, result, *operands,
    **attrs)`` -> tangent of the result; a tangent is None for an operand without one."""
    lower: Callable[..., Any] | None = None
    """Kernel rule: ``lower(c, index, *operands, **attrs)`` -> scalar of the result at ``index`` (kernel.lowering)."""
    lower_nest: Callable[..., None] | None = None
    """Kernel rule for ops whose result elements are not independent functions (scatter, scan): emits a whole nest."""
    updates: int | None = None
    """For ops with ``lower_nest`` whose result is an operand with some elements replaced: the number of that operand.
    The rule stores only the replaced elements; the others are copied before, unless the result takes over the
    memory."""
    complex: OnParts | Callable[..., Any] | None = None
    """Rule for complex operands, written in ops: ``complex(*operands, **attrs)`` -> result. Complex operands and
    results are ``ops.pointwise.parts_of_complex.Complex``, which ops on them accept. An ``OnParts`` derives the rule
    from the op. VIEW ops without a rule treat the parts alike."""
    decompose: Callable[..., Any] | None = None
    """``decompose(*operands, **attrs)`` -> result(s) in simpler ops, or None for an application that is simple
    enough."""
    traits: Trait = Trait.NONE
    alias: Callable[..., Any] | None = None
    """For ops whose result is a view of operand 0 where memory allows it: ``alias(operand, value, **attrs)``, written
    in ops, returns the operand after ``value`` was written to the result. Raises GradientError where elements of the
    result share memory. The results of other ops own their memory."""
    batch: Callable[..., Any] | None = None
    """Batching rule: ``batch(op, size, operands, attrs)`` -> the results of ``size`` applications, stacked along a
    first dimension, or None to apply the op to one entry after the other; see ops.batch. ELEMENTWISE ops need none."""
    cost: int | None = None
    """Vector operations per element of the result; None to derive it from the scalar operations of ``lower`` (see
    fusion.price), whose expansions count."""
    zero_sign: ZeroSign | tuple[ZeroSign, ...] = ZeroSign.SEEN
    """Effect of signs of zeros in all operands, or in each, on the results; see ``sign_of_zero``."""
    bounds: Callable[[Sequence[Bounds], Types, Attrs], Bounds | None] | None = None
    """Range rule for integers and bools: ``bounds(bounds of the operands, their types, attrs)`` -> bounds of the
    elements of the result for integers of unlimited width, or None if only its type limits them."""
    image: ImageRule | None = None
    """Kinds of dimensions of operands and result, for ops on images; see ``image_rule``."""
    permutes: Callable[[Attrs], tuple[int, ...]] | None = None
    """For views that only permute dimensions: the operand's dimension for each dimension of the result."""
    halo: Callable[[Attrs], Halo | None] | None = None
    """For views that only put a halo around their operand; None where an application does more."""
    parts: Callable[[Types, Attrs], tuple[tuple[int, ...], ...]] | None = None
    """For views whose result consists of their operands, unchanged, and nothing else: the index where each begins."""
    multiply_adds: Callable[[Types, Types, Attrs], int] | None = None
    """For CONTRACTION: multiply-adds of an application, from the types of operands and results."""
    pairs: Callable[[Types, Attrs], tuple[int, int] | None] | None = None
    """For CONTRACTION, also of pairs of bf16: the dimensions of the operands whose neighbours become pairs, or None
    where that is impossible."""
    runs: Callable[[Attrs], tuple[Any, int]] | None = None
    """For ops that apply a sub-graph: the sub-graph, and the number of times it is applied."""
    samples: Callable[[], Sequence[Sample]] | None = None
    error_samples: tuple[ErrorSample, ...] = ()
    module: str = ""
    """Module of the user's file that defined the op; empty for the ops of graphc."""

    def has(self, trait: Trait) -> bool:
        """Check whether the op has every trait in ``trait``."""
        # NOTE: this uses the integers, because the operators of Flag take ten times as long.
        bits = trait._value_
        return self.traits._value_ & bits == bits

    def has_any(self, traits: Trait) -> bool:
        """Check whether the op has some trait of ``traits``."""
        return self.traits._value_ & traits._value_ != 0

    @property
    def detaches(self) -> bool:
        """Whether the op is a view that stops the gradient to its operand."""
        return self.alias is not None and self.vjp is None

    def put_back(self, operand: Any, value: Any, **attrs: Any) -> Any:
        """Return the operand of a view after ``value`` was written to the result."""
        assert self.alias is not None, f"{self.name} does not make a view"
        return self.alias(operand, value, **attrs)

    def sign_of_zero(self, number: int) -> ZeroSign:
        """Return the effect of the sign of a zero in operand ``number`` on the results. Contractions hide it, because
        their sums start at 0, to which either zero may be added; views keep it."""
        if self.has(Trait.CONTRACTION):
            return ZeroSign.HIDDEN
        if self.has(Trait.VIEW):
            return ZeroSign.KEPT
        return self.zero_sign[number] if isinstance(self.zero_sign, tuple) else self.zero_sign

    def image_rule(self, count: int) -> ImageRule:
        """Return the kinds of dimensions of ``count`` operands and the result; ELEMENTWISE ops have the same
        everywhere."""
        if self.image is not None:
            return self.image
        dims = Dims.SAME if self.has(Trait.ELEMENTWISE) else Dims.ANY
        return ImageRule((dims,) * count, dims)

    @property
    def variadic(self) -> bool:
        """Whether the op takes any number of operands."""
        return bool(self.operands) and self.operands[-1].startswith("*")

    def normalize(self, attrs: Mapping[str, Any]) -> Attrs:
        """Return the attributes with defaults, in declared order; raise ArgumentError for unknown or missing ones."""
        full: Attrs = {}
        if not attrs and not self.attrs:
            return full
        names = {a.name for a in self.attrs}
        for name in attrs:
            if name not in names:
                raise ArgumentError(
                    f"{self.name}: unknown attribute {name!r}", remedy=f"use one of {', '.join(sorted(names))}"
                )
        for attr in self.attrs:
            if attr.name in attrs:
                full[attr.name] = attr.normalize(attrs[attr.name])
            elif attr.required:
                raise ArgumentError(f"{self.name}: attribute {attr.name!r} is missing")
            else:
                full[attr.name] = attr.default
        return full

    def result_types(self, types: Types, attrs: Attrs) -> Types:
        """Run the type rule and return a tuple. ``attrs`` must be normalized."""
        self.check_count(len(types))
        results = self.infer(*types, **attrs)
        return results if isinstance(results, tuple) else (results,)

    def check_count(self, count: int) -> None:
        """Raise ArgumentError for a number of operands that the op does not take."""
        low = len(self.operands) - 1 if self.variadic else len(self.operands)
        if count < low or (count > low and not self.variadic):
            raise ArgumentError(f"{self.name} takes {low} operands, got {count}")

    def evaluate(self, arrays: Sequence[np.ndarray], attrs: Attrs) -> tuple[np.ndarray, ...]:
        """Run the numpy reference and return a tuple of arrays. Overflow and NaN are results here, not warnings."""
        if self.reference is None:
            raise VerifyError(f"op {self.name} has no reference")
        with np.errstate(all="ignore"):
            results = self.reference(*arrays, **attrs)
        return tuple(map(np.asarray, results)) if isinstance(results, tuple) else (np.asarray(results),)

    def __repr__(self) -> str:
        return f"<op {self.name}>"


REGISTRY: dict[str, OpDef] = {}
"""All ops by name."""


def register(op: OpDef) -> OpDef:
    """Add an op. A name can be used once, but a user's module may define its own ops again."""
    existing = REGISTRY.get(op.name)
    if existing is not None and not (op.module and existing.module == op.module):
        owner = f", the first time in {existing.module}" if existing.module else ""
        raise VerifyError(f"op {op.name} is defined twice{owner}", remedy="choose another name")
    REGISTRY[op.name] = op
    if op.module:
        own_ops.NAMES.add(op.name)
    return op


INPUT_CLASSES = ("input", "param", "state", "weight")
"""Classes of graph inputs: data of a call; trainable parameters; state that a call may also write back; params and
states that do not change for many calls, so that values that depend on them alone are computed once and stored."""
