"""Types and attributes of MLIR text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.base.dtypes import BY_NAME, DType, bfloat16, bool_
from graphc.base.errors import ParseError, UnsupportedError
from graphc.files.container import MAX_BYTES
from graphc.files.manifest import MAX_RANK
from graphc.interop.stablehlo.graph import Dense, FunctionType, Symbol
from graphc.interop.stablehlo.lexer import Cursor
from graphc.ir.types import TensorType

MOST_NESTED = 64
"""Nesting levels of attributes."""
_ELEMENTS: dict[str, DType] = {
    **{name: BY_NAME[name] for name in ("f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8")},
    **{f"u{name}": BY_NAME[name] for name in ("i64", "i32", "i16", "i8")},
    **{f"ui{bits}": BY_NAME[f"u{bits}"] for bits in (8, 16, 32, 64)},
    "i1": bool_,
    "complex<f32>": BY_NAME["c64"],
    "complex<f64>": BY_NAME["c128"],
    "index": BY_NAME["i64"],
}
_TENSOR = re.compile(r"((?:[\d?]+x)*)(.+)", re.DOTALL)
_WORDS: dict[str, Any] = {"true": True, "false": False, "unit": True, "inf": np.inf, "nan": np.nan}


class AttributeReader:
    """Reader of types and attributes at a cursor."""

    def __init__(self, cursor: Cursor):
        self.cursor = cursor
        self.aliases: dict[str, Any] = {}
        self.dense_type: TensorType | None = None
        """Type of the last constant."""
        self._depth = 0

    # Types

    def type(self) -> Any:
        """Read a type: a TensorType, a FunctionType, or the text of another type."""
        cursor = self.cursor
        token = cursor.peek()
        if token.kind == "tensor":
            cursor.next()
            return tensor_type(token.text[7:-1], token.line)
        if cursor.at("("):
            return self.function_type()
        if token.kind == "alias":
            cursor.next()
            if cursor.at("<"):
                cursor.skip_group()
            return self.aliases.get(token.text, token.text)
        if token.kind != "word":
            cursor.fail("a type")
        cursor.next()
        name = token.text
        if cursor.accept("<"):
            if name != "complex":
                raise UnsupportedError(f"graphc has no values of the type {name}", where=f"line {token.line}")
            name = f"complex<{cursor.kind('word')}>"
            cursor.expect(">")
        return TensorType(_ELEMENTS[name]) if name in _ELEMENTS else name

    def types(self) -> tuple[Any, ...]:
        """Read one type, or a list of types in brackets."""
        if self.cursor.at("("):
            return tuple(self.cursor.list_of(self._annotated_type, "(", ")"))
        return (self.type(),)

    def _annotated_type(self) -> Any:
        result = self.type()
        if self.cursor.at("{"):
            self.cursor.skip_group()
        return result

    def function_type(self) -> FunctionType:
        """Read the types of arguments and results."""
        arguments = self.types()
        self.cursor.expect("->")
        return FunctionType(arguments, self.types())

    # Attributes

    def attribute(self) -> Any:
        """Read the value of an attribute. Raises ParseError, UnsupportedError."""
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise ParseError(f"line {self.cursor.line}: attributes are nested more than {MOST_NESTED} levels deep")
        value = self._attribute()
        self._depth -= 1
        return value

    def _attribute(self) -> Any:
        cursor = self.cursor
        token = cursor.peek()
        reader = self._readers().get(token.kind if token.kind != "mark" else token.text)
        if reader is not None:
            return reader()
        if token.kind == "word":
            return self._word()
        if token.kind in ("tensor",):
            return self.type()
        cursor.fail("an attribute")

    def _readers(self) -> dict[str, Callable[[], Any]]:
        return {
            "number": self._number,
            "string": lambda: unquoted(self.cursor.next().text),
            "symbol": self.symbol,
            "alias": self._dialect_attribute,
            "[": self._list,
            "{": self.dictionary,
            "(": self.function_type,
        }

    def symbol(self) -> Symbol:
        """Read the name of a function, with or without quotes."""
        name = self.cursor.kind("symbol")[1:]
        return Symbol(unquoted(name) if name.startswith('"') else name)

    def untyped(self) -> Any:
        """Read an attribute of a short form, which the operation's types follow: numbers have no type."""
        token = self.cursor.peek()
        if token.kind == "number":
            return _number(self.cursor.next().text, token.line)
        if token.text in ("true", "false"):
            return self.cursor.next().text == "true"
        return self.attribute()

    def _number(self) -> int | float:
        token = self.cursor.next()
        value = _number(token.text, token.line)
        if self.cursor.accept(":"):
            self.type()
        return value

    def _list(self) -> tuple[Any, ...]:
        """Read a list, and further ones that ``x`` and ``->`` join to it (dimension numbers)."""
        lists = [tuple(self.cursor.list_of(self.attribute, "[", "]"))]
        while self.cursor.at("x", "->") and self.cursor.peek(1).text == "[":
            self.cursor.next()
            lists.append(tuple(self.cursor.list_of(self.attribute, "[", "]")))
        return lists[0] if len(lists) == 1 else tuple(lists)

    def dictionary(self) -> dict[str, Any]:
        """Read attributes by name in braces. A name without a value is true."""
        return dict(self.cursor.list_of(self._entry, "{", "}"))

    def _entry(self) -> tuple[str, Any]:
        name = self.cursor.kind("word", "string")
        name = unquoted(name) if name.startswith('"') else name
        return name, self.attribute() if self.cursor.accept("=") else True

    def _dialect_attribute(self) -> Any:
        """Read ``#name``, ``#stablehlo.dot<a = [0]>`` as a dictionary, or ``#stablehlo<kind VALUE>`` as its value."""
        name = self.cursor.next().text
        if not self.cursor.at("<"):
            if name not in self.aliases:
                raise ParseError(f"line {self.cursor.line}: the attribute {name} is not defined")
            return self.aliases[name]
        if not name.startswith(("#stablehlo", "#chlo", "#mhlo")):
            self.cursor.skip_group()
            return name
        return self._parameters()

    def _parameters(self) -> Any:
        self.cursor.expect("<")
        named: dict[str, Any] = {}
        value: Any = True
        while not self.cursor.accept(">"):
            if self.cursor.peek(1).text == "=":
                key, value = self._entry()
                named[key] = value
                value = named
            elif self.cursor.peek().kind == "word" and self.cursor.peek(1).kind == "word":
                self.cursor.next()
            else:
                value = self.attribute()
            if not self.cursor.at(">"):
                self.cursor.accept(",")
        return value

    def _word(self) -> Any:
        name = self.cursor.peek().text
        if name == "dense":
            return self.dense()
        if name == "array":
            return self._array()
        if name in ("dense_resource", "sparse", "affine_map", "opaque", "dense_stride"):
            raise UnsupportedError(
                f"graphc does not read attributes of the form {name}",
                where=f"line {self.cursor.line}",
                remedy="print the module with all constants in the text: exported.mlir_module()",
            )
        if name == "complex" or name in _ELEMENTS:
            return self.type()
        self.cursor.next()
        value = _WORDS.get(name, name)
        if name in ("true", "false") and self.cursor.accept(":"):
            self.type()
        return value

    def _array(self) -> tuple[Any, ...]:
        self.cursor.next()
        self.cursor.expect("<")
        self.cursor.kind("word")
        if self.cursor.accept(":"):
            elements = [self.attribute()]
            while self.cursor.accept(","):
                elements.append(self.attribute())
            self.cursor.expect(">")
            return tuple(elements)
        self.cursor.expect(">")
        return ()

    # Constants

    def dense(self) -> Dense:
        """Read the elements of a constant: one for all, nested lists, or a string of hexadecimal digits."""
        line = self.cursor.next().line
        self.cursor.expect("<")
        literal: Any = [] if self.cursor.at(">") else self._literal()
        self.cursor.expect(">")
        self.cursor.expect(":")
        result_type = self.type()
        if not isinstance(result_type, TensorType):
            self.cursor.fail("the type of a tensor")
        self.dense_type = result_type
        return elements_of(literal, result_type, line)

    def _literal(self) -> Any:
        cursor = self.cursor
        if cursor.at("["):
            self._depth += 1
            if self._depth > MOST_NESTED:
                cursor.fail("fewer nested lists")
            elements = cursor.list_of(self._literal, "[", "]")
            self._depth -= 1
            return elements
        if cursor.at("("):
            return tuple(cursor.list_of(self._literal, "(", ")"))
        if cursor.peek().kind not in ("number", "word", "string"):
            cursor.fail("a constant")
        return cursor.next().text


