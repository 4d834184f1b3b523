"""Op definitions: attributes, traits, rules, and the registry that everything else derives from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, Flag, auto
from typing import Any

import numpy as np

from graphc.base import own_ops
from graphc.base.dtypes import DType, dtype_of
from graphc.base.errors import ArgumentError, AttributeValueError, GraphcError, VerifyError
from graphc.base.sizes.size import SizeNumber, is_size
from graphc.ir.types import TensorType

Attrs = dict[str, Any]
Types = tuple[TensorType, ...]


class Trait(Flag):
    """What passes may assume about an op. Without PURE a node is never removed, merged or moved past an effect."""

    NONE = 0
    PURE = auto()
    """The results depend on operands and attributes only, and nothing else happens."""
    ELEMENTWISE = auto()
    """Result element i depends on element i of each operand (after numpy broadcasting)."""
    COMMUTATIVE = auto()
    """The first two operands may be exchanged."""
    VIEW = auto()
    """Result elements are operand elements at other indices (or a padding constant); lowering is index arithmetic."""
    REDUCTION = auto()
    """One operand, some axes are folded by an associative operation."""
    CONTRACTION = auto()
    """A sum of products over reduced axes: matrix product, convolution and their gradients."""
    GENERATOR = auto()
    """No tensor operand is read at element granularity (iota, constant, random bits): cheap to recompute."""
    MATERIALIZE = auto()
    """Must be computed by a kernel of its own; never inlined into a consumer."""
    STORES_ONCE = auto()
    """``lower_nest`` stores every element of the result once: what follows element by element may be done there."""
    RANDOM = auto()
    """The result is random numbers, which differ between the entries of a batch where that is wanted."""
    EFFECT = auto()
    """Writes state or is observed from outside; kept in order with other effects."""
    CHECK = auto()
    """The result is true when the call must stop before it writes to any state; nothing reads it."""
    STATE_READ = auto()
    """Operand 0 is a param or state argument of the graph, and the result is its content at entry."""
    STATE_WRITE = auto()
    """Operand 0 is a param or state argument of the graph, and result 0 is its content after the call."""
    IDENTITY = auto()
    """The results are the operands, bit by bit: the op means something to gradients or to order only."""
    REINTERPRETS = auto()
    """The result lies in memory as the one operand does, byte for byte: complex numbers as pairs, or pairs as these."""
    CONVERSION = auto()
    """Result element i is element i of the one operand as the element type that the attribute ``dtype`` names."""
    LOOP = auto()
    """Applies the graph in its attribute ``body`` in a row, ``length`` times, backwards where ``reverse`` says so. The
    first ``carries`` operands are what the first step takes over and the first results what the last one leaves; of
    the next ``sequences`` operands each step takes a slice; the others are the same for all. See ops.loop."""
    BRANCH = auto()
    """Applies one of the graphs in its attributes ``then`` and ``otherwise`` to the operands behind the first, which is
    the condition. See ops.branch."""
    WHILE = auto()
    """Applies the graph in its attribute ``body`` as long as that in ``test`` gives true. See ops.while_loop."""
    RECOMPUTED = auto()
    """The result may be written to before a backward pass, whose rules then get it computed again from the operands."""
    WAITS = auto()
    """The result is operand 0, of which nothing is computed before operand 1 is known; that one is not read."""
    HOST = auto()
    """A call of a Python function, which the attribute ``name`` names: it gets the operands and gives the results.
    Operand 0 and result 0 are tokens: the order of such calls is that of the tokens."""
    ORDERED = auto()
    """Calls Python where the attribute ``ordered`` says so. Then operand 0 and result 0 are tokens, as those of HOST,
    and it is an effect."""


class ZeroSign(Enum):
    """What a result shows of the sign of a zero among the elements of an operand."""

    SEEN = auto()
    """More than the sign of a zero: 1 / x is an infinity of that sign."""
    KEPT = auto()
    """At most signs of zeros in the result, as views and sums of two show."""
    HIDDEN = auto()
    """Nothing: both zeros give the same."""


class Dims(Enum):
    """What the dimensions of an operand or a result are."""

    ANY = auto()
    IMAGE = auto()
    """Image of a batch, channel, then those that a window slides over."""
    WINDOW = auto()
    """Channel of the result, channel of the operand, then places in a window: weights of a convolution."""
    SAME = auto()
    """As those of all others that are SAME."""


class OnParts(Enum):
    """How an op on complex numbers follows from itself on their real and imaginary parts."""

    EACH = auto()
    """The real part of the result is that of real parts, the imaginary part that of imaginary parts."""
    BILINEAR = auto()
    """Linear in each of its two operands: the result is (a + bi)(c + di) with the op for the products."""


@dataclass(frozen=True)
class ImageRule:
    """What the dimensions of an op on images are."""

    operands: tuple[Dims, ...]
    result: Dims


@dataclass(frozen=True)
class Halo:
    """What a view puts around its operand: elements before and after it along each dimension, all of one value."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    value: bool | int | float


