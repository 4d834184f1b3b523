"""Graphs in ``.pt2`` files as graphs of ATen operators."""

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
"""Graphs of branches and loops within each other."""
_OPERATORS = {
    "torch.ops.aten.": "aten.",
    "torch.ops.prims.": "prims.",
    "torch.ops.higher_order.": "higher_order.",
    "_operator.": "operator.",
}
_FRAME = re.compile(r'File "([^"]{1,1000}\.py)", line (\d{1,7}), in ')
_LIBRARY = "/site-packages/torch/"
_NOTHING = object()
"""In the place of arguments that say where and how memory lies."""
_VALUES = "inputs outputs nodes tensor_values sym_int_values sym_bool_values"
_DROPPED = ("as_device", "as_layout", "as_memory_format")
_KEYWORD = 2


def read_graph(field: Field, name: str = "main", names: Mapping[int, str] | None = None, depth: int = 0) -> AtenGraph:
    """The graph in a field; ``names`` are those of inputs that are plain values, by number.

    Raises ArtifactError where a step uses what is computed later or nowhere, where two values have one name, and for
    fields of wrong types; UnsupportedError for arguments that graphc has nothing for."""
    if depth > MOST_NESTED:
        raise field.unsupported(f"graphs nested more than {MOST_NESTED} deep")
    parts = field.record(_VALUES, "is_single_tensor_return custom_obj_values sym_float_values")
    return _Reader(AtenGraph(name, [], [], None), depth).read(parts, names or {})


class _Reader:
    """One graph, and the names that are known so far."""

    def __init__(self, graph: AtenGraph, depth: int):
        self.graph = graph
        self.depth = depth
        self.known: set[str] = set()

    def read(self, parts: dict[str, Field], names: Mapping[int, str]) -> AtenGraph:
        graph = self.graph
        for number, field in enumerate(parts["inputs"].items()):
            graph.inputs.append(self._define(_name_of(field) or names.get(number, f"arg{number}"), field))
        for field in parts["nodes"].items():
            self._node(field)
        found = [self._argument(field) for field in parts["outputs"].items()]
        single = parts["is_single_tensor_return"]
        if not single.is_none and single.flag():
            if len(found) != 1:
                raise ArtifactError(f"{single.path}: there are {len(found)} results")
            graph.output = found[0]
        else:
            graph.output = found
        return graph

    def _define(self, name: str, field: Field) -> str:
        if name in self.known:
            raise ArtifactError(f"{field.path}: there are two values {name[:60]!r}")
        self.known.add(name)
        return name

    def _node(self, field: Field) -> None:
        parts = field.record("target inputs outputs metadata", "is_hop_single_tensor_return name")
        place = place_of(parts["metadata"])
        target = _target(parts["target"])
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for entry in parts["inputs"].items():
            named = entry.record("name arg", "kind")
            value = None if target == AUTOCAST and len(args) == 1 else self._argument(named["arg"])
            if value is _NOTHING:
                continue
            name = named["name"].text()
            if named["kind"].is_none or named["kind"].whole(0, _KEYWORD) != _KEYWORD:
                args.append(value)
            elif name in kwargs:
                raise ArtifactError(f"{named['name'].path}: argument {name[:60]!r} is given twice")
            elif name not in WITHOUT_MEANING:
                kwargs[name] = value
        step = Step("", target, tuple(args), kwargs, place)
        self._add(step, parts)

    def _add(self, step: Step, parts: dict[str, Field]) -> None:
        """Adds a step and steps that take its results apart, each of which has a name in the file."""
        outputs = [(f, *f.union()) for f in parts["outputs"].items()]
        single = parts["is_hop_single_tensor_return"]
        packed = not single.is_none and not single.flag()
        if len(outputs) == 1 and not packed and outputs[0][1] != "as_tensors":
            name = _name_of(outputs[0][0]) or self._unused(parts["name"])
            self._append(step, name, outputs[0][0])
            return
        whole = self._unused(parts["name"])
        self._append(step, whole, parts["target"])
        listed = len(outputs) == 1 and outputs[0][1] == "as_tensors"
        self._take_apart(whole, outputs[0][2].items() if listed else [f for f, _, _ in outputs], step.place)

    def _take_apart(self, whole: str, outputs: list[Field], place: Location) -> None:
        for number, field in enumerate(outputs):
            got = Step("", "operator.getitem", (Ref(whole), number), {}, place)
            if "as_tensors" in field.entries():
                name = self._unused(field)
                self._append(got, name, field)
                self._take_apart(name, field.union()[1].items(), place)
                continue
            name = _plain_name(field) or _name_of(field)
            if name is not None:
                self._append(got, name, field)

    def _append(self, step: Step, name: str, field: Field) -> None:
        self._define(name, field)
        self.graph.steps.append(Step(name, step.target, step.args, step.kwargs, step.place))

    def _unused(self, wanted: Field) -> str:
        """A name that no value of the file has, as none of theirs has a dot."""
        shown = wanted.value if type(wanted.value) is str else "result"
        return f"{shown[:60].replace('.', '_')}.{len(self.graph.steps)}"

    # Arguments

    def _argument(self, field: Field) -> Any:
        kind, content = field.union()
        if kind in _DROPPED:
            return _NOTHING
        reader = _ARGUMENTS.get(kind)
        if reader is not None:
            return reader(self, content)
        if kind in _UNSUPPORTED:
            raise field.unsupported(f"an argument {kind.removeprefix('as_')}, for which graphc has nothing")
        raise field.other(kind, "the arguments that schema 8 has")

    def _ref(self, field: Field) -> Ref:
        return self._known(field.record("name")["name"])

    def _known(self, field: Field) -> Ref:
        name = field.text()
        if name not in self.known:
            raise ArtifactError(f"{field.path}: {name[:60]!r} is computed nowhere before")
        return Ref(name)

    def _optional(self, field: Field) -> Ref | None:
        kind, content = field.union()
        if kind not in ("as_none", "as_tensor"):
            raise field.other(kind, "as_none, as_tensor")
        return None if kind == "as_none" else self._ref(content)

    def _symbolic(self, field: Field) -> Any:
        """A number of the graph by name, or a plain one."""
        kind, content = field.union()
        if kind == "as_name":
            return self._known(content)
        if kind not in _NUMBERS:
            raise field.other(kind, "as_name, as_int, as_float, as_bool")
        return _NUMBERS[kind](content)

    def _graph(self, field: Field) -> Ref:
        parts = field.record("name graph")
        name = parts["name"].text()
        inner = read_graph(parts["graph"], name, depth=self.depth + 1)
        if name not in self.graph.constants:
            self.graph.constants[self._define(name, parts["name"])] = inner
        elif self.graph.constants[name] != inner:
            raise ArtifactError(f"{field.path}: there are two graphs {name[:60]!r}")
        return Ref(name)

    def _dictionary(self, field: Field) -> dict[str, Any]:
        return {name: self._argument(part) for name, part in field.entries().items()}