def tensor_type(text: str, line: int) -> TensorType:
    """Return the type with this text between the angle brackets of ``tensor<...>``.

    Raises UnsupportedError for sizes that only calls know and element types that graphc lacks; ParseError.
    """
    match = _TENSOR.fullmatch(text.split(",")[0].strip())
    if match is None:
        raise ParseError(f"line {line}: tensor<{text[:40]}> is not a type")
    sizes, element = match.groups()
    if "?" in sizes or element.startswith("*"):
        raise UnsupportedError(
            f"tensor<{text[:40]}> has a size that the text does not fix",
            where=f"line {line}",
            remedy="export with arguments of fixed sizes, one program for each",
        )
    if element not in _ELEMENTS:
        raise UnsupportedError(f"graphc has no element type {element[:40]}", where=f"line {line}")
    shape = tuple(map(int, sizes.split("x")[:-1]))
    result = TensorType(_ELEMENTS[element], shape)
    if len(shape) > MAX_RANK or result.nbytes > MAX_BYTES:
        raise ParseError(f"line {line}: tensor<{text[:40]}> is too large")
    return result


def elements_of(literal: Any, result_type: TensorType, line: int) -> Dense:
    """Return the constant of a literal: a text, or nested lists of texts and of pairs of texts. Raises ParseError."""
    dtype, shape = result_type.dtype, result_type.shape
    layout = np.dtype(np.float32) if dtype is bfloat16 else dtype.numpy
    try:
        if isinstance(literal, str) and literal.startswith('"'):
            return Dense(_of_bits(bytes.fromhex(literal[3:-1]), result_type, layout).reshape(shape), dtype)
        if not isinstance(literal, list):
            return Dense(np.broadcast_to(np.array(_element(literal, dtype), layout), shape), dtype)
        flat: list[Any] = []
        _flatten(literal, shape, flat)
        return Dense(np.array([_element(e, dtype) for e in flat], layout).reshape(shape), dtype)
    except (ValueError, OverflowError, TypeError) as error:
        raise ParseError(f"line {line}: the elements do not fit {result_type}: {error}"[:300]) from None