Bounds = tuple[int, int]
"""The smallest and the largest element of an integer tensor; bools count as 0 and 1."""


@dataclass(frozen=True)
class Attr:
    """One attribute of an op."""

    name: str
    kind: str
    """``int``, ``float``, ``bool``, ``str``, ``dtype``, ``ints`` a tuple of ints, ``pairs`` a tuple of int tuples (an
    int may be a size that is known at run time), ``graph`` a sub-graph, ``array`` a constant numpy array (read-only),
    ``scalar`` a Python bool, int or float."""
    doc: str = ""
    default: Any = None
    required: bool = True
    """When False, ``default`` is used (and the attribute is still stored and printed)."""

    def normalize(self, value: Any) -> Any:
        """The canonical, hashable form of ``value``; raises AttributeValueError when its kind is wrong."""
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
    """Sample inputs of an op, from which its tests are made."""

    operands: tuple[np.ndarray, ...]
    attrs: Attrs = field(default_factory=dict)
    differentiable: bool = True
    """False where the point is a kink or the operands are integers: no finite-difference check."""


@dataclass(frozen=True)
class ErrorSample:
    """A wrong application: operand types and attributes, and a fragment that the error message must contain."""

    types: Types
    message: str
    attrs: Attrs = field(default_factory=dict)
    error: type[GraphcError] = GraphcError


