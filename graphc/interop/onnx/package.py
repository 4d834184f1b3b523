"""The ``onnx`` package (extra ``onnx``): the file format, and operator schemas by version."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from importlib import _bootstrap, import_module  # type: ignore[attr-defined]
from importlib.machinery import PathFinder
from types import ModuleType
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
        raise _missing() from None
    return onnx


class OnnxFormat(NamedTuple):
    """The two modules of ``onnx`` that reading needs. The import of the whole package takes 0.05 s more."""

    messages: Any
    """``onnx.onnx_ml_pb2``: the classes of protobuf messages."""
    definitions: Any
    """``onnx.onnx_cpp2py_export.defs``: the schemas of operators."""


def onnx_format() -> OnnxFormat:
    """Return the modules of ``onnx`` for reading. Raises ArgumentError where it is not installed."""
    try:
        load = _module_alone
        if "onnx" in sys.modules:
            load = import_module
            load("onnx")
        return OnnxFormat(load("onnx.onnx_ml_pb2"), load("onnx.onnx_cpp2py_export").defs)
    except ImportError:
        raise _missing() from None


@functools.cache
def _module_alone(name: str) -> ModuleType:
    """Import a module of ``onnx`` without the package around it. A later ``import onnx`` works as ever."""
    package = PathFinder.find_spec("onnx")
    spec = package and PathFinder.find_spec(name, package.submodule_search_locations)
    if spec is None:
        raise ImportError(f"there is no module {name}")
    # NOTE: this is what import statements do after they have imported the package of a module, locks included.
    module = _bootstrap._load(spec)  # type: ignore[attr-defined]
    if name.endswith("_pb2"):
        # Protobuf returns the same classes to whoever imports the module again, which also binds its name in the
        # package. The module in C++ must not be loaded twice.
        sys.modules.pop(name, None)
    return module


def _missing() -> ArgumentError:
    return ArgumentError("ONNX models need the package onnx", remedy=f"install onnx: {install_command('onnx')}")


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
        body = self.raw._function_body if self.raw.has_function else b""
        return onnx_format().messages.FunctionProto.FromString(body) if body else None

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
    messages, definitions = onnx_format()
    try:
        raw = definitions.get_schema(op, version, domain)
    except (definitions.SchemaError, TypeError):  # NOTE: TypeError for numbers and strings that C++ rejects.
        return None
    many = definitions.OpSchema.FormalParameterOption.Variadic
    single = definitions.OpSchema.FormalParameterOption.Single
    stored = {n: a._default_value for n, a in raw.attributes.items()}
    return Schema(
        tuple([(p.name, p.type_str, p.option == many) for p in raw.inputs]),
        tuple([(p.name, p.type_str, p.option == many) for p in raw.outputs]),
        {n: messages.AttributeProto.FromString(data) for n, data in stored.items() if data},
        {n: (int(a.type), a.required) for n, a in raw.attributes.items()},
        (raw.min_input, raw.max_input, raw.min_output, raw.max_output),
        frozenset([i for i, p in enumerate(raw.inputs) if p.option == single]),
        raw,
    )


def newest_versions() -> dict[str, int]:
    """Return the newest known operator version of each of ONNX's own domains."""
    versions = onnx_format().definitions.schema_version_map()
    return {domain: versions[domain][1] for domain in ("", "ai.onnx.ml")}
