"""Reader of ``torch.export``: converts an ExportedProgram, or exports and converts a module."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, InputSpec, OutputKind

from graphc.base.errors import ArgumentError, GraphcError, UnsupportedError
from graphc.base.sizes.shape_patterns import Number
from graphc.interop.aten.exported import CallArgument, Exported, FixedArgument, ModuleTensor, Write, overlapping
from graphc.interop.aten.module import ImportedModule, Modes
from graphc.interop.parts import Member
from graphc.interop.torch.fx import dtype_of, read_fx, tensor_of
from graphc.interop.torch.sizes import GraphSizes
from graphc.nn.parameter import Parameter
from graphc.tensors.structure import LEAF, Branch, Structure
from graphc.tensors.tensor import Tensor


def from_torch(
    source: torch.nn.Module | ExportedProgram,
    args: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> ImportedModule:
    """Return the module of graphc that computes what ``source`` does. See ``graphc.from_torch``."""
    if isinstance(source, ExportedProgram):
        if args or kwargs or dynamic_shapes is not None:
            raise ArgumentError("from_torch: an ExportedProgram already has its arguments and shapes")
        return _of_program(source)
    if not isinstance(source, torch.nn.Module):
        raise ArgumentError(
            f"from_torch takes a torch.nn.Module or an ExportedProgram, not {type(source).__name__}",
            remedy="pass modules and functions of graphc to graphc.compile",
        )
    args = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    return _of_module(source, args, dict(kwargs or {}), dynamic_shapes)


def _of_program(program: ExportedProgram) -> ImportedModule:
    specs = {s.target: s for s in program.graph_signature.input_specs if s.kind is InputKind.BUFFER}
    state = program.state_dict
    parameters = {s.target for s in program.graph_signature.input_specs if s.kind is InputKind.PARAMETER}
    transient = {n for n, s in specs.items() if not s.persistent}
    named = [(n, t, "param" if n in parameters or _is_parameter(t) else "buffer") for n, t in state.items()]
    named += [(n, t, "transient") for n, t in program.constants.items() if n in transient]
    constants = {n: tensor_of(t) for n, t in program.constants.items() if isinstance(t, torch.Tensor)}
    modules = [(p, k) for n, (p, k) in _modules_of(program).items() if p]
    return ImportedModule(_kind(program), modules, _members(named), constants, read_program(program))


def _is_parameter(tensor: Any) -> bool:
    return isinstance(tensor, torch.nn.Parameter)


def _modules_of(program: ExportedProgram) -> dict[str, tuple[str, str]]:
    """Return paths and class names of the modules that nodes come from."""
    modules: dict[str, tuple[str, str]] = {}
    for node in program.graph.nodes:
        for path, kind in (node.meta.get("nn_module_stack") or {}).values():
            modules.setdefault(path, (path, str(kind).rpartition(".")[2]))
    return modules


def _kind(program: ExportedProgram) -> str:
    return _modules_of(program).get("", ("", "ExportedProgram"))[1]


def _of_module(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any
) -> ImportedModule:
    named: list[tuple[str, Any, str]] = []
    submodules, first = [], {submodule: path for path, submodule in module.named_modules()}
    shared: dict[str, str] = {}
    for path, submodule in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        if path:
            submodules.append((path, type(submodule).__name__))
        if first[submodule] != path:
            shared[path] = first[submodule]
        transient_names = submodule._non_persistent_buffers_set
        named += [(prefix + n, t, "param") for n, t in submodule._parameters.items() if t is not None]
        buffers = [(n, t) for n, t in submodule._buffers.items() if t is not None]
        named += [(prefix + n, t, "transient" if n in transient_names else "buffer") for n, t in buffers]
    export = functools.partial(_export, module, args, kwargs, dynamic_shapes)
    modes = tuple([m.training for m in _all(module)])
    return ImportedModule(type(module).__name__, submodules, _members(named), {}, export, modes, shared)


def _all(module: torch.nn.Module) -> list[torch.nn.Module]:
    return [m for _, m in module.named_modules()]


def _export(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any, modes: Modes
) -> tuple[Exported, Mapping[str, Tensor]]:
    with _in_modes(module, modes), warnings.catch_warnings():
        # NOTE: recurrent layers rebuild their list of weights, which the export takes for new tensors and restores.
        warnings.filterwarnings("ignore", "The tensor attributes? self.*_flat_weights", UserWarning)
        try:
            program = torch.export.export(module, args, kwargs, dynamic_shapes=dynamic_shapes)
        except GraphcError:
            raise
        # NOTE: the export runs code of the model, and has errors of many classes.
        except Exception as error:
            raise UnsupportedError(
                f"torch.export cannot export {type(module).__name__}: {_first_line(error)}",
                remedy="follow PyTorch's error above, or pass a finished ExportedProgram to from_torch",
            ) from error
    names = {n for n, _ in module.named_parameters(remove_duplicate=False)}
    names |= {n for n, _ in module.named_buffers(remove_duplicate=False)}
    constants = {
        n: tensor_of(t) for n, t in program.constants.items() if n not in names and isinstance(t, torch.Tensor)
    }
    return read_program(program, _dim_names(program, dynamic_shapes)), constants


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__


@contextmanager
def _in_modes(module: torch.nn.Module, modes: Modes) -> Iterator[None]:
    submodules = _all(module)
    before = [m.training for m in submodules]
    try:
        for submodule, mode in zip(submodules, modes, strict=True):
            submodule.training = mode
        yield
    finally:
        for submodule, mode in zip(submodules, before, strict=True):
            submodule.training = mode


def _members(named: Iterable[tuple[str, Any, str]]) -> list[Member]:
    """Copy tensors. Names of one tensor, or of tensors in the same memory, share one copy."""
    copies: dict[Any, Tensor] = {}
    members = []
    for name, tensor, kind in named:
        try:
            key = (tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype, kind == "param")
            key = key if tensor.numel() else (name,)
            if key not in copies:
                copy = tensor_of(tensor).clone()
                copies[key] = Parameter(copy, requires_grad=tensor.requires_grad) if kind == "param" else copy
        except GraphcError as error:
            error.where = error.where or name
            raise
        members.append(Member(name, copies[key], kind))
    return members


# Programs


def read_program(program: ExportedProgram, names: Mapping[str, str] | None = None) -> Exported:
    """Convert an ExportedProgram to a graph and its calling convention.

    ``names`` maps PyTorch's symbols to names of dimensions. Raises UnsupportedError for features that graphc lacks,
    such as some element types and effect tokens.
    """
    signature = program.graph_signature
    graph = read_fx(program.graph_module, "main")
    nodes = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    sizes = GraphSizes(names=names)
    inputs = [_input(spec, nodes, sizes) for spec in signature.input_specs]
    writes, results = [], []
    for number, spec in enumerate(signature.output_specs):
        if spec.kind is OutputKind.USER_OUTPUT:
            results.append(number)
        elif spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION):
            writes.append(Write(number, path=str(spec.target)))
        elif spec.kind is OutputKind.USER_INPUT_MUTATION:
            input_names = [s.arg.name for s in signature.input_specs if s.kind is InputKind.USER_INPUT]
            writes.append(Write(number, argument=input_names.index(str(spec.target))))
        else:
            raise UnsupportedError(f"graphc cannot read a result of the kind {spec.kind.name}", where=str(spec.arg))
    spec = program.call_spec
    takes = structure_of(spec.in_spec)
    assert isinstance(takes, Branch)
    call_signature = program.module_call_graph[0].signature
    names_of = tuple(call_signature.forward_arg_names or ()) if call_signature is not None else ()
    gives, guards = structure_of(spec.out_spec), tuple(getattr(program, "_guards_code", None) or ())
    extents = {n: _memory_extent(t) for n, t in {**program.state_dict, **program.constants}.items() if _has_memory(t)}
    return Exported(graph, inputs, takes, gives, names_of, tuple(results), tuple(writes), guards, overlapping(extents))


def _has_memory(tensor: Any) -> bool:
    return isinstance(tensor, torch.Tensor) and tensor.layout is torch.strided


def _memory_extent(tensor: torch.Tensor) -> tuple[Any, int, int, Any]:
    """Return the storage, the byte range in it, and a key that tensors in the same memory share."""
    low = int(tensor.storage_offset()) * tensor.itemsize
    last = sum((d - 1) * s for d, s in zip(tensor.shape, tensor.stride(), strict=True))
    high = low + (last + 1) * tensor.itemsize if tensor.numel() else low
    key = (low, tuple(tensor.shape), tensor.stride(), tensor.dtype)
    return tensor.untyped_storage().data_ptr(), low, high, key


def _input(spec: InputSpec, nodes: Mapping[str, Any], sizes: GraphSizes) -> ModuleTensor | CallArgument | FixedArgument:
    if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
        return ModuleTensor(str(spec.target))
    if spec.kind is not InputKind.USER_INPUT:
        raise UnsupportedError(f"graphc cannot read an argument of the kind {spec.kind.name}", where=str(spec.arg))
    if isinstance(spec.arg, ConstantArgument):
        return FixedArgument(spec.arg.name, spec.arg.value)
    value = nodes[spec.arg.name].meta["val"]
    if isinstance(value, torch.Tensor):
        return CallArgument(spec.arg.name, sizes.shape(value.shape), dtype_of(value.dtype))
    if isinstance(value, (int, torch.SymInt)) and not isinstance(value, bool):
        return CallArgument(spec.arg.name, Number((sizes.of(value),)))
    raise UnsupportedError(f"calls cannot pass arguments of {type(value).__name__}", where=spec.arg.name)


_PLAIN: dict[Any, Callable[[Any, tuple[Structure, ...]], Structure]] = {
    tuple: lambda context, children: Branch(tuple, (), children),
    list: lambda context, children: Branch(list, (), children),
    dict: lambda context, children: Branch(dict, tuple(context), children),
}


def structure_of(spec: Any) -> Structure:
    """Return the nesting of arguments or results.

    Registered classes with named fields, such as the results of transformers, become dictionaries. Tuples with named
    fields of PyTorch's operators become tuples. Raises UnsupportedError for others.
    """
    if spec.is_leaf():
        return LEAF
    children = tuple([structure_of(child) for child in spec.children()])
    kind, context = spec.type, spec.context
    if kind in _PLAIN:
        return _PLAIN[kind](context, children)
    if isinstance(context, type) and hasattr(context, "_fields"):
        return Branch(context, context._fields, children)
    if isinstance(kind, type) and issubclass(kind, tuple):
        return Branch(tuple, (), children)
    keys = _keys_of(context, len(children))
    if keys is None:
        raise UnsupportedError(f"graphc cannot read arguments or results in a {getattr(kind, '__name__', kind)}")
    return Branch(dict, keys, children)


def _keys_of(context: Any, count: int) -> tuple[Any, ...] | None:
    """Return the field names of a registered class, as PyTorch stores them."""
    is_sequence = isinstance(context, (list, tuple))
    for candidate in (context, *(context if is_sequence else ())):
        if (
            isinstance(candidate, (list, tuple))
            and len(candidate) == count
            and all(isinstance(k, str) for k in candidate)
        ):
            return tuple(candidate)
    return None


def _dim_names(program: ExportedProgram, dynamic_shapes: Any) -> dict[str, str]:
    """Return the user's names of the dimensions, by PyTorch's symbols."""
    if dynamic_shapes is None:
        return {}
    read = read_program(program)
    values = {n.name: n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"}
    dim_names: dict[str, str] = {}
    for spec, call_input in zip(_specs_of(dynamic_shapes, read), read.call_arguments, strict=True):
        value = values.get(call_input.title)
        for number, dim in _entries(spec):
            size = value.shape[number] if isinstance(value, torch.Tensor) else value
            name = getattr(dim, "__name__", "")
            if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol and name.isidentifier():
                dim_names.setdefault(str(size.node.expr), name)
    return dim_names


def _entries(spec: Any) -> Iterable[tuple[int, Any]]:
    if isinstance(spec, Mapping):
        return spec.items()
    return enumerate(spec) if isinstance(spec, (tuple, list)) else ((0, spec),)


def _specs_of(dynamic_shapes: Any, read: Exported) -> list[Any]:
    """Return the entry of ``dynamic_shapes`` for each leaf of the arguments."""
    first, named = read.argument_tree.children
    assert isinstance(first, Branch) and isinstance(named, Branch)
    names = [*read.names[: len(first.children)], *named.keys]
    arguments = [*first.children, *named.children]
    by_name = isinstance(dynamic_shapes, Mapping)
    specs = [dynamic_shapes.get(n) for n in names] if by_name else list(dynamic_shapes)
    specs += [None] * (len(arguments) - len(specs))
    return [leaf for argument, spec in zip(arguments, specs, strict=False) for leaf in _leaf_specs(argument, spec)]


def _leaf_specs(structure: Structure, spec: Any) -> Iterator[Any]:
    if not isinstance(structure, Branch):
        yield spec
        return
    for number, child in enumerate(structure.children):
        key = structure.keys[number] if structure.keys else number
        inner = (
            spec.get(key) if isinstance(spec, Mapping) else spec[number] if isinstance(spec, (tuple, list)) else None
        )
        yield from _leaf_specs(child, inner)