@dataclass(frozen=True, eq=False)
class OpDef:
    """All that is known about one op. Identity is equality."""

    name: str
    doc: str
    operands: tuple[str, ...]
    """Operand names; a last name that starts with ``*`` stands for any number of operands."""
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
    """Forward rule of an op with one result where it is not what follows from ``vjp``: ``jvp(tangents, result,
    *operands, **attrs)`` -> tangent of the result; a tangent is None for an operand without one."""
    lower: Callable[..., Any] | None = None
    """Kernel rule: ``lower(c, index, *operands, **attrs)`` -> scalar of the result at ``index`` (kernel.lowering)."""
    lower_nest: Callable[..., None] | None = None
    """Kernel rule for ops that are no function of one result element (scatter, scan): emits a whole nest."""
    updates: int | None = None
    """For ops with ``lower_nest`` whose result is an operand with some elements replaced: the number of that operand.
    The rule stores what it replaces only; the rest is copied before, unless the result takes over the memory."""
    complex: OnParts | Callable[..., Any] | None = None
    """Rule for complex operands, written in ops: ``complex(*operands, **attrs)`` -> result, where complex operands and
    results are ``ops.parts_of_complex.Complex``, which operations on them take too; or how it follows from the op. VIEW
    ops that have none treat the parts alike."""
    decompose: Callable[..., Any] | None = None
    """``decompose(*operands, **attrs)`` -> result(s) in simpler ops, or None when the application is simple enough."""
    traits: Trait = Trait.NONE
    alias: Callable[..., Any] | None = None
    """For ops whose result is a view of operand 0 where memory allows it: ``alias(operand, value, **attrs)``, written
    in ops, is the operand after ``value`` was written to the result. Raises GradientError where elements of the result
    share memory. The results of other ops have memory of their own."""
    batch: Callable[..., Any] | None = None
    """Batching rule: ``batch(op, size, operands, attrs)`` -> what ``size`` applications give, put together along a
    first dimension, or None for one after the other; see ops.batch. ELEMENTWISE ops need none."""
    cost: int | None = None
    """Vector operations per element of the result; None for what follows from the scalar operations of ``lower`` (see
    fusion.price), which count those that are expanded into many."""
    zero_sign: ZeroSign | tuple[ZeroSign, ...] = ZeroSign.SEEN
    """What the results show of signs of zeros in all operands, or in each; see ``sign_of_zero``."""
    bounds: Callable[[Sequence[Bounds], Types, Attrs], Bounds | None] | None = None
    """Range rule for integers and bools: ``bounds(bounds of the operands, their types, attrs)`` -> what the elements of
    the result lie within as if integers had no width, or None where nothing is known beyond their type."""
    image: ImageRule | None = None
    """What the dimensions of operands and result are, for ops on images; see ``image_rule``."""
    permutes: Callable[[Attrs], tuple[int, ...]] | None = None
    """For views that only reorder dimensions: for each dimension of the result its dimension in the operand."""
    halo: Callable[[Attrs], Halo | None] | None = None
    """For views that put a halo around their operand, which lies in the result as it is; None where they do more."""
    parts: Callable[[Types, Attrs], tuple[tuple[int, ...], ...]] | None = None
    """For views whose result consists of their operands, each as it is, and of no more: where each of them begins."""
    multiply_adds: Callable[[Types, Types, Attrs], int] | None = None
    """For CONTRACTION: multiply-adds of an application, from the types of operands and results."""
    pairs: Callable[[Types, Attrs], tuple[int, int] | None] | None = None
    """For CONTRACTION of pairs of bf16 too: along which dimensions of the operands neighbours become pairs; None where
    that cannot be."""
    runs: Callable[[Attrs], tuple[Any, int]] | None = None
    """For ops that apply a sub-graph: the sub-graph, and how many times it is applied."""
    samples: Callable[[], Sequence[Sample]] | None = None
    error_samples: tuple[ErrorSample, ...] = ()
    module: str = ""
    """The module of a user's file that defined the op; empty for the ops of graphc."""

    def has(self, trait: Trait) -> bool:
        """True when the op has every trait in ``trait``."""
        # NOTE: on the integers, because the operators of Flag take ten times as long.
        wanted = trait._value_
        return self.traits._value_ & wanted == wanted

    def has_any(self, traits: Trait) -> bool:
        """True when the op has some trait of ``traits``."""
        return self.traits._value_ & traits._value_ != 0

    @property
    def detaches(self) -> bool:
        """True for a view through which no gradient flows to the operand."""
        return self.alias is not None and self.vjp is None

    def put_back(self, operand: Any, value: Any, **attrs: Any) -> Any:
        """The operand of a view after ``value`` was written to the result."""
        assert self.alias is not None, f"{self.name} makes no view"
        return self.alias(operand, value, **attrs)

    def sign_of_zero(self, number: int) -> ZeroSign:
        """What the results show of the sign of a zero in operand ``number``. Contractions hide it, for their sums start
        at 0, to which either zero may be added; views keep it."""
        if self.has(Trait.CONTRACTION):
            return ZeroSign.HIDDEN
        if self.has(Trait.VIEW):
            return ZeroSign.KEPT
        return self.zero_sign[number] if isinstance(self.zero_sign, tuple) else self.zero_sign

    def image_rule(self, count: int) -> ImageRule:
        """What the dimensions of ``count`` operands and the result are; ELEMENTWISE ops have the same everywhere."""
        if self.image is not None:
            return self.image
        dims = Dims.SAME if self.has(Trait.ELEMENTWISE) else Dims.ANY
        return ImageRule((dims,) * count, dims)

    @property
    def variadic(self) -> bool:
        """True when the op takes any number of operands."""
        return bool(self.operands) and self.operands[-1].startswith("*")

    def normalize(self, attrs: Mapping[str, Any]) -> Attrs:
        """Attributes with defaults filled in, in declared order; raises ArgumentError for unknown or missing ones."""
        known = {a.name for a in self.attrs}
        for name in attrs:
            if name not in known:
                raise ArgumentError(f"{self.name}: unknown attribute {name!r}", remedy=f"one of {sorted(known)}")
        full: Attrs = {}
        for attr in self.attrs:
            if attr.name in attrs:
                full[attr.name] = attr.normalize(attrs[attr.name])
            elif attr.required:
                raise ArgumentError(f"{self.name}: attribute {attr.name!r} is missing")
            else:
                full[attr.name] = attr.default
        return full

    def result_types(self, types: Types, attrs: Attrs) -> Types:
        """Runs the type rule; always a tuple. ``attrs`` must be normalized."""
        self._check_count(len(types))
        results = self.infer(*types, **attrs)
        return results if isinstance(results, tuple) else (results,)

    def _check_count(self, count: int) -> None:
        low = len(self.operands) - 1 if self.variadic else len(self.operands)
        if count < low or (count > low and not self.variadic):
            raise ArgumentError(f"{self.name} takes {low} operands, got {count}")

    def evaluate(self, arrays: Sequence[np.ndarray], attrs: Attrs) -> tuple[np.ndarray, ...]:
        """Runs the numpy reference; always a tuple of arrays. Overflow and NaN are results here, not warnings."""
        if self.reference is None:
            raise VerifyError(f"op {self.name} has no reference")
        with np.errstate(all="ignore"):
            results = self.reference(*arrays, **attrs)
        return tuple(map(np.asarray, results)) if isinstance(results, tuple) else (np.asarray(results),)

    def __repr__(self) -> str:
        return f"<op {self.name}>"


REGISTRY: dict[str, OpDef] = {}
"""Every op by name."""


def register(op: OpDef) -> OpDef:
    """Adds an op. A name can be taken once, but a module of a user may define its own ops again."""
    known = REGISTRY.get(op.name)
    if known is not None and not (op.module and known.module == op.module):
        owner = f", the first time in {known.module}" if known.module else ""
        raise VerifyError(f"op {op.name} is defined twice{owner}", remedy="another name")
    REGISTRY[op.name] = op
    if op.module:
        own_ops.NAMES.add(op.name)
    return op


INPUT_CLASSES = ("input", "param", "state", "weight")
"""Classes of graph inputs: data of a call; trainable parameters; state that a call may also write back; params and
states that stay as they are for many calls, so that what depends on them alone is computed once and kept."""
