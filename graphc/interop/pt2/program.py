"""Reader of exported programs in ``.pt2`` files, which become modules."""

from __future__ import annotations

import os
from collections import OrderedDict, namedtuple
from collections.abc import Mapping
from typing import Any

from graphc.base.errors import ArtifactError, GraphcError, UnsupportedError
from graphc.base.sizes.shape_patterns import Number
from graphc.interop.aten.exported import CallArgument, Exported, FixedArgument, ModuleTensor, Write, overlapping
from graphc.interop.aten.module import ImportedModule
from graphc.interop.parts import Member
from graphc.interop.pt2.fields import Field, parse
from graphc.interop.pt2.graph import modules_of, read_graph
from graphc.interop.pt2.package import Package
from graphc.interop.pt2.sizes import ProgramSizes
from graphc.interop.pt2.types import check_strided, element_type
from graphc.interop.pt2.weights import Storages, TensorEntry
from graphc.nn.parameter import Parameter
from graphc.tensors.creation import from_numpy
from graphc.tensors.structure import LEAF, Branch, Leaf, Structure
from graphc.tensors.tensor import Tensor

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


MAJOR = 8
"""Version of the schema that is read. Minor versions only add to it."""
_SIGNATURE = "inputs outputs in_spec out_spec"
_MODULE_TENSORS = {
    "parameter": ("arg parameter_name", "parameter_name"),
    "buffer": ("arg buffer_name persistent", "buffer_name"),
    "tensor_constant": ("arg tensor_constant_name", "tensor_constant_name"),
}
_WRITES = {
    "buffer_mutation": "buffer_name",
    "parameter_mutation": "parameter_name",
    "user_input_mutation": "user_input_name",
}
_VALUES = {"as_int": Field.integer, "as_float": Field.real, "as_string": Field.text, "as_bool": Field.flag}


def from_pt2(path: str | os.PathLike[str]) -> ImportedModule:
    """Convert a file of ``torch.export.save`` to a Module, without PyTorch.

    Nothing in the file is executed, and reading it needs no more memory than its size, except for Python objects.

    Args:
        path: the ``.pt2`` file.

    Returns:
        A Module with the parameters, buffers and modules of the model, in the mode in which it was exported. It takes
        tensors nested and named as in the export, trains, is exported, and compiles with ``dims=module.dims``.

    Raises:
        ArtifactError: a damaged or foreign file, or another major version of the schema.
        UnsupportedError: an operator, element type or kind of argument that graphc lacks, or a pickle.
        OSError: the file cannot be read.

    Example:
        >>> import graphc as gc
        >>> import torch
        >>> program = torch.export.export(torch.nn.ReLU(), (torch.zeros(3),))
        >>> torch.export.save(program, "relu.pt2")
        >>> model = gc.from_pt2("relu.pt2")
        >>> model(gc.tensor([-1.0, 0.0, 2.0]))
        tensor([0., 0., 2.])
    """
    with Package(path) as package:
        try:
            return _Program(package).module()
        except GraphcError as error:
            if not error.what.startswith(package.path):
                error.what = f"{package.path}: {error.what}"
            raise


