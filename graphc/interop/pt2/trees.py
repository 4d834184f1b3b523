"""How arguments and results are nested, as ``.pt2`` files say it."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Mapping
from typing import Any

from graphc.base.errors import ArtifactError
from graphc.interop.pt2.fields import Field, parse
from graphc.tensors.structure import LEAF, Branch, Structure

MOST_NESTED = 64
"""Containers within each other."""
_SEQUENCES = {
    "builtins.tuple": tuple,
    "builtins.list": list,
    "torch.fx.immutable_collections.immutable_list": list,
}
_MAPPINGS = {
    "builtins.dict": dict,
    "collections.OrderedDict": OrderedDict,
    "torch.fx.immutable_collections.immutable_dict": dict,
}
_PROTOCOL = 1


def read_tree(field: Field, records: Mapping[str, tuple[str, ...]]) -> Structure:
    """The structure in a text; ``records`` are the names of the fields of named tuples by the names of these.

    Classes that were registered with names for their parts, such as the results of transformers, are dictionaries;
    raises UnsupportedError for others, ArtifactError for what is no structure."""
    parts = parse(field.text().encode("utf-8", "surrogatepass"), field.path).items()
    if len(parts) != 2 or parts[0].value != _PROTOCOL:
        raise field.unsupported("nested arguments in a form that is newer than what this graphc knows")
    return _tree(parts[1], records, 0)


def _tree(field: Field, records: Mapping[str, tuple[str, ...]], depth: int) -> Structure:
    if depth > MOST_NESTED:
        raise field.unsupported(f"containers nested more than {MOST_NESTED} deep")
    parts = field.record("type context children_spec")
    children = tuple([_tree(part, records, depth + 1) for part in parts["children_spec"].items()])
    if parts["type"].is_none:
        if children:
            raise ArtifactError(f"{field.path}: a leaf has parts")
        return LEAF
    name = parts["type"].text()
    if name in _SEQUENCES:
        return Branch(_SEQUENCES[name], (), children)
    if name == "collections.namedtuple":
        kind = _record(parts["context"], records)
        return Branch(kind, _fitting(field, kind._fields, children), children)
    keys = _keys(parts["context"], name in _MAPPINGS)
    if keys is None:
        raise field.unsupported(
            f"arguments or results in a {name[:80]}", remedy="tuples, lists, dictionaries and named tuples"
        )
    return Branch(_MAPPINGS.get(name, dict), _fitting(field, keys, children), children)


def _fitting(field: Field, keys: tuple[Any, ...], children: tuple[Structure, ...]) -> tuple[Any, ...]:
    if len(keys) != len(children) or len(set(keys)) != len(keys):
        raise ArtifactError(f"{field.path}: {len(keys)} names and {len(children)} parts do not fit")
    return keys


def _keys(context: Field, is_mapping: bool) -> tuple[Any, ...] | None:
    """The names of the parts, in a list or, of classes that others registered, in a list beside their class."""
    if context.is_none:
        return None
    found = parse(context.text().encode("utf-8", "surrogatepass"), context.path)
    if is_mapping:
        return tuple([_key(part) for part in found.items()])
    for part in (found, *(found.items() if type(found.value) is list else ())):
        if type(part.value) is list and part.value and all(type(k) is str for k in part.value):
            return tuple(part.value)
    return None


def _key(field: Field) -> Any:
    if type(field.value) not in (str, int, bool):
        raise field.unsupported("a key of a dictionary that is neither a text nor a whole number")
    return field.value


def _record(context: Field, records: Mapping[str, tuple[str, ...]]) -> Any:
    name = context.text()
    if name not in records:
        raise context.unsupported(f"a named tuple {name[:80]!r}, whose fields the file does not name")
    try:
        return namedtuple(name.rpartition(".")[2], records[name])
    except ValueError as error:
        raise ArtifactError(f"{context.path}: {error}"[:200]) from None
