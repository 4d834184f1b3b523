"""Names that are loaded at first use, and what an import of graphc loads."""

from __future__ import annotations

import ast
import gc
import pickle
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import graphc
from graphc.base.lazy import MANY_OBJECTS, deferred, exports, imported
from graphc.tracing.trace import no_collector


def test_names_are_loaded_once():
    namespace = {}
    load = exports(__name__, namespace, {"sqrt": "math:sqrt", "json": "json"})
    assert load("sqrt")(4) == 2
    assert namespace["sqrt"] is load("sqrt")
    assert load("json").dumps([]) == "[]"
    with pytest.raises(AttributeError, match=r"module .* has no attribute 'cbrt'") as caught:
        load("cbrt")
    assert (caught.value.name, caught.value.obj) == ("cbrt", sys.modules[__name__])


def test_deferred_functions_are_imported_when_they_are_called():
    assert deferred("math:sqrt")(9) == 3
    late = deferred("no_such_module:f")
    with pytest.raises(ModuleNotFoundError):
        late()


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_a_front_is_loaded_before_anything_else_is():
    namespace = {}
    load = exports(
        "some", namespace, {"json": "json", "map": "json:dumps"}, "tests.base.front_of_a_package", hidden=("map",)
    )
    assert not namespace
    assert load("json").loads("1") == 1 and namespace["answer"] == 42
    assert load("__all__") == ["answer", "json"] and load("map")(1) == "1"


def test_an_import_of_graphc_loads_nothing():
    assert run("import sys, graphc; print([m for m in ('numpy', 'argparse', 'logging') if m in sys.modules])") == "[]"
    assert run("import sys, graphc; graphc.__version__; print('numpy' in sys.modules)") == "False"


@pytest.mark.parametrize("module", ["graphc.nn", "graphc.tensors.creation", "graphc.models.model_file"])
def test_modules_work_that_are_imported_before_any_name_of_graphc_is_used(module: str):
    code = f"""
import {module}
from graphc.tensors.creation import ones
x = ones(2, requires_grad=True)
(x * x + 1).sum().backward()
print(x.grad.tolist())
"""
    assert run(code) == "[2.0, 2.0]"


def test_eager_programs_load_numpy_only():
    code = """
import sys, graphc
x = graphc.ones(2, requires_grad=True)
(x @ graphc.rand(2)).backward()
print([m for m in ("networkx", "llvmlite", "graphc.codegen", "graphc.passes", "graphc.nn") if m in sys.modules])
"""
    assert run(code) == "[]"


def test_compiling_does_not_load_networkx():
    code = """
import sys, graphc
graphc.compile(lambda x: x + 1)(graphc.ones(2))
print("graphc.passes" in sys.modules, "networkx" in sys.modules)
"""
    assert run(code) == "True False"


def test_lazy_sequences_are_imported_by_their_first_reader():
    code = """
import sys
from graphc.base.lazy import LazySequence
names = LazySequence("string:ascii_lowercase")
before = "string" in sys.modules
print(before, len(names), names[1], names[2:4], [*names][-1])
"""
    assert run(code) == "False 26 b cd z"


def test_eager_modules_load_no_compiler():
    code = """
import sys, graphc
graphc.nn.functional.relu(graphc.nn.Linear(3, 4)(graphc.ones(2, 3))).sum().backward()
print([m for m in ("networkx", "llvmlite", "graphc.codegen", "graphc.passes") if m in sys.modules])
"""
    assert run(code) == "[]"


def test_threads_may_load_different_names_first():
    program = """
import threading, graphc
paths = ("nn.Linear optim.SGD compile tensor nn.functional.relu distributions.Normal autograd.grad data.DataLoader "
    "linalg.norm relu vmap Entry save fft.fft").split()
errors = []
def load(first):
    try:
        for path in paths[first:]:
            value = graphc
            for name in path.split("."):
                value = getattr(value, name)
    except Exception as error:
        errors.append(error)
threads = [threading.Thread(target=load, args=(i,)) for i in range(len(paths))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(errors)
"""
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "[]\n"


def test_public_names_do_not_depend_on_the_order_of_imports():
    code = """
import graphc.tensors.tensor, graphc.tracing.trace
import graphc.calls.function, graphc.autograd.engine, graphc.models.model_summary, graphc.pages.show
import graphc
print(callable(graphc.tensor), callable(graphc.trace), callable(graphc.compile), graphc.autograd.Function.__name__)
print(callable(graphc.summary), callable(graphc.picture))
"""
    assert run(code).split() == ["True", "True", "True", "Function", "True", "True"]


def test_every_public_name_is_there():
    code = """
import graphc
print(sorted(set(graphc.__all__) - set(dir(graphc))) + [n for n in graphc.__all__ if not hasattr(graphc, n)])
"""
    assert run(code) == "[]"


def test_import_statements_are_read_and_not_run():
    code = """
import sys, graphc
from graphc.base.lazy import imported_by
names = imported_by("graphc.names")
print(names["nn"], names["OutOfMemoryError"], "numpy" in sys.modules, "graphc.names" in sys.modules)
"""
    assert run(code) == "graphc.nn graphc.errors:MemoryLimitError False False"


