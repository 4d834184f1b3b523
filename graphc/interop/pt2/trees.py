"""Nesting of arguments and results in ``.pt2`` files."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Mapping
from typing import Any

from graphc.base.errors import ArtifactError
from graphc.interop.pt2.fields import Field, parse
from graphc.tensors.structure import LEAF, Branch, Structure

MOST_NESTED = 64
"""Nesting levels of containers."""
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
    """Parse the structure in a string. ``records`` maps names of named tuples to the names of their fields.

    Registered classes with named fields, such as the results of transformers, become dictionaries. Raises
    UnsupportedError for other classes, ArtifactError for an invalid structure.
    """
    elements = parse(field.text().encode("utf-8", "surrogatepass"), field.path).items()
    if len(elements) != 2 or elements[0].value != _PROTOCOL:
        raise field.unsupported("the format of nested arguments is newer than this version of graphc")
    return _tree(elements[1], records, 0)


def _tree(field: Field, records: Mapping[str, tuple[str, ...]], depth: int) -> Structure:
    if depth > MOST_NESTED:
        raise field.unsupported(f"containers are nested more than {MOST_NESTED} levels deep")
    members = field.record("type context children_spec")
    children = tuple([_tree(child, records, depth + 1) for child in members["children_spec"].items()])
    if members["type"].is_none:
        if children:
            raise ArtifactError(f"{field.path}: a leaf has children")
        return LEAF
    name = members["type"].text()
    if name in _SEQUENCES:
        return Branch(_SEQUENCES[name], (), children)
    if name == "collections.namedtuple":
        kind = _record(members["context"], records)
        return Branch(kind, _fitting(field, kind._fields, children), children)
    keys = _keys(members["context"], name in _MAPPINGS)
    if keys is None:
        raise field.unsupported(
            f"graphc cannot read arguments or results in a {name[:80]}",
            remedy="use tuples, lists, dictionaries and named tuples",
        )
    return Branch(_MAPPINGS.get(name, dict), _fitting(field, keys, children), children)


def _fitting(field: Field, keys: tuple[Any, ...], children: tuple[Structure, ...]) -> tuple[Any, ...]:
    if len(keys) != len(children) or len(set(keys)) != len(keys):
        raise ArtifactError(f"{field.path}: {len(keys)} names do not fit {len(children)} children")
    return keys


def _keys(context: Field, is_mapping: bool) -> tuple[Any, ...] | None:
    """Return the names of the children from a list of names or, for registered classes, from a list next to their
    class."""
    if context.is_none:
        return None
    context_value = parse(context.text().encode("utf-8", "surrogatepass"), context.path)
    if is_mapping:
        return tuple([_key(element) for element in context_value.items()])
    for element in (context_value, *(context_value.items() if type(context_value.value) is list else ())):
        if type(element.value) is list and element.value and all(type(k) is str for k in element.value):
            return tuple(element.value)
    return None


def _key(field: Field) -> Any:
    if type(field.value) not in (str, int, bool):
        raise field.unsupported("a key of a dictionary is neither a string nor an integer")
    return field.value


def _record(context: Field, records: Mapping[str, tuple[str, ...]]) -> Any:
    name = context.text()
    if name not in records:
        raise context.unsupported(f"the file does not name the fields of the named tuple {name[:80]!r}")
    try:
        return namedtuple(name.rpartition(".")[2], records[name])
    except ValueError as error:
        raise ArtifactError(f"{context.path}: {error}"[:200]) from None
