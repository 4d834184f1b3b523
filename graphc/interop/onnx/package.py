"""The ``onnx`` package (extra ``onnx``): the file format, and operator schemas by version."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

from graphc.base.errors import ArgumentError
from graphc.base.installation import install_command
from graphc.interop.onnx.elements import BY_TYPE
from graphc.interop.onnx.graph import Source


def onnx_package() -> Any:
    """Return the ``onnx`` package. Raises ArgumentError where it is not installed."""
    try:
        import onnx
        import onnx.helper
    except ImportError:
        remedy = f"install onnx: {install_command('onnx')}"
        raise ArgumentError("ONNX models need the package onnx", remedy=remedy) from None
    return onnx


class Schema(NamedTuple):
    """Schema of one version of an operator."""

    inputs: tuple[tuple[str, str, bool], ...]
    """Name, type, and whether it is variadic."""
    outputs: tuple[tuple[str, str, bool], ...]
    defaults: Mapping[str, Any]
    """AttributeProtos by name."""
    attributes: Mapping[str, tuple[int, bool]]
    """Type code (as in ``AttributeProto``) by name, and whether the attribute is required."""
    counts: tuple[int, int, int, int]
    """Minimum and maximum number of inputs, minimum and maximum number of outputs."""
    needed: frozenset[int]
    """Indices of the inputs that cannot be left out."""
    raw: Any

    @property
    def function(self) -> Any:
        """The FunctionProto that computes the operator, or None."""
        return self.raw.function_body if self.raw.has_function else None

    def types(self, inputs: int, outputs: int) -> tuple[Source, ...]:
        """Return the source of each result's element type, for these counts of inputs and outputs."""
        names = _spread(self.inputs, inputs)
        return tuple([_source(text, names) for text in _spread(self.outputs, outputs)])


def _spread(parameters: tuple[tuple[str, str, bool], ...], count: int) -> list[str]:
    """Return the types of ``count`` parameters. The last one may be variadic."""
    types = [text for _, text, _ in parameters[:count]]
    if parameters and parameters[-1][2]:
        types += [parameters[-1][1]] * (count - len(types))
    return types


def _source(text: str, inputs: list[str]) -> Source:
    if text.startswith("tensor("):
        return BY_TYPE.get(text)
    return next((i for i, input_type in enumerate(inputs) if input_type == text), None)


@functools.lru_cache(maxsize=4096)
def schema(domain: str, op: str, version: int) -> Schema | None:
    """Return the schema of an operator in a version of its domain, or None where it has none."""
    definitions = onnx_package().defs
    try:
        raw = definitions.get_schema(op, version, domain)
    except (definitions.SchemaError, TypeError):  # NOTE: TypeError for numbers and strings that C++ rejects.
        return None
    many = definitions.OpSchema.FormalParameterOption.Variadic
    single = definitions.OpSchema.FormalParameterOption.Single
    defaults = {n: a.default_value for n, a in raw.attributes.items()}
    return Schema(
        tuple([(p.name, p.type_str, p.option == many) for p in raw.inputs]),
        tuple([(p.name, p.type_str, p.option == many) for p in raw.outputs]),
        {n: value for n, value in defaults.items() if value.name or value.type},
        {n: (int(a.type), a.required) for n, a in raw.attributes.items()},
        (raw.min_input, raw.max_input, raw.min_output, raw.max_output),
        frozenset([i for i, p in enumerate(raw.inputs) if p.option == single]),
        raw,
    )


def newest_versions() -> dict[str, int]:
    """Return the newest known operator version of each of ONNX's own domains."""
    definitions = onnx_package().defs
    return {"": definitions.onnx_opset_version(), "ai.onnx.ml": definitions.onnx_ml_opset_version()}
