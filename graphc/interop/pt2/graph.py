"""Conversion of graphs in ``.pt2`` files to graphs of ATen operators."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from graphc.base.errors import ArtifactError
from graphc.base.location import Location
from graphc.interop.aten.graph import AUTOCAST, WITHOUT_MEANING, AtenGraph, Ref, Step
from graphc.interop.pt2.fields import Field
from graphc.interop.pt2.types import element_type

MOST_NESTED = 16
"""Nesting levels of graphs of branches and loops."""
_OPERATORS = {
    "torch.ops.aten.": "aten.",
    "torch.ops.prims.": "prims.",
    "torch.ops.quantized_decomposed.": "quantized_decomposed.",
    "torch.ops.higher_order.": "higher_order.",
    "_operator.": "operator.",
}
_FRAME = re.compile(r'File "([^"]{1,1000}\.py)", line (\d{1,7}), in ')
_LIBRARY = "/site-packages/torch/"
_NOTHING = object()
"""Placeholder for arguments about memory placement."""
_VALUES = "inputs outputs nodes tensor_values sym_int_values sym_bool_values"
_DROPPED = ("as_device", "as_layout", "as_memory_format")
_KEYWORD = 2


def read_graph(field: Field, name: str = "main", names: Mapping[int, str] | None = None, depth: int = 0) -> AtenGraph:
    """Convert the graph in a field. ``names`` maps indices of plain-value inputs to their names.

    Raises ArtifactError for a use of a value before its definition, for duplicate names, and for fields of wrong types;
    UnsupportedError for arguments that graphc lacks.
    """
    if depth > MOST_NESTED:
        raise field.unsupported(f"graphs are nested more than {MOST_NESTED} levels deep")
    members = field.record(_VALUES, "is_single_tensor_return custom_obj_values sym_float_values")
    return _GraphReader(AtenGraph(name, [], [], None), depth).read(members, names or {})


class _GraphReader:
    """Reader of one graph. Tracks the names defined so far."""

    def __init__(self, graph: AtenGraph, depth: int):
        self.graph = graph
        self.depth = depth
        self.defined: set[str] = set()

    def read(self, members: dict[str, Field], names: Mapping[int, str]) -> AtenGraph:
        graph = self.graph
        for number, field in enumerate(members["inputs"].items()):
            graph.inputs.append(self._define(_name_of(field) or names.get(number, f"arg{number}"), field))
        for field in members["nodes"].items():
            self._node(field)
        results = [self._argument(field) for field in members["outputs"].items()]
        single = members["is_single_tensor_return"]
        if not single.is_none and single.flag():
            if len(results) != 1:
                raise ArtifactError(f"{single.path}: a single result is expected, there are {len(results)}")
            graph.output = results[0]
        else:
            graph.output = results
        return graph

    def _define(self, name: str, field: Field) -> str:
        if name in self.defined:
            raise ArtifactError(f"{field.path}: there are two values {name[:60]!r}")
        self.defined.add(name)
        return name

    def _node(self, field: Field) -> None:
        members = field.record("target inputs outputs metadata", "is_hop_single_tensor_return name")
        location = place_of(members["metadata"])
        target = _target(members["target"])
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for entry in members["inputs"].items():
            named = entry.record("name arg", "kind")
            value = None if target == AUTOCAST and len(args) == 1 else self._argument(named["arg"])
            if value is _NOTHING:
                continue
            name = named["name"].text()
            if named["kind"].is_none or named["kind"].integer(0, _KEYWORD) != _KEYWORD:
                args.append(value)
            elif name in kwargs:
                raise ArtifactError(f"{named['name'].path}: argument {name[:60]!r} is given twice")
            elif name not in WITHOUT_MEANING:
                kwargs[name] = value
        step = Step("", target, tuple(args), kwargs, location)
        self._add(step, members)

    def _add(self, step: Step, members: dict[str, Field]) -> None:
        """Add a step, and steps that unpack its results, each of which has a name in the file."""
        outputs = [(f, *f.union()) for f in members["outputs"].items()]
        single = members["is_hop_single_tensor_return"]
        packed = not single.is_none and not single.flag()
        if len(outputs) == 1 and not packed and outputs[0][1] != "as_tensors":
            name = _name_of(outputs[0][0]) or self._unused(members["name"])
            self._append(step, name, outputs[0][0])
            return
        packed_name = self._unused(members["name"])
        self._append(step, packed_name, members["target"])
        listed = len(outputs) == 1 and outputs[0][1] == "as_tensors"
        self._unpack(packed_name, outputs[0][2].items() if listed else [f for f, _, _ in outputs], step.location)

    def _unpack(self, packed: str, outputs: list[Field], location: Location) -> None:
        for number, field in enumerate(outputs):
            step = Step("", "operator.getitem", (Ref(packed), number), {}, location)
            if "as_tensors" in field.entries():
                name = self._unused(field)
                self._append(step, name, field)
                self._unpack(name, field.union()[1].items(), location)
                continue
            name = _plain_name(field) or _name_of(field)
            if name is not None:
                self._append(step, name, field)

    def _append(self, step: Step, name: str, field: Field) -> None:
        self._define(name, field)
        self.graph.steps.append(Step(name, step.target, step.args, step.kwargs, step.location))

    def _unused(self, hint: Field) -> str:
        """Return a name that no value of the file can have, since names in files contain no dot."""
        base = hint.value if type(hint.value) is str else "result"
        return f"{base[:60].replace('.', '_')}.{len(self.graph.steps)}"

    # Arguments

    def _argument(self, field: Field) -> Any:
        kind, content = field.union()
        if kind in _DROPPED:
            return _NOTHING
        reader = _ARGUMENTS.get(kind)
        if reader is not None:
            return reader(self, content)
        if kind in _UNSUPPORTED:
            raise field.unsupported(f"graphc has no arguments of the kind {kind.removeprefix('as_')}")
        raise field.other(kind, "the argument kinds of schema 8")

    def _ref(self, field: Field) -> Ref:
        return self._use(field.record("name")["name"])

    def _use(self, field: Field) -> Ref:
        name = field.text()
        if name not in self.defined:
            raise ArtifactError(f"{field.path}: {name[:60]!r} is used before it is computed")
        return Ref(name)

    def _optional(self, field: Field) -> Ref | None:
        kind, content = field.union()
        if kind not in ("as_none", "as_tensor"):
            raise field.other(kind, "as_none, as_tensor")
        return None if kind == "as_none" else self._ref(content)

    def _symbolic(self, field: Field) -> Any:
        """Return a number of the graph by name, or a plain one."""
        kind, content = field.union()
        if kind == "as_name":
            return self._use(content)
        if kind not in _NUMBERS:
            raise field.other(kind, "as_name, as_int, as_float, as_bool")
        return _NUMBERS[kind](content)

    def _graph(self, field: Field) -> Ref:
        members = field.record("name graph")
        name = members["name"].text()
        inner = read_graph(members["graph"], name, depth=self.depth + 1)
        if name not in self.graph.constants:
            self.graph.constants[self._define(name, members["name"])] = inner
        elif self.graph.constants[name] != inner:
            raise ArtifactError(f"{field.path}: there are two graphs {name[:60]!r}")
        return Ref(name)

    def _dictionary(self, field: Field) -> dict[str, Any]:
        return {name: self._argument(member) for name, member in field.entries().items()}


_NUMBERS: Mapping[str, Callable[[Field], Any]] = {
    "as_int": Field.integer,
    "as_float": Field.real,
    "as_bool": Field.flag,
}
_Argument = Callable[[_GraphReader, Field], Any]


def _plain(read: Callable[[Field], Any]) -> _Argument:
    return lambda reader, field: read(field)


def _each(read: _Argument) -> _Argument:
    return lambda reader, field: tuple([read(reader, element) for element in field.items()])


_ARGUMENTS: Mapping[str, _Argument] = {
    "as_none": lambda reader, field: None,
    "as_tensor": _GraphReader._ref,
    "as_tensors": _each(_GraphReader._ref),
    "as_nested_tensors": _each(_each(_GraphReader._ref)),
    "as_optional_tensor": _GraphReader._optional,
    "as_optional_tensors": _each(_GraphReader._optional),
    "as_int": _plain(Field.integer),
    "as_ints": _each(_plain(Field.integer)),
    "as_int_lists": _each(_each(_plain(Field.integer))),
    "as_float": _plain(Field.real),
    "as_floats": _each(_plain(Field.real)),
    "as_float_lists": _each(_each(_plain(Field.real))),
    "as_bool": _plain(Field.flag),
    "as_bools": _each(_plain(Field.flag)),
    "as_string": _plain(Field.text),
    "as_strings": _each(_plain(Field.text)),
    **dict.fromkeys(("as_sym_int", "as_sym_float", "as_sym_bool"), _GraphReader._symbolic),
    **dict.fromkeys(("as_sym_ints", "as_sym_floats", "as_sym_bools"), _each(_GraphReader._symbolic)),
    "as_scalar_type": _plain(element_type),
    "as_graph": _GraphReader._graph,
    "as_string_to_argument": _GraphReader._dictionary,
}
_UNSUPPORTED = frozenset({"as_custom_obj", "as_operator", "as_complex"})


def _target(field: Field) -> str:
    text = field.text()
    for prefix, ours in _OPERATORS.items():
        if text.startswith(prefix):
            return ours + text.removeprefix(prefix)
    return text


def _name_of(field: Field) -> str | None:
    """Return the name of the value an argument refers to, None for a plain value."""
    kind, content = field.union()
    if kind == "as_tensor":
        return content.record("name")["name"].text()
    if kind in ("as_sym_int", "as_sym_float", "as_sym_bool"):
        inner, name = content.union()
        return name.text() if inner == "as_name" else None
    if kind in _UNSUPPORTED or kind in ("as_graph", "as_tensors"):
        raise field.unsupported(f"graphc has no values of the kind {kind.removeprefix('as_')}")
    if kind not in _ARGUMENTS:
        raise field.other(kind, "the arguments that schema 8 has")
    return None


def _plain_name(field: Field) -> str | None:
    """Return the name in a TensorArgument, as an element of a list."""
    return field.record("name")["name"].text() if field.entries().keys() == {"name"} else None


def place_of(metadata: Field) -> Location:
    """Return the user's line for a node, and the path of its module.

    Only names of Python files are accepted, because messages show their lines.
    """
    members = metadata.entries()
    trace = members["stack_trace"].text() if "stack_trace" in members else ""
    frames = _FRAME.findall(trace)
    own = [f for f in frames if _LIBRARY not in f[0].replace("\\", "/")] or frames
    file, line = own[-1] if own else ("", 0)
    stack = modules_of(metadata)
    return Location(stack[-1][0] if stack else "", file, int(line))


def modules_of(metadata: Field) -> list[tuple[str, str]]:
    """Return paths and class names of the modules of a node, outermost first."""
    text = metadata.entries().get("nn_module_stack")
    modules = []
    for entry in text.text().split(";") if text is not None else ():
        fields = entry.split(",")
        if len(fields) == 3:
            modules.append((fields[1].partition("@")[0], fields[2].rpartition(".")[2]))
    return modules
