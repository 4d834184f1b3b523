"""Programs of graphs: their keys in the disk cache, and loading into this process, without importing a compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.base.sizes.size_limits import in_terms_of
from graphc.compiler.cache import Cache, CacheEntry
from graphc.compiler.ready import key_on, key_text, load_ready
from graphc.compiler.refusals import Refusals, checks_of
from graphc.files.manifest import TargetSpec
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.text import collect_data, print_graph
from graphc.runtime.call import Executable

if TYPE_CHECKING:
    from graphc.codegen.machine.target import Target


def key_inputs_of(graph: Graph, target: Target | str, text: str = "") -> tuple[str | np.ndarray, ...]:
    """Return the inputs of the code of a graph besides options and compiler: the target, the graph, and what it assumes
    of sizes. ``target`` may be its ``key_text``; ``text`` is that of the graph, where it has been printed.
    """
    facts = target if isinstance(target, str) else key_text(target)
    return ("graph", facts, text or print_graph(graph), *assumed_sizes(graph), *collect_data(graph).values())


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