def _of_bits(data: bytes, result_type: TensorType, layout: np.dtype) -> np.ndarray:
    dtype = result_type.dtype
    if dtype is bfloat16:
        return (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32)
    if dtype is bool_:
        # NOTE: older versions of MLIR pack eight booleans into a byte.
        stored = np.frombuffer(data, np.uint8)
        packed = stored.size != result_type.size
        return (np.unpackbits(stored, bitorder="little")[: result_type.size] if packed else stored) != 0
    return np.frombuffer(data, layout)


def _flatten(literal: Any, shape: tuple[int, ...], flat: list[Any]) -> None:
    if not shape:
        flat.append(literal)
        return
    if not isinstance(literal, list) or (len(literal) != shape[0] and 0 not in shape):
        raise ValueError("a list has another length")
    for element in literal:
        _flatten(element, shape[1:], flat)


def _element(text: Any, dtype: DType) -> Any:
    """Return one element. A hexadecimal number holds the bits of a real number."""
    if isinstance(text, tuple):
        if not dtype.is_complex or len(text) != 2:
            raise ValueError("a pair of numbers")
        return complex(*[_element(part, dtype.real) for part in text])
    if isinstance(text, list) or dtype.is_complex:
        raise ValueError("expected one number" if isinstance(text, list) else "expected a pair of numbers")
    if dtype is bool_:
        return {"true": True, "false": False, "1": True, "0": False, "-1": True}[text] if text in _BOOLS else _bad(text)
    if dtype.is_integer:
        return int(text, 16 if "0x" in text else 10)
    if text.startswith("0x"):
        bits = int(text, 16)
        if dtype is bfloat16:
            return np.array(bits << 16, np.uint32).view(np.float32)[()]
        return np.array(bits, f"u{dtype.itemsize}").view(dtype.numpy)[()]
    return float(text)


_BOOLS = ("true", "false", "1", "0", "-1")


def _bad(text: str) -> Any:
    raise ValueError(f"{text[:40]!r} is not true or false")


def _number(text: str, line: int) -> int | float:
    try:
        return int(text, 16) if "0x" in text else int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError as error:
        raise ParseError(f"line {line}: {error}"[:200]) from None


def unquoted(text: str) -> str:
    """Return the content of a string in quotes, with escapes of hexadecimal digits and single characters."""
    plain = {"n": "\n", "t": "\t"}
    content = text[1:-1]
    if "\\" not in content:
        return content
    return re.sub(r"\\([0-9A-Fa-f]{2}|.)", lambda m: _unescaped(m[1], plain), content, flags=re.DOTALL)


def _unescaped(code: str, plain: dict[str, str]) -> str:
    return chr(int(code, 16)) if len(code) == 2 else plain.get(code, code)
