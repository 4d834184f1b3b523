"""Entries of a library as C++, Rust and Go see them: names, documentation, and the equations of named dimensions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from graphc.base.records import dataclass
from graphc.base.sizes.shape_patterns import Number, ShapePatterns
from graphc.base.sizes.size import at, is_size
from graphc.base.sizes.size_terms import Atom, Dimension
from graphc.c_library.c_demo import expression
from graphc.c_library.c_header import signature
from graphc.c_library.functions import SAFE_SIZE, largest_magnitude
from graphc.c_library.identifiers import distinct
from graphc.c_library.plan import EntryPlan, LibraryArgument, LibraryPlan, shape_text


def comment_text(text: str) -> str:
    """Return text that stays inside of a comment: names of a model may hold newlines or ends of comments."""
    return "".join(c if c.isprintable() else " " for c in text).replace("*/", "* /")


def signatures(plan: LibraryPlan) -> list[str]:
    """Return a line for each entry, for comments: ``run(x: f32[1,4]) -> (output: f32[1,2])``."""
    return [comment_text(signature(entry)) for entry in plan.entries]


@dataclass(frozen=True)
class BindingArgument:
    """Input or output of an entry, with its name in the language of the binding."""

    name: str
    plan: LibraryArgument

    @property
    def shape(self) -> tuple[Any, ...]:
        """Return its shape, in the named dimensions of the model."""
        return tuple(self.plan.spec.shape)

    @property
    def rank(self) -> int:
        """Return the number of its dimensions."""
        return len(self.shape)

    @property
    def is_fixed(self) -> bool:
        """Check whether all its sizes are numbers."""
        return self.plan.is_fixed

    @property
    def count(self) -> Any:
        """Return the number of its elements, which may be a symbolic size."""
        return self.plan.count

    @property
    def text(self) -> str:
        """Return its documentation: ``x: f32[batch,28]``, and the model's name for it if that differs."""
        spec = self.plan.spec
        same = self.name == spec.name
        return comment_text(f"{self.name}: {spec.dtype}[{shape_text(spec)}]{'' if same else f' ({spec.name})'}")


@dataclass(frozen=True)
class DimSolution:
    """Equation for a named dimension: ``(size of an axis of an input - rest) / factor``."""

    dimension: Dimension
    input: BindingArgument
    axis: int
    factor: int
    rest: Any
    """Size in dimensions solved earlier."""


@dataclass(frozen=True)
class BindingEntry:
    """Entry of a library with its names in one language."""

    plan: EntryPlan
    inputs: tuple[BindingArgument, ...]
    outputs: tuple[BindingArgument, ...]
    dims: Mapping[Dimension, str]
    """Variable of each named dimension, in the order of the C function."""
    solutions: tuple[DimSolution, ...]
    """Equations of the dimensions that shapes of inputs determine, in the order of solution."""

    @property
    def parameters(self) -> tuple[Dimension, ...]:
        """Return the dimensions that no shape determines; each call passes them."""
        solved = {solution.dimension.name for solution in self.solutions}
        return tuple(d for d in self.dims if d.name not in solved)

    @property
    def sized_inputs(self) -> tuple[BindingArgument, ...]:
        """Return the inputs whose shapes depend on named dimensions."""
        return tuple(a for a in self.inputs if not a.is_fixed)

    @property
    def sized_outputs(self) -> tuple[BindingArgument, ...]:
        """Return the outputs whose shapes depend on named dimensions."""
        return tuple(a for a in self.outputs if not a.is_fixed)

    @property
    def arguments(self) -> tuple[BindingArgument, ...]:
        """Return inputs and outputs in the order of the C function."""
        return (*self.inputs, *self.outputs)

    @property
    def has_fixed_arena(self) -> bool:
        """Check whether the arena has the same size in all calls."""
        return not is_size(self.plan.arena)

    def expression(self, size: Any) -> str:
        """Format a size as an expression of the variables, which is the same in C++, Rust and Go."""
        return expression(size, dict(self.dims))

    def hinted_shape(self, argument: BindingArgument) -> list[int]:
        """Return a shape of an argument that fits the ranges of the dimensions, for examples."""
        hints = {d: d.hint for d in self.dims}
        return [int(at(size, hints)) for size in argument.shape]

    def unsafe_sizes(self) -> Iterator[Any]:
        """Yield the sizes of arguments that may exceed 64 bits within the ranges of the dimensions."""
        sizes = [size for a in (*self.sized_inputs, *self.sized_outputs) for size in (*a.shape, a.count)]
        yield from (size for size in sizes if is_size(size) and largest_magnitude(size) > SAFE_SIZE)

    def documentation(self) -> list[str]:
        """Return lines that describe the arguments, dimensions, assumptions and states of a call."""
        lines = [f"- input {a.text}" for a in self.inputs] + [f"- output {a.text}" for a in self.outputs]
        solved = {s.dimension.name: f"dimension {s.axis} of {s.input.name}" for s in self.solutions}
        for dimension, name in self.dims.items():
            origin = solved.get(dimension.name)
            follows = f", from {origin}" if origin else ", passed by the caller"
            lines.append(f"- size {name}: {dimension.low} to {dimension.high}{follows}")
        lines += [comment_text(f"- where {assumed}") for assumed in self.plan.assumptions]
        writes = self.plan.writes
        return [*lines, "- " + ("writes states of the model" if writes else "writes no states")]


