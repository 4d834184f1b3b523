"""Reads what ``torch.export`` makes: an ExportedProgram, or a module that is exported here."""

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
from graphc.interop.aten.exported import Exported, Fixed, Given, Held, Write, overlapping
from graphc.interop.aten.module import ImportedModule, Modes
from graphc.interop.parts import Member
from graphc.interop.torch.fx import dtype_of, read_fx, tensor_of
from graphc.interop.torch.sizes import Sizes
from graphc.nn.parameter import Parameter
from graphc.tensors.structure import LEAF, Branch, Structure
from graphc.tensors.tensor import Tensor


def from_torch(
    source: torch.nn.Module | ExportedProgram,
    args: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> ImportedModule:
    """The module of graphc that computes what ``source`` does; see ``graphc.from_torch``."""
    if isinstance(source, ExportedProgram):
        if args or kwargs or dynamic_shapes is not None:
            raise ArgumentError("from_torch: an ExportedProgram has its arguments and shapes already")
        return _of_program(source)
    if not isinstance(source, torch.nn.Module):
        raise ArgumentError(
            f"from_torch takes a torch.nn.Module or an ExportedProgram, not {type(source).__name__}",
            remedy="graphc.compile of a module or function of graphc",
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
    """Paths and class names of the modules that nodes come from."""
    found: dict[str, tuple[str, str]] = {}
    for node in program.graph.nodes:
        for path, kind in (node.meta.get("nn_module_stack") or {}).values():
            found.setdefault(path, (path, str(kind).rpartition(".")[2]))
    return found


def _kind(program: ExportedProgram) -> str:
    return _modules_of(program).get("", ("", "ExportedProgram"))[1]


def _of_module(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any
) -> ImportedModule:
    named: list[tuple[str, Any, str]] = []
    parts, first = [], {part: path for path, part in module.named_modules()}
    shared: dict[str, str] = {}
    for path, part in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        if path:
            parts.append((path, type(part).__name__))
        if first[part] != path:
            shared[path] = first[part]
        kept = part._non_persistent_buffers_set
        named += [(prefix + n, t, "param") for n, t in part._parameters.items() if t is not None]
        held = [(n, t) for n, t in part._buffers.items() if t is not None]
        named += [(prefix + n, t, "transient" if n in kept else "buffer") for n, t in held]
    export = functools.partial(_export, module, args, kwargs, dynamic_shapes)
    modes = tuple([m.training for m in _all(module)])
    return ImportedModule(type(module).__name__, parts, _members(named), {}, export, modes, shared)


def _all(module: torch.nn.Module) -> list[torch.nn.Module]:
    return [m for _, m in module.named_modules()]


def _export(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any, modes: Modes
) -> tuple[Exported, Mapping[str, Tensor]]:
    with _in_modes(module, modes), warnings.catch_warnings():
        # NOTE: recurrent layers list their own weights anew, which the export takes for new tensors and puts back.
        warnings.filterwarnings("ignore", "The tensor attributes? self.*_flat_weights", UserWarning)
        try:
            program = torch.export.export(module, args, kwargs, dynamic_shapes=dynamic_shapes)
        except GraphcError:
            raise
        # NOTE: the export runs code of the model, and has errors of many classes.
        except Exception as error:
            raise UnsupportedError(
                f"torch.export cannot export {type(module).__name__}: {_first_line(error)}",
                remedy="what PyTorch's error above says; from_torch takes a finished ExportedProgram, too",
            ) from error
    held = {n for n, _ in module.named_parameters(remove_duplicate=False)}
    held |= {n for n, _ in module.named_buffers(remove_duplicate=False)}
    constants = {n: tensor_of(t) for n, t in program.constants.items() if n not in held and isinstance(t, torch.Tensor)}
    return read_program(program, _dim_names(program, dynamic_shapes)), constants


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__


@contextmanager
def _in_modes(module: torch.nn.Module, modes: Modes) -> Iterator[None]:
    parts = _all(module)
    before = [m.training for m in parts]
    try:
        for part, mode in zip(parts, modes, strict=True):
            part.training = mode
        yield
    finally:
        for part, mode in zip(parts, before, strict=True):
            part.training = mode


def _members(named: Iterable[tuple[str, Any, str]]) -> list[Member]:
    """Copies of tensors; those that are one tensor, or lie at one place, stay one."""
    made: dict[Any, Tensor] = {}
    found = []
    for name, tensor, kind in named:
        try:
            key = (tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype, kind == "param")
            key = key if tensor.numel() else (name,)
            if key not in made:
                copy = tensor_of(tensor).clone()
                made[key] = Parameter(copy, requires_grad=tensor.requires_grad) if kind == "param" else copy
        except GraphcError as error:
            error.where = error.where or name
            raise
        found.append(Member(name, made[key], kind))
    return found


# Programs


def read_program(program: ExportedProgram, names: Mapping[str, str] | None = None) -> Exported:
    """The graph of an ExportedProgram and how it is called; ``names`` are those of dimensions by PyTorch's symbols.

    Raises UnsupportedError for what graphc does not have, such as element types and tokens of effects."""
    signature = program.graph_signature
    graph = read_fx(program.graph_module, "main")
    nodes = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    sizes = Sizes(names=names)
    inputs = [_input(spec, nodes, sizes) for spec in signature.input_specs]
    writes, results = [], []
    for number, spec in enumerate(signature.output_specs):
        if spec.kind is OutputKind.USER_OUTPUT:
            results.append(number)
        elif spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION):
            writes.append(Write(number, path=str(spec.target)))
        elif spec.kind is OutputKind.USER_INPUT_MUTATION:
            titles = [s.arg.name for s in signature.input_specs if s.kind is InputKind.USER_INPUT]
            writes.append(Write(number, given=titles.index(str(spec.target))))
        else:
            raise UnsupportedError(f"a result of the kind {spec.kind.name}", where=str(spec.arg))
    spec = program.call_spec
    takes = structure_of(spec.in_spec)
    assert isinstance(takes, Branch)
    shown = program.module_call_graph[0].signature
    names_of = tuple(shown.forward_arg_names or ()) if shown is not None else ()
    gives, guards = structure_of(spec.out_spec), tuple(getattr(program, "_guards_code", None) or ())
    places = {n: _place(t) for n, t in {**program.state_dict, **program.constants}.items() if _has_memory(t)}
    return Exported(graph, inputs, takes, gives, names_of, tuple(results), tuple(writes), guards, overlapping(places))


def _has_memory(tensor: Any) -> bool:
    return isinstance(tensor, torch.Tensor) and tensor.layout is torch.strided


def _place(tensor: torch.Tensor) -> tuple[Any, int, int, Any]:
    """The storage, the bytes of it, and what tensors at the same place have in common."""
    low = int(tensor.storage_offset()) * tensor.itemsize
    last = sum((d - 1) * s for d, s in zip(tensor.shape, tensor.stride(), strict=True))
    high = low + (last + 1) * tensor.itemsize if tensor.numel() else low
    place = (low, tuple(tensor.shape), tensor.stride(), tensor.dtype)
    return tensor.untyped_storage().data_ptr(), low, high, place


def _input(spec: InputSpec, nodes: Mapping[str, Any], sizes: Sizes) -> Held | Given | Fixed:
    if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
        return Held(str(spec.target))
    if spec.kind is not InputKind.USER_INPUT:
        raise UnsupportedError(f"an argument of the kind {spec.kind.name}", where=str(spec.arg))
    if isinstance(spec.arg, ConstantArgument):
        return Fixed(spec.arg.name, spec.arg.value)
    value = nodes[spec.arg.name].meta["val"]
    if isinstance(value, torch.Tensor):
        return Given(spec.arg.name, sizes.shape(value.shape), dtype_of(value.dtype))
    if isinstance(value, (int, torch.SymInt)) and not isinstance(value, bool):
        return Given(spec.arg.name, Number((sizes.of(value),)))
    raise UnsupportedError(f"an argument of {type(value).__name__} that each call gives", where=spec.arg.name)


_PLAIN: dict[Any, Callable[[Any, tuple[Structure, ...]], Structure]] = {
    tuple: lambda context, parts: Branch(tuple, (), parts),
    list: lambda context, parts: Branch(list, (), parts),
    dict: lambda context, parts: Branch(dict, tuple(context), parts),
}


def structure_of(spec: Any) -> Structure:
    """How arguments or results are nested. Classes that PyTorch has registered with names for their parts, such as the
    results of transformers, are dictionaries; pairs with names of operators are tuples; raises UnsupportedError for
    others."""
    if spec.is_leaf():
        return LEAF
    parts = tuple([structure_of(part) for part in spec.children()])
    kind, context = spec.type, spec.context
    if kind in _PLAIN:
        return _PLAIN[kind](context, parts)
    if isinstance(context, type) and hasattr(context, "_fields"):
        return Branch(context, context._fields, parts)
    if isinstance(kind, type) and issubclass(kind, tuple):
        return Branch(tuple, (), parts)
    keys = _keys_of(context, len(parts))
    if keys is None:
        raise UnsupportedError(f"arguments or results in a {getattr(kind, '__name__', kind)}")
    return Branch(dict, keys, parts)


def _keys_of(context: Any, count: int) -> tuple[Any, ...] | None:
    """The names of the parts of a registered class, as PyTorch keeps them."""
    known = isinstance(context, (list, tuple))
    for found in (context, *(context if known else ())):
        if isinstance(found, (list, tuple)) and len(found) == count and all(isinstance(k, str) for k in found):
            return tuple(found)
    return None


def _dim_names(program: ExportedProgram, dynamic_shapes: Any) -> dict[str, str]:
    """What the user calls the dimensions for which PyTorch has symbols."""
    if dynamic_shapes is None:
        return {}
    read = read_program(program)
    values = {n.name: n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"}
    found: dict[str, str] = {}
    for spec, given in zip(_specs_of(dynamic_shapes, read), read.given, strict=True):
        value = values.get(given.title)
        for number, dim in _entries(spec):
            size = value.shape[number] if isinstance(value, torch.Tensor) else value
            name = getattr(dim, "__name__", "")
            if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol and name.isidentifier():
                found.setdefault(str(size.node.expr), name)
    return found


def _entries(spec: Any) -> Iterable[tuple[int, Any]]:
    if isinstance(spec, Mapping):
        return spec.items()
    return enumerate(spec) if isinstance(spec, (tuple, list)) else ((0, spec),)


def _specs_of(dynamic_shapes: Any, read: Exported) -> list[Any]:
    """What ``dynamic_shapes`` says of each leaf of the arguments."""
    first, named = read.takes.children
    assert isinstance(first, Branch) and isinstance(named, Branch)
    names = [*read.names[: len(first.children)], *named.keys]
    parts = [*first.children, *named.children]
    by_name = isinstance(dynamic_shapes, Mapping)
    specs = [dynamic_shapes.get(n) for n in names] if by_name else list(dynamic_shapes)
    specs += [None] * (len(parts) - len(specs))
    return [leaf for part, spec in zip(parts, specs, strict=False) for leaf in _leaf_specs(part, spec)]


def _leaf_specs(part: Structure, spec: Any) -> Iterator[Any]:
    if not isinstance(part, Branch):
        yield spec
        return
    for number, child in enumerate(part.children):
        key = part.keys[number] if part.keys else number
        inner = (
            spec.get(key) if isinstance(spec, Mapping) else spec[number] if isinstance(spec, (tuple, list)) else None
        )
        yield from _leaf_specs(child, inner)
