"""The ``onnx`` package (extra ``onnx``): the format of files, and the schemas of operators by version."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

from graphc.base.errors import ArgumentError
from graphc.base.installation import install_command
from graphc.interop.onnx.elements import BY_TYPE
from graphc.interop.onnx.graph import Source


def onnx_package() -> Any:
    """The package. Raises ArgumentError where it is not installed."""
    try:
        import onnx
        import onnx.defs
    except ImportError:
        remedy = f"install onnx: {install_command('onnx')}"
        raise ArgumentError("models of ONNX need the package onnx", remedy=remedy) from None
    return onnx


class Schema(NamedTuple):
    """What a version of an operator says of itself."""

    inputs: tuple[tuple[str, str, bool], ...]
    """Name, type, and whether it stands for any number of inputs."""
    outputs: tuple[tuple[str, str, bool], ...]
    defaults: Mapping[str, Any]
    """AttributeProtos by name."""
    attributes: Mapping[str, tuple[int, bool]]
    """By name the type, as in ``AttributeProto``, and whether it must be there."""
    counts: tuple[int, int, int, int]
    """The least and most inputs, the least and most outputs."""
    needed: frozenset[int]
    """The numbers of inputs that cannot be left out."""
    raw: Any

    def types(self, inputs: int, outputs: int) -> tuple[Source, ...]:
        """Where the element types of so many results come from, for so many inputs."""
        names = _spread(self.inputs, inputs)
        return tuple([_source(text, names) for text in _spread(self.outputs, outputs)])


def _spread(parts: tuple[tuple[str, str, bool], ...], count: int) -> list[str]:
    """The types of so many inputs, of which the last may stand for several."""
    found = [text for _, text, _ in parts[:count]]
    if parts and parts[-1][2]:
        found += [parts[-1][1]] * (count - len(found))
    return found


def _source(text: str, inputs: list[str]) -> Source:
    if text.startswith("tensor("):
        return BY_TYPE.get(text)
    return next((i for i, known in enumerate(inputs) if known == text), None)


@functools.lru_cache(maxsize=4096)
def schema(domain: str, op: str, version: int) -> Schema | None:
    """The schema of an operator in a version of its domain; None where there is none."""
    package = onnx_package()
    try:
        found = package.defs.get_schema(op, version, domain)
    except (package.defs.SchemaError, TypeError):  # NOTE: the latter for numbers and texts that C++ does not take.
        return None
    many = package.defs.OpSchema.FormalParameterOption.Variadic
    single = package.defs.OpSchema.FormalParameterOption.Single
    defaults = {n: a.default_value for n, a in found.attributes.items() if a.default_value.name or a.default_value.type}
    return Schema(
        tuple([(p.name, p.type_str, p.option == many) for p in found.inputs]),
        tuple([(p.name, p.type_str, p.option == many) for p in found.outputs]),
        defaults,
        {n: (int(a.type), a.required) for n, a in found.attributes.items()},
        (found.min_input, found.max_input, found.min_output, found.max_output),
        frozenset([i for i, p in enumerate(found.inputs) if p.option == single]),
        found,
    )


def newest_versions() -> dict[str, int]:
    """The newest version of the operators of each of ONNX's own domains that the package knows."""
    known = onnx_package().defs
    return {"": known.onnx_opset_version(), "ai.onnx.ml": known.onnx_ml_opset_version()}
