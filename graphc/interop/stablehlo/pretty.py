"""Short forms of StableHLO operations, which ``mlir_module()`` prints, with attributes as in the generic form."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from graphc.base.errors import ParseError
from graphc.interop.stablehlo.attributes import unquoted
from graphc.interop.stablehlo.graph import Block, Operation

if TYPE_CHECKING:
    from graphc.interop.stablehlo.parser import ModuleParser

SHORT_FORMS: Mapping[str, Mapping[str, str]] = {
    "broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "transpose": {"dims": "permutation"},
    "reverse": {"dims": "dimensions"},
    "concatenate": {"dim": "dimension"},
    "iota": {"dim": "iota_dimension"},
    "dynamic_slice": {"sizes": "slice_sizes"},
    "pad": {"low": "edge_padding_low", "high": "edge_padding_high", "interior": "interior_padding"},
    "fft": {"type": "fft_type", "length": "fft_length"},
    "rng_bit_generator": {"algorithm": "rng_algorithm"},
}
"""Names of attributes in short forms, and in the generic form, by operation."""
_WINDOW = {
    "stride": "window_strides",
    "pad": "padding",
    "lhs_dilate": "lhs_dilation",
    "rhs_dilate": "rhs_dilation",
    "reverse": "window_reversal",
}
_FORMAT = re.compile(r"e(\d{1,2})m(\d{1,3})")
_PAIRS = {"batching_dims": "batching", "contracting_dims": "contracting"}
_UNTYPED = frozenset({"return", "stablehlo.return", "func.return", "mhlo.return"})
"""Operations that may have no types."""


class Pretty:
    """Reader of short forms; works at the cursor of its parser."""

    def __init__(self, parser: ModuleParser):
        self.parser = parser
        self.cursor = parser.cursor
        self.attributes = parser.attributes
        self._forms: dict[str, Callable[[str, int], Operation]] = {
            "stablehlo.constant": self._constant,
            "stablehlo.while": self._while,
            "stablehlo.reduce": self._reduce,
            "stablehlo.slice": self._slice,
            "stablehlo.composite": self._composite,
        }

    def operation(self, name: str, line: int) -> Operation:
        """Read an operation after its name. Raises ParseError."""
        form = self._forms.get(name)
        return form(name, line) if form is not None else self._usual(name, line)

    def _usual(self, name: str, line: int) -> Operation:
        """Read operands, words, and attributes such as ``dims = [0]``, in any order, then the types."""
        operands: list[str] = []
        words: list[str] = []
        attributes: dict[str, Any] = {}
        while not self.cursor.at(":"):
            token = self.cursor.peek()
            if token.kind == "value":
                operands.append(self.cursor.next().text)
            elif token.kind == "symbol":
                attributes["callee" if name == "func.call" else "call_target_name"] = self.attributes.symbol()
            elif token.kind == "word" and self.cursor.peek(1).text == "=":
                key = self.cursor.next().text
                self.cursor.expect("=")
                attributes[key] = self.attributes.untyped()
            elif self.cursor.at("(", ")", ","):
                self.cursor.next()
            elif self.cursor.at("{"):
                attributes |= self.attributes.dictionary()
            elif self.cursor.at("[", "<"):
                self.cursor.skip_group()
            elif token.kind == "word" and name not in _UNTYPED:
                words.append(self.cursor.next().text)
            elif name in _UNTYPED:
                return Operation(name, tuple(operands), (), (), {}, (), line)
            else:
                self.cursor.fail("an operand, an attribute or ':'")
        types = self._types(name)
        return Operation(name, tuple(operands), (), types, _renamed(name, attributes, words, line), (), line)

    def _types(self, name: str) -> tuple[Any, ...]:
        """Read the types after the colon and return those of the results."""
        self.cursor.expect(":")
        if name in _UNTYPED:
            self._type_list()
            return ()
        if self.cursor.at("("):
            first: Any = self.attributes.types()
        else:
            first = self._type_list()
        if self.cursor.accept("->"):
            return self.attributes.types()
        one = name in ("stablehlo.select", "stablehlo.clamp") or len(set(first)) == 1
        several = name in ("stablehlo.optimization_barrier", "stablehlo.while")
        return tuple(first) if several or not one else tuple(first[-1:])

    def _type_list(self) -> list[Any]:
        types = [self.attributes.type()]
        while self.cursor.accept(","):
            types.append(self.attributes.type())
        return types

    # Operations with forms of their own

    def _constant(self, name: str, line: int) -> Operation:
        if self.cursor.at("{"):
            self.cursor.skip_group()
        if not self.cursor.at("dense"):
            value = self.attributes.attribute()
            raise ParseError(f"line {line}: {str(value)[:40]} is not the value of a constant")
        value = self.attributes.dense()
        result_type = self.attributes.dense_type
        return Operation(name, (), (), (result_type,), {"value": value}, (), line)

    def _slice(self, name: str, line: int) -> Operation:
        operand = self.parser.operand()
        ranges = self.cursor.list_of(self._range, "[", "]")
        starts, stops, steps = zip(*ranges, strict=True) if ranges else ((), (), ())
        attributes = {"start_indices": starts, "limit_indices": stops, "strides": steps}
        return Operation(name, (operand,), (), self._types(name), attributes, (), line)

    def _range(self) -> tuple[int, int, int]:
        start = self._whole()
        self.cursor.expect(":")
        stop = self._whole()
        return start, stop, self._whole() if self.cursor.accept(":") else 1

    def _whole(self) -> int:
        text = self.cursor.kind("number")
        if not text.isdigit():
            self.cursor.fail("a whole number")
        return int(text)

    def _composite(self, name: str, line: int) -> Operation:
        target = unquoted(self.cursor.kind("string"))
        operation = self._usual(name, line)
        operation.attributes = {**operation.attributes, "name": target}
        return operation

    def _binding(self) -> tuple[str, str]:
        argument = self.parser.operand()
        self.cursor.expect("=")
        return argument, self.parser.operand()

    def _while(self, name: str, line: int) -> Operation:
        bindings = self.cursor.list_of(self._binding, "(", ")")
        types: list[Any] = []
        if bindings:
            self.cursor.expect(":")
            types = self._type_list()
        if len(types) != len(bindings):
            raise ParseError(f"line {line}: while has {len(bindings)} values and {len(types)} types")
        if self.cursor.accept("attributes"):
            self.cursor.skip_group()
        arguments = [(argument, t) for (argument, _), t in zip(bindings, types, strict=True)]
        blocks: list[Block] = []
        for word in ("cond", "do"):
            self.cursor.expect(word)
            blocks.append(self.parser.region(arguments))
        return Operation(name, tuple([v for _, v in bindings]), (), tuple(types), {}, tuple(blocks), line)

    def _initial(self) -> tuple[str, str]:
        self.cursor.expect("(")
        operand = self.parser.operand()
        self.cursor.expect("init")
        self.cursor.expect(":")
        initial = self.parser.operand()
        self.cursor.expect(")")
        return operand, initial

    def _reduce(self, name: str, line: int) -> Operation:
        pairs = [self._initial()]
        while self.cursor.accept(","):
            pairs.append(self._initial())
        applied = self.cursor.kind("word") if self.cursor.accept("applies") else None
        self.cursor.expect("across")
        self.cursor.expect("dimensions")
        self.cursor.expect("=")
        attributes = {"dimensions": self.attributes.attribute()}
        if self.cursor.at("{"):
            attributes |= self.attributes.dictionary()
        types = self._types(name)
        block = self._applied(applied, line, types) if applied is not None else self._reducer(len(pairs))
        operands = (*[x for x, _ in pairs], *[initial for _, initial in pairs])
        return Operation(name, operands, (), types, attributes, (block,), line)

    @staticmethod
    def _applied(applied: str, line: int, types: tuple[Any, ...]) -> Block:
        """Return the region that applies one operation to its two arguments."""
        # NOTE: no value of a text has these names.
        first, second, result = "%(first)", "%(second)", "%(result)"
        operation = Operation(applied, (first, second), (result,), types, {}, (), line)
        return Block([first, second], list(types) * 2, [operation], (result,))

    def _reducer(self, count: int) -> Block:
        """Read a region whose arguments come in pairs, one of the first and one of the second elements."""
        self.cursor.expect("reducer")
        pairs: list[tuple[Any, Any]] = []
        for _ in range(count):
            arguments = self.cursor.list_of(self.parser.argument, "(", ")")
            if len(arguments) != 2:
                self.cursor.fail("two arguments for each operand")
            pairs.append((arguments[0], arguments[1]))
        return self.parser.region([*[a for a, _ in pairs], *[b for _, b in pairs]])


def _renamed(name: str, attributes: dict[str, Any], words: list[str], line: int) -> dict[str, Any]:
    """Return attributes by the names of the generic form."""
    short = name.rpartition(".")[2]
    result: dict[str, Any] = {SHORT_FORMS.get(short, {}).get(key, key): value for key, value in attributes.items()}
    if short == "compare" and words:
        result |= dict(zip(("comparison_direction", "compare_type"), words, strict=False))
    if short == "dot_general":
        result["dot_dimension_numbers"] = _dot_numbers(result, line)
    if short == "convolution":
        window = result.pop("window", {})
        result["dimension_numbers"] = result.pop("dim_numbers", ())
        if isinstance(window, dict):
            result.update({_WINDOW.get(str(key), str(key)): value for key, value in window.items()})
    if short == "reduce_precision":
        match = _FORMAT.fullmatch(str(result.get("format")))
        if match is None:
            raise ParseError(f"line {line}: reduce_precision has no format such as e5m10")
        result |= {"exponent_bits": int(match[1]), "mantissa_bits": int(match[2])}
    return result


def _dot_numbers(attributes: dict[str, Any], line: int) -> dict[str, Any]:
    numbers: dict[str, Any] = {}
    for key, word in _PAIRS.items():
        pair = attributes.pop(key, ((), ()))
        if not isinstance(pair, tuple) or len(pair) != 2 or not all(isinstance(p, tuple) for p in pair):
            raise ParseError(f"line {line}: {key} are not two lists")
        numbers[f"lhs_{word}_dimensions"], numbers[f"rhs_{word}_dimensions"] = pair
    return numbers