OTHERS = {"linalg.methods", "nn.clip_grad", "nn.functional.reordered", "nn.modules.module"}
"""Modules with names of other packages."""
PACKAGES = ["array_api", "data", "distributed", "distributions", "linalg", "nn", "nn.functional", "nn.utils"]


@pytest.mark.parametrize("package", [*PACKAGES, "nn.modules"])
def test_packages_collect_the_names_that_their_modules_state(package: str):
    collected = import_module(f"graphc.{package}")
    folder = Path(collected.__file__ or "").parent
    apart = {f"{package}.{n}" for n in collected.__all__ if isinstance(getattr(collected, n), ModuleType)} | OTHERS
    modules = [path for path in folder.glob("[!_]*.py") if f"{package}.{path.stem}" not in apart]
    lost = {path.stem: {*stated_by(path)} - {*collected.__all__} for path in modules}
    assert not any(lost.values()), f"write `from graphc.{package}.MODULE import *` into the package"


def stated_by(path: Path) -> list[str]:
    """Return the names in ``__all__`` of a file, as far as they are literals."""
    lists = [n.value for n in ast.parse(path.read_text(encoding="utf-8")).body if "__all__" in ast.unparse(n)[:9]]
    return [c.value for value in lists for c in ast.walk(value) if isinstance(c, ast.Constant)]


def test_what_stands_alone_is_loaded_without_the_front():
    namespace: dict = {}
    names = {"json": "json", "sqrt": "math:sqrt"}
    load = exports("some", namespace, names, "tests.base.front_of_a_package", alone=("json",))
    assert load("json").loads("1") == 1 and set(namespace) == {"json"}
    assert load("sqrt")(4) == 2 and set(namespace) > {"json", "sqrt", "__all__"}


def test_import_paths_hand_on_names_and_those_they_are_asked_for():
    conv, names = graphc.nn.modules.conv, graphc.nn.modules.utils
    assert conv.Conv2d is graphc.nn.Conv2d and isinstance(graphc.nn.Conv1d(1, 1, 1), conv._ConvNd)
    assert isinstance(graphc.nn.BatchNorm2d(1), graphc.nn.modules.batchnorm._BatchNorm)
    assert graphc.nn.modules.activation.Softshrink is graphc.nn.Softshrink
    assert names._pair(2) == (2, 2) and names._ntuple(3)([1, 2, 3]) == (1, 2, 3)
    assert graphc.optim.adamw.AdamW is graphc.optim.AdamW
    assert graphc.optim.lr_scheduler._LRScheduler is graphc.optim.lr_scheduler.LRScheduler
    with pytest.raises(AttributeError, match="no attribute '_nothing'"):
        conv._nothing  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'Conv9d'"):
        exec("from graphc.nn.modules.conv import Conv9d")


@pytest.mark.parametrize(
    "path",
    [
        *("nn.functional.shrinkage:threshold", "nn.functional.loss_linear:LinearCrossEntropyOptions"),
        *("nn.modules.shrinkage:Hardshrink", "distributions.constraint_transforms:biject_to", "optim.nadam:NAdam"),
    ],
)
def test_pickles_find_names_in_files_of_earlier_versions(path: str):
    module, _, name = path.partition(":")
    assert pickle.loads(f"cgraphc.{module}\n{name}\n.".encode()).__name__ == name


def test_import_paths_are_imported_by_their_names():
    code = "import graphc.nn.modules.padding as p; from graphc.autograd.variable import Variable; print(p.ZeroPad2d)"
    assert "ZeroPad2d" in run(code)


def test_a_large_import_is_not_visited_by_the_garbage_collector():
    code = """
import gc
import graphc
visits = []
gc.callbacks.append(lambda phase, info: visits.append(info["generation"]))
graphc.Tensor
print(2 not in visits and len(visits) < 10, gc.isenabled(), len(gc.get_objects(generation=2)) > 10_000)
"""
    assert run(code).split() == ["True", "True", "True"]
    assert run("import gc; gc.disable(); import graphc; graphc.Tensor; print(gc.isenabled())") == "False"


def test_objects_that_the_user_has_frozen_stay_frozen_after_large_imports():
    code = """
import gc
own = [[]]
gc.freeze()
count = gc.get_freeze_count()
import graphc
graphc.Tensor
visited = any(item is own for generation in range(3) for item in gc.get_objects(generation))
print(visited, gc.get_freeze_count() > 0.9 * count)
"""
    assert run(code).split() == ["False", "True"]


def test_an_import_of_a_loaded_module_does_not_count_frozen_objects(monkeypatch):
    """The count visits each of them, and a compile imports hundreds of times while the collector is off."""
    counted = []
    monkeypatch.setattr(gc, "get_freeze_count", lambda: counted.append(1) or 1)
    with no_collector():
        kept = [[i] for i in range(2 * MANY_OBJECTS)]
        imported("graphc.base.lazy")
        assert gc.get_count()[0] > MANY_OBJECTS
    assert kept and not counted
