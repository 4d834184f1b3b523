"""Programs of graphs: their keys in the disk cache, and loading into this process, without importing a compiler."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from graphc.base.lazy import deferred
from graphc.base.sizes.size_limits import in_terms_of
from graphc.compiler.cache import Cache, CacheEntry
from graphc.compiler.ready import key_on, key_text, load_ready
from graphc.compiler.refusals import Refusals, checks_of
from graphc.files.digests import sha256
from graphc.files.manifest import TargetSpec
from graphc.ir.graph.graph import CONSTANT, INPUT, Graph, Value, input_class
from graphc.ir.graph.text import collect_data, print_dims, print_graph, print_node, print_return
from graphc.runtime.call import Executable

if TYPE_CHECKING:
    from graphc.codegen.machine.target import Target

with_changes = deferred("graphc.codegen.machine.settings:with_changes")
parse_changes = deferred("graphc.codegen.machine.settings:parse_changes")

TUNED = "program "
"""Prefix of the keys under which the cache has the costs that tuning chose for a program."""
_KERNEL_FOLDER = re.compile(r"ipykernel_\d+")
"""Folder of the cells of a notebook, with the number of the process, which differs in each run."""


def key_inputs_of(graph: Graph, target: Target | str, text: str = "") -> tuple[str | np.ndarray, ...]:
    """Return the inputs of the code of a graph besides options and compiler: the target, the graph, and what it assumes
    of sizes. ``target`` may be its ``key_text``; ``text`` is that of the graph, where it has been printed.
    """
    facts = target if isinstance(target, str) else key_text(target)
    text = _KERNEL_FOLDER.sub("ipykernel", text or print_graph(graph))
    return ("graph", facts, text, *assumed_sizes(graph), *collect_data(graph).values())


def assumed_sizes(graph: Graph) -> list[str]:
    """Return the assumptions of a graph about sizes as texts, without the lines that asked.

    NOTE: calls check the assumptions of their own trace only, so code that relies on others must not serve them.
    """
    return [str(a._replace(place="")) for a in in_terms_of(graph.assumptions, graph.dims)]


def program_key(disk: Cache, graph: Graph, target: TargetSpec, facts: str, text: str = "") -> str:
    """Return the key in a cache of the program that the standard passes make of a graph, which prints as ``text``.

    ``facts`` is the ``key_text`` of the target.
    """
    return key_on(disk, target, key_inputs_of(graph, facts, text))


def load_program(compiled: CacheEntry, graph: Graph) -> Executable:
    """Load the code of a graph into this process, and let the graph explain calls that its checks stop."""
    program = load_ready(compiled)
    if program.status_slot >= 0:
        checks = checks_of(graph)
        program.explain = Refusals(lambda: checks)
    return program


def tuning_key(graph: Graph) -> str:
    """Return the key of the costs that tuning chose for a graph.

    It depends on ops, attributes and types. Names, places in the source, and the values of weights do not count, nor
    whether weights are constants: costs that suit a program suit it after another training.
    """
    return TUNED + sha256("\n".join(_structure(graph)).encode()).hex()


def _structure(graph: Graph) -> Iterable[str]:
    """Yield the lines of a graph, with numbers for names and no lines for weights and constants."""
    numbers, next_number = dict[Value, str](), count()

    def name_of(value: Value) -> str:
        if value not in numbers:
            weight = " weight" if value.node.op is CONSTANT or input_class(value) not in ("", "input") else ""
            numbers[value] = f"%{next(next_number)}{weight}: {value.type}"
        return numbers[value]

    yield from print_dims(graph)
    yield " ".join(name_of(v) for v in graph.inputs if input_class(v) == "input")
    for node in graph.nodes():
        if node.op not in (CONSTANT, INPUT):
            yield print_node(node, name_of, lambda sub_graph: "\n".join(_structure(sub_graph)))
    yield print_return(graph, name_of)


def tuned_target(graph: Graph, target: Target, choices: Mapping[str, str]) -> Target:
    """Return the target with the costs that tuning chose for a graph.

    Costs that this version of graphc does not have, or cannot read, change nothing.
    """
    if not any(key.startswith(TUNED) and text for key, text in choices.items()):
        return target
    text = choices.get(tuning_key(graph), "")
    try:
        return replace(target, costs=with_changes(target.costs, parse_changes(text, target.costs))) if text else target
    except (KeyError, ValueError):
        return target