_NUMBERS: Mapping[str, Callable[[Field], Any]] = {
    "as_int": Field.whole,
    "as_float": Field.real,
    "as_bool": Field.flag,
}
_Argument = Callable[[_Reader, Field], Any]


def _plain(read: Callable[[Field], Any]) -> _Argument:
    return lambda reader, field: read(field)


def _each(read: _Argument) -> _Argument:
    return lambda reader, field: tuple([read(reader, part) for part in field.items()])


_ARGUMENTS: Mapping[str, _Argument] = {
    "as_none": lambda reader, field: None,
    "as_tensor": _Reader._ref,
    "as_tensors": _each(_Reader._ref),
    "as_nested_tensors": _each(_each(_Reader._ref)),
    "as_optional_tensor": _Reader._optional,
    "as_optional_tensors": _each(_Reader._optional),
    "as_int": _plain(Field.whole),
    "as_ints": _each(_plain(Field.whole)),
    "as_int_lists": _each(_each(_plain(Field.whole))),
    "as_float": _plain(Field.real),
    "as_floats": _each(_plain(Field.real)),
    "as_float_lists": _each(_each(_plain(Field.real))),
    "as_bool": _plain(Field.flag),
    "as_bools": _each(_plain(Field.flag)),
    "as_string": _plain(Field.text),
    "as_strings": _each(_plain(Field.text)),
    **dict.fromkeys(("as_sym_int", "as_sym_float", "as_sym_bool"), _Reader._symbolic),
    **dict.fromkeys(("as_sym_ints", "as_sym_floats", "as_sym_bools"), _each(_Reader._symbolic)),
    "as_scalar_type": _plain(element_type),
    "as_graph": _Reader._graph,
    "as_string_to_argument": _Reader._dictionary,
}
_UNSUPPORTED = frozenset({"as_custom_obj", "as_operator", "as_complex"})


def _target(field: Field) -> str:
    text = field.text()
    for prefix, ours in _OPERATORS.items():
        if text.startswith(prefix):
            return ours + text.removeprefix(prefix)
    return text


def _name_of(field: Field) -> str | None:
    """The name of the value that an argument stands for; None for a plain value."""
    kind, content = field.union()
    if kind == "as_tensor":
        return content.record("name")["name"].text()
    if kind in ("as_sym_int", "as_sym_float", "as_sym_bool"):
        inner, name = content.union()
        return name.text() if inner == "as_name" else None
    if kind in _UNSUPPORTED or kind in ("as_graph", "as_tensors"):
        raise field.unsupported(f"a value of the kind {kind.removeprefix('as_')}")
    if kind not in _ARGUMENTS:
        raise field.other(kind, "the arguments that schema 8 has")
    return None


def _plain_name(field: Field) -> str | None:
    """The name in a TensorArgument that stands in a list by itself."""
    return field.record("name")["name"].text() if field.entries().keys() == {"name"} else None


def place_of(metadata: Field) -> Location:
    """The user's line and the path of the module that a node comes from. Only names of Python files are taken, as
    messages show their lines."""
    parts = metadata.entries()
    trace = parts["stack_trace"].text() if "stack_trace" in parts else ""
    frames = _FRAME.findall(trace)
    own = [f for f in frames if _LIBRARY not in f[0].replace("\\", "/")] or frames
    file, line = own[-1] if own else ("", 0)
    stack = modules_of(metadata)
    return Location(stack[-1][0] if stack else "", file, int(line))


def modules_of(metadata: Field) -> list[tuple[str, str]]:
    """Paths and class names of the modules that a node belongs to, the outermost first."""
    text = metadata.entries().get("nn_module_stack")
    found = []
    for entry in text.text().split(";") if text is not None else ():
        parts = entry.split(",")
        if len(parts) == 3:
            found.append((parts[1].partition("@")[0], parts[2].rpartition(".")[2]))
    return found