class _Program:
    """Description of one program, with its tensors."""

    def __init__(self, package: Package):
        root = package.model().record(
            "graph_module opset_version range_constraints schema_version", "verifiers torch_version guards_code"
        )
        _check_version(root["schema_version"], root["torch_version"])
        module = root["graph_module"].record("graph signature module_call_graph", "metadata treespec_namedtuple_fields")
        self.root = module
        self.graph = module["graph"]
        self.guards = root["guards_code"]
        self.sizes = ProgramSizes(root["range_constraints"])
        signature = module["signature"].record("input_specs output_specs")
        self.input_specs = [(f, *f.union()) for f in signature["input_specs"].items()]
        self.output_specs = [(f, *f.union()) for f in signature["output_specs"].items()]
        self.tensors: dict[str, TensorEntry] = {}
        self.kinds: dict[str, str] = {}
        """Kind of each tensor by path: param, buffer, transient or constant."""
        for kind in ("weights", "constants"):
            storages = Storages(lambda name, kind=kind: package.payload(kind, name))
            for name, stored in storages.tensors(package.config(kind)).items():
                if name in self.tensors:
                    raise ArtifactError(f"there are two tensors {name[:80]!r}")
                self.tensors[name] = stored
                self.kinds[name] = "constant" if kind == "constants" else "param" if stored.is_parameter else "buffer"

    def module(self) -> ImportedModule:
        """Return the module that computes the program."""
        exported = self._exported()
        tensors: dict[Any, Tensor] = {}
        named = {name: self._tensor(name, tensors) for name in self._ordered()}
        members = [Member(n, t, self.kinds[n]) for n, t in named.items() if self.kinds[n] != "constant"]
        constants = {n: t for n, t in named.items() if self.kinds[n] == "constant"}
        submodules = self._submodules()
        try:
            return ImportedModule(
                submodules.pop("", "ExportedProgram"), submodules.items(), members, constants, exported
            )
        except UnsupportedError:
            raise
        except GraphcError as error:
            raise ArtifactError(f"its names do not form a module: {error.what}"[:300]) from error

    # Tensors

    def _ordered(self) -> list[str]:
        """Return the names of all tensors, in the order of the signature, then the others."""
        signature_names = [
            p.path for p in (self._input(i, s) for i, s in enumerate(self.input_specs)) if isinstance(p, ModuleTensor)
        ]
        return list(dict.fromkeys([*signature_names, *self.tensors]))

    def _tensor(self, name: str, cache: dict[Any, Tensor]) -> Tensor:
        """Return the tensor of this name. Tied tensors are one object."""
        stored, is_parameter = self.tensors[name], self.kinds[name] == "param"
        key = (self.kinds[name] == "constant", is_parameter, stored.key) if stored.array.size else name
        if key not in cache:
            tensor = from_numpy(stored.array)
            if is_parameter:
                try:
                    tensor = Parameter(tensor, requires_grad=stored.requires_grad)
                except GraphcError as error:
                    raise ArtifactError(f"parameter {name[:80]!r}: {error.what}") from None
            cache[key] = tensor
        return cache[key]

    def _submodules(self) -> dict[str, str]:
        """Return paths of modules and the names of their classes, in the order of the model."""
        classes = {fqn: "Part" for fqn in self._entries()}
        for node in self.graph.entries()["nodes"].items():
            for path, kind in modules_of(node.entries()["metadata"]):
                if path in classes and kind.isidentifier():
                    classes[path] = kind
        return classes

    def _entries(self) -> dict[str, Field]:
        """Return the signatures of modules by path. The empty path is the root."""
        entries = [call.record("fqn", "signature") for call in self.root["module_call_graph"].items()]
        signatures: dict[str, Field] = {}
        for entry in entries:
            signatures.setdefault(entry["fqn"].text().partition("@")[0], entry["signature"])
        return signatures

    # The graph and its call

    def _exported(self) -> Exported:
        inputs = [self._input(i, spec) for i, spec in enumerate(self.input_specs)]
        titles = {i: entry.title for i, entry in enumerate(inputs) if isinstance(entry, FixedArgument)}
        graph = read_graph(self.graph, "main", titles)
        if len(graph.inputs) != len(inputs) or type(graph.output) is not list:
            raise ArtifactError(f"the graph has {len(graph.inputs)} inputs, but its signature {len(inputs)}")
        if len(graph.output) != len(self.output_specs):
            raise ArtifactError(
                f"the graph has {len(graph.output)} results, but its signature {len(self.output_specs)}"
            )
        writes, results = self._results(inputs)
        takes, gives, names = self._call()
        expected = sum(not isinstance(entry, ModuleTensor) for entry in inputs)
        if _leaves(takes) != expected or _leaves(gives) != len(results):
            raise ArtifactError(
                f"calls have {_leaves(takes)} arguments and {_leaves(gives)} results, "
                f"but the signature {expected} and {len(results)}"
            )
        guards = () if self.guards.is_none else tuple([g.text() for g in self.guards.items()])
        extents = {name: stored.memory for name, stored in self.tensors.items()}
        return Exported(graph, inputs, takes, gives, names, tuple(results), tuple(writes), guards, overlapping(extents))

    def _call(self) -> tuple[Branch, Structure, tuple[str, ...]]:
        """Return the nesting of arguments and results, and the names of the arguments."""
        signature = self._entries().get("")
        if signature is None or signature.is_none:
            raise ArtifactError("module_call_graph does not say how the model is called")
        members = signature.record(_SIGNATURE, "forward_arg_names")
        records = self._records()
        takes, gives = read_tree(members["in_spec"], records), read_tree(members["out_spec"], records)
        kinds = [getattr(structure, "kind", None) for structure in (takes, *getattr(takes, "children", ()))]
        if not isinstance(takes, Branch) or kinds != [tuple, tuple, dict]:
            raise ArtifactError(
                f"{members['in_spec'].path} is not a tuple of positional and a dictionary of keyword arguments"
            )
        names = members["forward_arg_names"]
        argument_names = () if names.is_none else tuple([n.text() for n in names.items()])
        first, named = takes.children
        assert isinstance(first, Branch) and isinstance(named, Branch)
        _check_names([*argument_names, *named.keys], names)
        return takes, gives, argument_names[: len(first.children)] if len(argument_names) >= len(first.children) else ()

    def _records(self) -> dict[str, tuple[str, ...]]:
        field = self.root["treespec_namedtuple_fields"]
        entries = {} if field.is_none else field.entries()
        return {
            name: tuple([n.text() for n in record.record("field_names")["field_names"].items()])
            for name, record in entries.items()
        }

    def _input(self, number: int, spec: tuple[Field, str, Field]) -> ModuleTensor | CallArgument | FixedArgument:
        field, kind, content = spec
        if kind in _MODULE_TENSORS:
            needed, name = _MODULE_TENSORS[kind]
            members = content.record(needed)
            return ModuleTensor(self._module_tensor(members[name], kind, members.get("persistent")))
        if kind == "constant_input":
            members = content.record("name value")
            return FixedArgument(members["name"].text(), _value(members["value"]))
        if kind == "user_input":
            return self._call_argument(content.record("arg")["arg"], number)
        if kind in ("custom_obj", "token"):
            raise field.unsupported(f"graphc has no arguments of the kind {kind}")
        raise field.other(kind, "the arguments of a signature")

    def _module_tensor(self, field: Field, kind: str, persistent: Field | None) -> str:
        name = field.text()
        if name not in self.tensors:
            raise ArtifactError(f"{field.path}: the file lacks the tensor {name[:80]!r}")
        if kind == "parameter":
            self.kinds[name] = "param"
        elif kind == "buffer" and persistent is not None:
            self.kinds[name] = "buffer" if persistent.flag() else "transient"
        return name

    def _call_argument(self, field: Field, number: int) -> CallArgument | FixedArgument:
        """Return an argument of each call: a tensor, or a whole number used as a size."""
        kind, content = field.union()
        graph = self.graph.entries()
        if kind == "as_tensor":
            name = content.record("name")["name"].text()
            meta = _of(graph, "tensor_values", name, content).record(
                "dtype sizes requires_grad device strides storage_offset layout"
            )
            check_strided(meta["layout"])
            return CallArgument(name, self.sizes.shape(meta["sizes"]), element_type(meta["dtype"]))
        if kind == "as_sym_int":
            inner, name = content.union()
            if inner != "as_name":
                raise content.other(inner, "as_name")
            value = _of(graph, "sym_int_values", name.text(), content)
            return CallArgument(name.text(), Number((self.sizes.of(value),)))
        if kind in _VALUES or kind == "as_none":
            return FixedArgument(f"arg{number}", _value(field))
        raise field.unsupported(f"graphc has no arguments of the kind {kind.removeprefix('as_')[:40]}")

    def _results(self, inputs: list[ModuleTensor | CallArgument | FixedArgument]) -> tuple[list[Write], list[int]]:
        """Return the writes, and the indices of the results that calls return."""
        call_arguments = [argument for argument in inputs if not isinstance(argument, ModuleTensor)]
        titles = {argument.title: i for i, argument in enumerate(call_arguments) if isinstance(argument, CallArgument)}
        writes, results = [], []
        for number, (field, kind, content) in enumerate(self.output_specs):
            if kind == "user_output":
                results.append(number)
            elif kind in _WRITES:
                name = content.record(f"arg {_WRITES[kind]}")[_WRITES[kind]]
                targets: Mapping[str, Any] = titles if kind == "user_input_mutation" else self.tensors
                if name.text() not in targets:
                    raise ArtifactError(f"{name.path}: there is no {name.text()[:80]!r} to write to")
                inside = kind != "user_input_mutation"
                write = Write(number, path=name.text()) if inside else Write(number, argument=titles[name.text()])
                writes.append(write)
            elif kind in ("loss_output", "gradient_to_parameter", "gradient_to_user_input", "token"):
                raise field.unsupported(f"graphc has no results of the kind {kind}")
            else:
                raise field.other(kind, "the results of a signature")
        return writes, results


