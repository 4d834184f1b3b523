"""Loader in Python of a C library, which needs numpy alone."""

from __future__ import annotations

import re
from keyword import iskeyword
from string import Template
from typing import Any

from graphc.base.dtypes import BY_NAME, bfloat16
from graphc.c_library.bindings import shape_equations
from graphc.c_library.plan import CODES, HEADER_BYTES, EntryPlan, LibraryArgument, LibraryPlan
from graphc.files.container import ALIGNMENT

_TEXT = Template('''\
"""$name without graphc: its library through ctypes, with numpy alone. Written by graphc $version."""

import ctypes
import os
import threading

import numpy as np

ENTRIES = {}  # types of inputs and outputs, how sizes follow from the shapes of inputs, and the sizes that C takes
$entries


def aligned(size):
    return (memory := np.empty(size + $alignment, np.uint8))[-memory.ctypes.data % $alignment :][:size]


class Model:
    def __init__(self, folder=os.path.dirname(os.path.abspath(__file__))):
        self.c = ctypes.CDLL(f"{folder}/$library")
        self.c.${name}_digest.restype = self.c.${name}_error_text.restype = ctypes.c_char_p
        if self.c.${name}_digest() != b"$digest":
            raise RuntimeError("the library and this file are of different builds")
        self.context, self.arena, self.lock = aligned($context), aligned(0), threading.Lock()
$init
        for entry in ENTRIES:
            setattr(self, entry, lambda *arrays, entry=entry, **named: self.run_entry(entry, arrays, named))
            getattr(self.c, f"${name}_{entry}_arena_size").restype = ctypes.c_size_t

    def call(self, function, *arguments):
        given = [ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else a for a in arguments]
        if code := getattr(self.c, f"${name}_{function}")(*given):
            kind = {$size_code: ValueError, $index_code: IndexError}.get(code, RuntimeError)
            raise kind(self.c.${name}_error_text(code).decode())

    def run_entry(self, entry, arrays, named):
        (inputs, outputs, rules, sizes), named = ENTRIES[entry], {**dict(zip(ENTRIES[entry][0], arrays)), **named}
        if len(arrays) > len(inputs) or not {*inputs} <= {*named} <= {*inputs, *rules}:
            raise TypeError(f"{entry} takes {', '.join([*inputs, *rules])}")
        given = {name: np.asarray(named.pop(name), order="C") for name in inputs}
        known = {"shapes": {name: (*array.shape, *[0] * $rank) for name, array in given.items()}}
        for name, rule in rules.items():
            named[name] = named[name] if name in named else eval(rule, known, named)
        for name, (kind, shape) in inputs.items():
            if given[name].dtype != kind or given[name].shape != eval(shape, {}, named):
                raise ValueError(f"{entry}: {name} is {kind} {shape}, not {given[name].dtype} {given[name].shape}")
        results = [np.empty(eval(shape, {}, named), kind) for kind, shape in outputs.values()]
        sizes = [ctypes.c_int64(named[name]) for name in sizes]
        need = getattr(self.c, f"${name}_{entry}_arena_size")(*sizes)
        with self.lock:  # states and arena are those of this object
            self.arena = aligned(need) if self.arena.size < need < 2**63 else self.arena
            arena = self.arena, ctypes.c_size_t(self.arena.size)
            self.call(entry, self.context, *sizes, *given.values(), *results, *arena)
        return results[0] if len(results) == 1 else tuple(results)

    def save_state(self):
        self.call("save_state", self.context, state := np.empty($state, np.uint8), ctypes.c_size_t($state))
        return state.tobytes()

    def load_state(self, state):
        self.call("load_state", self.context, np.frombuffer(state, np.uint8), ctypes.c_size_t(len(state)))
''')
_INSIDE = Template('self.call("init", self.context, ctypes.c_size_t($context))')
_BESIDE = Template("""\
self.weights = np.memmap(f"{folder}/$weights", np.uint8, "r")
        self.call("init", self.context, ctypes.c_size_t($context), self.weights, ctypes.c_size_t(self.weights.size))""")


def python_loader(plan: LibraryPlan, library: str, weights: str) -> str:
    """Return the file's text; ``library`` and ``weights`` are the names of files in the same folder."""
    init = (_BESIDE if plan.is_beside else _INSIDE).substitute(context=plan.context_bytes, weights=weights)
    return _TEXT.substitute(
        name=plan.name,
        version=plan.version,
        entries="\n".join(map(_entry, plan.entries)),
        alignment=ALIGNMENT,
        library=library,
        digest=plan.digest.hex(),
        context=plan.context_bytes,
        init=" " * 8 + init,
        size_code=CODES["ERROR_SIZE"],
        index_code=CODES["ERROR_INDEX"],
        rank=max((len(a.spec.shape) for e in plan.entries for a in e.inputs), default=0),
        state=HEADER_BYTES + plan.state_bytes,
    )


def _entry(entry: EntryPlan) -> str:
    types = [", ".join(f"{a.spec.name!r}: {_type(entry, a)}" for a in group) for group in (entry.inputs, entry.outputs)]
    rules = ", ".join(f"{name!r}: {rule!r}" for name, rule in _rules(entry).items())
    sizes = [*_dim_names(entry).values()]
    return f"ENTRIES[{entry.name!r}] = ({{{types[0]}}}, {{{types[1]}}}, {{{rules}}}, {sizes!r})"


def _type(entry: EntryPlan, argument: LibraryArgument) -> str:
    dtype = BY_NAME[argument.spec.dtype]
    name = "uint16" if dtype is bfloat16 else dtype.numpy.name  # numpy has no bf16, so arrays hold its bits
    return repr((name, f"({''.join(f'{_size(entry, size)}, ' for size in argument.spec.shape).rstrip()})"))


def _dim_names(entry: EntryPlan) -> dict[str, str]:
    """Return a Python variable for each dimension, by the dimension's text in sizes, where unusual names have quotes.

    A dimension keeps its name if expressions of the loader can use it.
    """
    variables = {}
    for dimension, name in zip(entry.dims, entry.dim_identifiers, strict=True):
        if str(dimension) != dimension.name:
            variables[str(dimension)] = name
        else:
            variables[dimension.name] = f"{name}_" if iskeyword(name) or name == "shapes" else dimension.name
    return variables


def _size(entry: EntryPlan, size: Any) -> str:
    """Format a size as an expression of Python."""
    names = _dim_names(entry)
    return re.sub(r"`[^`]*`|[^\W\d]\w*", lambda match: names.get(match[0], match[0]), str(size))


def _rules(entry: EntryPlan) -> dict[str, str]:
    """Return, for each dimension, a rule that computes it from ``shapes`` and those before it.

    The rule of a dimension that no shape determines is its own name: the caller must pass it by keyword.
    """
    names, rules = _dim_names(entry), {}
    for number, axis, dimension, factor, rest in shape_equations(entry):
        size = f"shapes[{entry.inputs[number].spec.name!r}][{axis}]"
        numerator = f"({size} - ({_size(entry, rest)}))" if str(rest) != "0" else size
        rules[names[str(dimension)]] = numerator if factor == 1 else f"{numerator} // {factor}"
    return {**{name: name for name in names.values() if name not in rules}, **rules}