def binding_entry(entry: EntryPlan, reserved: Iterable[str]) -> BindingEntry:
    """Return an entry with identifiers outside of ``reserved``, which are keywords and variables of the language."""
    names = distinct([*entry.dim_identifiers, *(a.identifier for a in entry.arguments)], reserved)
    dims = dict(zip(entry.dims, names, strict=False))
    arguments = [BindingArgument(n, a) for n, a in zip(names[len(dims) :], entry.arguments, strict=True)]
    inputs, outputs = arguments[: len(entry.inputs)], arguments[len(entry.inputs) :]
    return BindingEntry(entry, tuple(inputs), tuple(outputs), dims, tuple(_solutions(entry, inputs)))


def _solutions(entry: EntryPlan, inputs: Sequence[BindingArgument]) -> Iterator[DimSolution]:
    for number, axis, dimension, factor, rest in shape_equations(entry):
        yield DimSolution(dimension, inputs[number], axis, factor, rest)


def shape_equations(entry: EntryPlan) -> Iterator[tuple[int, int, Dimension, int, Any]]:
    """Yield number and axis of an input, dimension, factor and rest for each dimension that a shape determines.

    They are in the order of solution; ``DimSolution`` documents the equation.
    """
    arguments = [*entry.inputs, *entry.numbers]
    patterns = ShapePatterns([a.spec.pattern for a in arguments], [a.spec.name for a in arguments])
    for (number, axis, _), dimension, factor, rest in patterns.steps:
        if type(patterns.shapes[number]) is not Number:
            yield number, axis, dimension, factor, rest


@dataclass(frozen=True)
class SizeDialect:
    """Syntax of a language in the function that computes the sizes of a call."""

    axis: Callable[[str, int], str]
    """Format the size of an axis of an input as a 64-bit integer."""
    define: Callable[[str, str], str]
    """Format the definition of a variable."""
    fails: Callable[[str, str], list[str]]
    """Format lines that return an error if a condition holds; the error is ``"size"``, or the name of an input whose
    shape is wrong."""
    real: Callable[[str], str]
    """Format the conversion of a 64-bit integer to a double."""


def size_lines(entry: BindingEntry, dialect: SizeDialect) -> list[str]:
    """Return the lines that solve the named dimensions and check them and the shapes of the inputs."""
    lines = [line for d in entry.parameters for line in _range_check(entry, d, dialect)]
    for step in entry.solutions:
        size, rest = dialect.axis(step.input.name, step.axis), entry.expression(step.rest)
        numerator = size if rest == "0" else f"({size} - ({rest}))"
        value = numerator if step.factor == 1 else f"{numerator} / {step.factor}"
        lines.append(dialect.define(entry.dims[step.dimension], value))
        lines += _range_check(entry, step.dimension, dialect)
    for bound in dict.fromkeys(magnitude(size, entry.dims, dialect.real) for size in entry.unsafe_sizes()):
        lines += dialect.fails(f"{bound} > {SAFE_SIZE}", "size")
    solved = {(s.input.name, s.axis) for s in entry.solutions if s.factor == 1 and entry.expression(s.rest) == "0"}
    for argument in entry.sized_inputs:
        for axis, size in enumerate(argument.shape):
            if (argument.name, axis) not in solved:
                actual = dialect.axis(argument.name, axis)
                lines += dialect.fails(f"{actual} != {entry.expression(size)}", argument.name)
    return lines


def _range_check(entry: BindingEntry, dimension: Dimension, dialect: SizeDialect) -> list[str]:
    name = entry.dims[dimension]
    return dialect.fails(f"{name} < {dimension.low} || {name} > {dimension.high}", "size")


def magnitude(size: Any, names: Mapping[Dimension, str], cast: Callable[[str], str]) -> str:
    """Format an upper bound, as a double, of a size and all its intermediate values; ``cast`` converts a variable."""
    if not is_size(size):
        return f"{abs(int(size))}.0"
    products = []
    for monomial, coefficient in size.terms:
        atoms = [_atom(atom, names, cast) for atom, power in monomial for _ in range(power)]
        products.append(" * ".join([f"{abs(coefficient)}.0", *atoms]))
    return " + ".join(products)


def _atom(atom: Atom, names: Mapping[Dimension, str], cast: Callable[[str], str]) -> str:
    return cast(names[atom]) if isinstance(atom, Dimension) else f"({magnitude(atom.operand, names, cast)})"


@dataclass(frozen=True)
class MethodNames:
    """Names of what a binding defines for an entry."""

    run: str
    sizes: str
    """Function that computes the sizes of a call."""
    record: str
    """Type of its result."""
    outputs: str
    """Type of the results of a call, where calls return them."""


def method_names(
    plan: LibraryPlan, reserved: Iterable[str], suffixes: Sequence[str] = ("_sizes",)
) -> list[MethodNames]:
    """Return names for each entry. Names of an entry with a suffix are not names of another entry."""
    names = [entry.name for entry in plan.entries]
    methods = distinct(names, (*reserved, *(f"{name}{suffix}" for name in names for suffix in suffixes)))
    types = distinct((f"{camel_case(name)}{end}" for name in methods for end in ("Sizes", "Outputs")), reserved)
    pairs = zip(methods, types[::2], types[1::2], strict=True)
    return [MethodNames(method, f"{method}_sizes", sizes, outputs) for method, sizes, outputs in pairs]


def camel_case(name: str) -> str:
    """Convert ``train_step`` to ``TrainStep``."""
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))


def helper_functions(code: str, functions: Mapping[str, str]) -> str:
    """Return the definitions of the functions that ``code`` calls."""
    return "".join(text for name, text in functions.items() if re.search(rf"\b{name}\(", code))


def largest_fixed_arena(plan: LibraryPlan) -> int:
    """Return the size in bytes of an arena for all entries whose arena has a fixed size."""
    return max((int(entry.arena) for entry in plan.entries if not is_size(entry.arena)), default=0)