def _check_version(version: Field, torch: Field) -> None:
    numbers = version.record("major minor")
    major, minor = numbers["major"].integer(0), numbers["minor"].integer(0)
    if major != MAJOR:
        written = "" if torch.is_none else f" (PyTorch {torch.text()[:40]})"
        raise ArtifactError(
            f"its schema has version {major}.{minor}{written}, graphc reads {MAJOR}.x",
            remedy="save it with PyTorch 2.13: torch.export.save(program, path)",
        )


def _check_names(names: list[Any], field: Field) -> None:
    if not all(isinstance(n, str) and n.isidentifier() for n in names):
        raise ArtifactError(f"{field.path}: the names of arguments must be identifiers")


def _of(graph: Mapping[str, Field], table: str, name: str, field: Field) -> Field:
    entry = graph[table].entries().get(name) if table in graph else None
    if entry is None:
        raise ArtifactError(f"{field.path}: {table} lack {name[:80]!r}")
    return entry


def _value(field: Field) -> Any:
    kind, content = field.union()
    if kind == "as_none":
        return None
    if kind not in _VALUES:
        raise field.other(kind, ", ".join(["as_none", *_VALUES]))
    return _VALUES[kind](content)


def _leaves(structure: Structure) -> int:
    if isinstance(structure, Leaf):
        return 1
    return sum(map(_leaves, structure.children)) if isinstance(structure, Branch) else 0
