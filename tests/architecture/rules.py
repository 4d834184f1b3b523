"""The rules of the house, each a function from sources to a list of violations."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import PurePosixPath

import networkx as nx

from tests.architecture.scan import Import, Source
from tools.floors import FRONT_DOOR, floor_of, imports_allowed

MAX_FILE_LINES = 600
MAX_EXAMPLE_LINES = 80
MAX_FUNCTION_LINES = 60

REQUIRED_PACKAGES = frozenset({"numpy", "llvmlite", "networkx"})
# An optional third-party package belongs to one file, which may import it inside a function, or to one folder; the
# format of ONNX to the file that reads it, and to the one that writes it.
OPTIONAL_OWNERS: dict[str, str | tuple[str, ...]] = {
    "PIL": "graphc/files/image_file.py",
    "cupy": "graphc/runtime/devices/cuda.py",
    "rich": "graphc/monitor/terminal.py",
    "onnx": ("graphc/interop/onnx/package.py", "graphc/interop/onnx_export/protobuf.py"),
    "safetensors": "graphc/checkpoints/safetensors_file.py",
    "jinja2": "graphc/llm/chat_template.py",
    "tokenizers": "graphc/llm/tokenizer.py",
    "tensorboardX": "graphc/monitor/tensorboard.py",
    "jax": "graphc/interop/stablehlo/jax_export.py",
    "jaxlib": "graphc/interop/stablehlo/jax_export.py",
    "torch": "graphc/interop/torch/",
}

INSTALL_OWNER = "graphc/base/installation.py"
"""File that knows which pip command installs graphc: that differs between a clone and an index."""
_INSTALL_HINT = re.compile(r"pip install.*(?:graphc|graphc-compiler|\.)\[|pip install.*--group")

FORBIDDEN_WORDS = frozenset({"util", "utils", "helper", "helpers", "common", "misc", "manager", "managers"})
# An import path that users of PyTorch know.
KNOWN_PATHS = (
    *("graphc/nn/utils/", "tests/nn/utils/", "graphc/optim/swa_utils.py", "tests/optim/test_swa_utils.py"),
    *("graphc/utils/", "tests/utils/"),
)

DATA_CLASSES_FILE = "graphc/base/records.py"
GRAPH_FILE = "graphc/ir/graph/graph.py"
NETWORKX_WRITERS = frozenset(
    f"{verb}_{noun}" for verb in ("add", "remove") for noun in ("node", "nodes_from", "edge", "edges_from")
) | {"add_weighted_edges_from"}


def check_floors(sources: Iterable[Source]) -> list[str]:
    """Each module of graphc stands on a floor with a name, and imports what its floor may import."""
    messages = []
    for source in _in_graphc(sources):
        try:
            here = floor_of(source.module)
        except KeyError:
            messages.append(f"{source.path}: its package has no floor (tools/floors.py)")
            continue
        if here is None:
            continue
        for imported in source.imports:
            there = _floor_imported(imported) if imported.module.startswith("graphc.") else here
            if there is None or not imports_allowed(here, there):
                messages.append(f"{source.path}:{imported.line}: {here} imports {imported.module}")
        messages.extend(
            f"{source.path}:{imported.line}: a module below the front door imports graphc itself"
            for imported in source.imports
            if imported.module == "graphc" and not _takes_submodules(source, imported)
        )
    return messages


def check_front_door(sources: Iterable[Source]) -> list[str]:
    """At the top of graphc there are only packages and the modules whose import path users know."""
    return [
        f"{source.path}: belongs into a package"
        for source in _in_graphc(sources)
        if source.path.count("/") == 1 and PurePosixPath(source.path).stem not in FRONT_DOOR
    ]


def check_cycles(sources: Iterable[Source]) -> list[str]:
    """Modules of graphc do not import each other in a circle when they are loaded."""
    sources = list(_in_graphc(sources))
    modules = {source.module for source in sources}
    graph = nx.DiGraph(
        (source.module, imported.module)
        for source in sources
        for imported in source.imports
        if imported.module in modules and not imported.typing_only and not _only_packages(source, imported, modules)
    )
    circles = [sorted(component) for component in nx.strongly_connected_components(graph) if len(component) > 1]
    return [f"import cycle: {' '.join(circle)}" for circle in sorted(circles)]


def check_nested_imports(sources: Iterable[Source]) -> list[str]:
    """Imports stand at module level, except an optional package in the file that owns it."""
    return [
        f"{source.path}:{imported.line}: nested import of {imported.module}"
        for source in sources
        for imported in source.imports
        if imported.nested and not source.path.startswith(OPTIONAL_OWNERS.get(_top(imported.module), "-"))
    ]


def check_third_party(sources: Iterable[Source], standard: frozenset[str]) -> list[str]:
    """graphc imports the standard library, its three dependencies, and optional packages in the files that own them."""
    allowed = standard | REQUIRED_PACKAGES | {"graphc", "__future__"}
    return [
        f"{source.path}:{imported.line}: imports {_top(imported.module)}, which is no dependency"
        for source in _in_graphc(sources)
        for imported in source.imports
        if _top(imported.module) not in allowed
        and not source.path.startswith(OPTIONAL_OWNERS.get(_top(imported.module), "-"))
    ]


def check_install_hints(sources: Iterable[Source]) -> list[str]:
    """Messages take the pip command for an extra or a group from one file, and do not write it themselves."""
    return [
        f"{source.path}:{node.lineno}: writes a pip command, call install_command or group_command"
        for source in sources
        if source.path.startswith(("graphc/", "benchmarks/", "examples/")) and source.path != INSTALL_OWNER
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _INSTALL_HINT.search(node.value)
    ]


def check_data_classes(sources: Iterable[Source]) -> list[str]:
    """Data classes of graphc are decorated by base.records, which generates their methods at first use."""
    return [
        f"{source.path}: takes dataclass of Python, import it from graphc.base.records"
        for source in _in_graphc(sources)
        if source.path != DATA_CLASSES_FILE
        and (
            any(imported.module == "dataclasses.dataclass" for imported in source.imports)
            or any(isinstance(n, ast.Attribute) and ast.unparse(n) == "dataclasses.dataclass" for n in source.nodes)
        )
    ]


def check_broad_excepts(sources: Iterable[Source]) -> list[str]:
    """Check that a note explains each `except Exception` and `except BaseException` of graphc."""
    messages = []
    for source in _in_graphc(sources):
        lines = source.text.splitlines()
        for handler in source.nodes:
            if not isinstance(handler, ast.ExceptHandler) or not _is_broad(handler.type):
                continue
            above = takewhile(lambda line: line.lstrip().startswith("#"), reversed(lines[: handler.lineno - 1]))
            if not any("# NOTE: " in line for line in (lines[handler.lineno - 1], *above)):
                messages.append(f"{source.path}:{handler.lineno}: catches everything, and no note says why")
    return messages


def _is_broad(caught: ast.expr | None) -> bool:
    names = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(n is None or (isinstance(n, ast.Name) and n.id in ("Exception", "BaseException")) for n in names)


def check_file_length(sources: Iterable[Source]) -> list[str]:
    """A file has at most 600 lines, an example fewer than 80."""
    messages = []
    for source in sources:
        limit = MAX_EXAMPLE_LINES - 1 if source.path.startswith("examples/") else MAX_FILE_LINES
        lines = len(source.text.splitlines())
        if lines > limit:
            messages.append(f"{source.path}: {lines} lines, at most {limit}")
    return messages


def check_function_length(sources: Iterable[Source]) -> list[str]:
    """A function has at most 60 lines, its docstring included and its decorators not."""
    messages = []
    for source in sources:
        for function in source.functions:
            lines = (function.end_lineno or function.lineno) - function.lineno + 1
            if lines > MAX_FUNCTION_LINES:
                messages.append(f"{source.path}:{function.lineno}: {function.name} has {lines} lines")
    return messages


def check_first_sentence(sources: Iterable[Source]) -> list[str]:
    """The first line of each module is one sentence; only an empty ``__init__`` outside graphc has none."""
    messages = []
    for source in sources:
        if not source.text.strip() and source.path.endswith("__init__.py") and not source.path.startswith("graphc/"):
            continue
        docstring = ast.get_docstring(source.tree) or ""
        line = docstring.splitlines()[0].strip() if docstring else ""
        if not line:
            messages.append(f"{source.path}: no module docstring")
        elif not line.endswith(".") or re.search(r"[a-z)`]\. [A-Z]", line):
            messages.append(f"{source.path}: the docstring's first line is not one sentence: {line!r}")
    return messages


def check_names(sources: Iterable[Source]) -> list[str]:
    """No module or package is called utils, helpers, common, misc, manager, or something that ends so."""
    messages = []
    for source in sources:
        if source.path.startswith(KNOWN_PATHS):
            continue
        for component in PurePosixPath(source.path).with_suffix("").parts:
            if component.lower().split("_")[-1] in FORBIDDEN_WORDS:
                messages.append(f"{source.path}: {component} says nothing about what is inside")
    return messages


def check_graph_writers(sources: Iterable[Source]) -> list[str]:
    """Only graphc/ir/graph/graph.py writes to a networkx graph.

    A call of a networkx writer by name counts, unless the class Graph has a method of that name and the receiver is
    not a networkx graph: the attribute in which Graph keeps its own, or a name bound to ``nx.<...>Graph(...)``.
    """
    sources = list(_in_graphc(sources))
    home = next((source for source in sources if source.path == GRAPH_FILE), None)
    own_methods = frozenset(function.name for function in home.functions) if home else frozenset()
    attributes = _networkx_names(home) if home else set()
    messages = []
    for source in sources:
        if source.path == GRAPH_FILE:
            continue
        receivers = attributes | _networkx_names(source)
        for node in source.nodes:
            name = _writer_call(node)
            if name and (name not in own_methods or _last_name(node.func.value) in receivers):  # type: ignore[attr-defined]
                messages.append(f"{source.path}:{node.lineno}: {name} on a networkx graph")  # type: ignore[attr-defined]
    return messages


def check_mirror(sources: Iterable[Source], folders: frozenset[str], extra: frozenset[str]) -> list[str]:
    """tests/a/test_b.py exists for graphc/a/b.py, and every test file belongs to a module.

    `folders` are the test folders that mirror nothing, `extra` the single test files that span several modules.
    A long test file may be split into test_b_<topic>.py.
    """
    paths = {source.path for source in sources}
    modules = {
        path.removeprefix("graphc/")
        for path in paths
        if path.startswith("graphc/") and PurePosixPath(path).name not in ("__init__.py", "__main__.py")
    }
    expected = {(PurePosixPath(m).parent / f"test_{PurePosixPath(m).name}").as_posix(): m for m in modules}
    tests = {path.removeprefix("tests/") for path in paths if path.startswith("tests/")}
    messages = [f"graphc/{m} has no tests/{t}" for t, m in sorted(expected.items()) if t not in tests]
    stems = [test.removesuffix(".py") for test in expected]
    for test in sorted(tests):
        components = PurePosixPath(test).parts
        if not components[-1].startswith("test_") or components[0] in folders or test in extra:
            continue
        if test not in expected and not any(test.startswith(f"{stem}_") for stem in stems):
            messages.append(f"tests/{test} mirrors no module of graphc")
    return messages


def _in_graphc(sources: Iterable[Source]) -> Iterable[Source]:
    return (source for source in sources if source.path.startswith("graphc/"))


def _floor_imported(imported: Import) -> str | None:
    """Return the floor of an imported module, or None for the front door and modules without a floor."""
    try:
        return floor_of(imported.module)
    except KeyError:
        return None


def _top(module: str) -> str:
    return module.partition(".")[0]


def _takes_submodules(source: Source, imported: Import) -> bool:
    """Judge ``graphc.ir`` in ``from graphc import ir``, which lists ``graphc`` and ``graphc.ir``."""
    return any(other.line == imported.line and other.module.startswith("graphc.") for other in source.imports)


def _only_packages(source: Source, imported: Import, modules: set[str]) -> bool:
    """Read ``from graphc.ir import graph`` inside graphc.ir as the module graph, not as a re-export of the package."""
    prefix = imported.module + "."
    return any(
        other.line == imported.line and other.module.startswith(prefix) and other.module in modules
        for other in source.imports
    )


def _networkx_names(source: Source) -> set[str]:
    """Return names and attributes bound to a networkx graph by a call such as ``nx.MultiDiGraph()``."""
    names: set[str] = set()
    for node in source.nodes:
        targets: Sequence[ast.expr] = ()
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        else:
            continue
        if isinstance(value, ast.Call) and re.fullmatch(r"(nx|networkx)\.\w*Graph", ast.unparse(value.func)):
            names.update(_last_name(target) for target in targets)
    return names - {""}


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _writer_call(node: ast.AST) -> str:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in NETWORKX_WRITERS:
        return node.func.attr
    return ""
