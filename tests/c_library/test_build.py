"""build_library: from models and files to libraries that give what Python gives, bit for bit."""

from __future__ import annotations

import ctypes
import subprocess
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.base.errors import ArgumentError, CompileError, TraceError
from graphc.c_library.build import build_library
from tests.c_library.conftest import (
    ALL,
    Built,
    build_demo,
    call_alone,
    demo_inputs,
    expected,
    printed,
    run_tool,
    tool_or_skip,
)
from tests.c_library.freestanding import Loaded
from tests.c_library.nets import NETS
from tests.native import target_or_skip


def same(actual: list[list[np.ndarray]], expected: list[list[np.ndarray]]) -> bool:
    pairs = [(a, b) for x, y in zip(actual, expected, strict=True) for a, b in zip(x, y, strict=True)]
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("name", NETS)
def test_the_loader_gives_what_python_gives_and_needs_numpy_alone(name: str, built: Built, tmp_path: Path):
    outputs = call_alone(built(name), NETS[name].calls, tmp_path)
    assert same(outputs, expected(NETS[name], tmp_path))


@pytest.mark.parametrize("name", NETS)
def test_the_demo_in_c_gives_what_python_gives(name: str, built: Built, tmp_path: Path):
    library, net = built(name), NETS[name]
    program = build_demo(library, compiler=tool_or_skip("cc"))
    sizes = ["--batch=2", "--time=12"] if net.dims else []
    outputs = printed(run_tool(program, "--seed=3", "--all", *sizes))
    graphc.export(net.model(), *net.calls[0], path=tmp_path / "net.gcm", dims=net.dims)
    model = graphc.load(tmp_path / "net.gcm")
    expected = [np.asarray(a).ravel() for a in model.run(demo_inputs(library, net, 3))]
    assert [np.float32(v).tolist() for v in outputs.values()] == [a.tolist() for a in expected]


class Doubled(nn.Module):
    """Each input added to itself."""

    def forward(self, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Any:
        return a + a, b + b, c + c, d + d, e + e, f + f


def test_elements_of_each_size_go_in_and_out(tmp_path: Path):
    integers = [np.array([3, np.iinfo(d).max // 2], d) for d in ("int16", "uint16", "uint32", "uint64")]
    inputs = [*map(graphc.tensor, integers), graphc.tensor([1.5, -2.0]).half(), graphc.tensor([1.5, -2.0]).bfloat16()]
    library = build_library(Doubled(), *inputs, path=tmp_path / "doubled.so", emit=("so", "h", "c", "py"))
    halves = np.array([1.5, -2.0], np.float16), np.array([0x3FC0, 0xC000], np.uint16)
    (outputs,) = call_alone(library, [[*integers, *halves]], tmp_path)
    expected = [*(a + a for a in integers), halves[0] + halves[0], np.array([0x4040, 0xC080], np.uint16)]
    assert same([outputs], [expected])
    text = run_tool(build_demo(library, compiler=tool_or_skip("cc")), "--seed=3")
    ones = {line.split()[-1] for line in text.splitlines()}
    assert ones <= {"0", "2", "0x0000", "0x4000"} and len(text.splitlines()) == 6


def test_the_demo_measures_calls(built: Built):
    program = build_demo(built("policy"), compiler=tool_or_skip("cc"))
    line = run_tool(program, "--bench=50").splitlines()[-1]
    assert line.startswith("run: min ") and "p50" in line and "p99.9" in line and line.endswith("50 calls")


def test_header_and_demo_are_c_plus_plus_as_well(built: Built):
    program = build_demo(built("sizes"), compiler=tool_or_skip("c++", "g++"), standard="c++11")
    assert run_tool(program, "--batch=1", "--time=1").startswith("output_0:")


@pytest.mark.parametrize("target", ["sse2", "avx2"])
def test_libraries_for_a_named_machine_give_what_python_gives_there(target: str, built: Built, tmp_path: Path):
    target_or_skip(target)
    outputs = call_alone(built("digits", target=target), NETS["digits"].calls, tmp_path)
    assert same(outputs, expected(NETS["digits"], tmp_path, target))


def test_weights_lie_in_a_file_beside(built: Built, tmp_path: Path):
    library = built("decoder", weights="beside")
    weights = library.files["weights"]
    assert weights.stat().st_size == library.weight_bytes + 64
    assert library.files["so"].stat().st_size < weights.stat().st_size + 16384
    outputs = call_alone(library, NETS["decoder"].calls, tmp_path)
    assert same(outputs, expected(NETS["decoder"], tmp_path))
    program = build_demo(library, compiler=tool_or_skip("cc"))
    assert run_tool(program, cwd=weights.parent).startswith("output:")


def test_the_loader_computes_sizes_in_an_order_that_works(tmp_path: Path):
    """The dimension that C takes first depends on the other one."""
    many, more = graphc.Dim("a", max=64), graphc.Dim("b", max=64)
    library = build_library(
        lambda x, y: x.sum() + y,
        *(graphc.zeros(5), graphc.zeros(2)),
        dims=[(many + more,), (more,)],
        path=tmp_path / "sums.so",
        emit=ALL,
    )
    x, y = np.ones(7, np.float32), np.ones(3, np.float32)
    assert same(call_alone(library, [[x, y]], tmp_path), [[np.full(3, 8, np.float32)]])


def test_the_loader_takes_dimensions_with_names_that_python_cannot_have(tmp_path: Path):
    names = ("batch-size", "lambda", "max", "shapes", "2 x")
    dims = [tuple(map(graphc.Dim, names)), (graphc.Dim("k") + graphc.Dim("lambda"),)]
    examples = graphc.zeros(2, 3, 4, 5, 6), graphc.zeros(7)
    library = build_library(lambda x, y: (x * 2, y), *examples, dims=dims, path=tmp_path / "odd.so", emit=ALL)
    x, y = np.ones((3, 2, 2, 4, 2), np.float32), np.ones(5, np.float32)
    assert same(call_alone(library, [[x, y]], tmp_path), [[x * 2, y]])


def test_a_library_shows_its_functions_alone(built: Built):
    library = built("decoder")
    lines = run_tool(tool_or_skip("nm"), "-D", "--defined-only", library.files["so"]).splitlines()
    names = [line.split()[-1] for line in lines]
    assert names and all(name.startswith("decoder_") and "__" not in name for name in names)


def test_no_memory_of_a_library_is_written(built: Built):
    tool = tool_or_skip("readelf")
    for name in NETS:
        text = run_tool(tool, "-lW", built(name).files["so"])
        loaded = [x.split() for x in text.splitlines() if x.split()[:1] == ["LOAD"]]
        protected = [x.split() for x in text.splitlines() if x.split()[:1] == ["GNU_RELRO"]]
        writable = [int(x[5], 16) for x in loaded if "W" in x[6:-1]]
        assert sum(writable) <= sum(-(-int(x[5], 16) // 4096) * 4096 for x in protected)


def test_equal_models_give_equal_files(built: Built, tmp_path: Path):
    first, net = built("policy"), NETS["policy"]
    again = build_library(net.model(), *net.calls[0], path=tmp_path / "policy.so", emit=("so", "h", "c", "py"))
    for kind, path in first.files.items():
        assert path.read_bytes() == again.files[kind].read_bytes(), kind
    other = build_library(NETS["policy"].make().eval(), *net.calls[0], path=tmp_path / "other.so")
    assert other.digest != first.digest


def test_a_library_is_made_of_a_model_file(built: Built, tmp_path: Path):
    net = NETS["lstm"]
    graphc.export(net.model(), *net.calls[0], path=tmp_path / "net.gcm")
    library = build_library(tmp_path / "net.gcm", path=tmp_path / "lstm.so", emit=("so", "py"))
    assert set(library.files) == {"so", "py"} and set(library.entries) == {"run"}
    assert same(call_alone(library, net.calls, tmp_path), expected(net, tmp_path))
    with pytest.raises(ArgumentError, match="holds a graph"):
        build_library(tmp_path / "net.gcm", *net.calls[0], path=tmp_path / "lstm.so")
    with pytest.raises(ArgumentError, match="no entry 'decode'"):
        build_library(tmp_path / "net.gcm", path=tmp_path / "lstm.so", entries=["decode"])


@pytest.mark.parametrize("kind", ["o", "a"])
def test_code_is_linked_into_a_program(kind: str, built: Built):
    net = NETS["digits"]
    library = built("digits", emit=("o", "a", "h", "c", "so"))
    program = library.files["c"].with_suffix(f".{kind}.program")
    run_tool(tool_or_skip("cc"), library.files["c"], library.files[kind], "-o", program)
    shared = build_demo(library, compiler="cc")
    assert run_tool(program, "--all") == run_tool(shared, "--all")
    assert printed(run_tool(program))["output"] and net.calls


def test_threads_call_with_contexts_of_their_own(built: Built, tmp_path: Path):
    net = NETS["decoder"]
    target = expected(net, tmp_path)
    loader = load(built("decoder"))
    results: list[Any] = [None] * 4

    def work(number: int) -> None:
        good = True
        for _ in range(25):
            model = loader.Model()
            good &= all(np.array_equal(model.run(*call), w[0]) for call, w in zip(net.calls, target, strict=True))
        results[number] = good

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert results == [True] * 4


def load(library: Any) -> Any:
    """The loader of a library as a module of this process."""
    namespace: dict[str, Any] = {"__file__": str(library.files["py"]), "__name__": "loader"}
    exec(library.files["py"].read_text(), namespace)
    return type("Loader", (), namespace)


def test_models_that_a_library_cannot_hold_are_refused_by_name(tmp_path: Path):
    @graphc.opaque
    def measure(x: Any) -> Any:
        return x

    class Calls(nn.Module):
        def forward(self, x: Any) -> Any:
            return measure(x)

    with pytest.raises(TraceError, match="measure"):
        build_library(Calls(), graphc.rand(3), path=tmp_path / "calls.so")
    with pytest.raises(CompileError, match="cannot contain code for"):
        build_library(NETS["policy"].model(), graphc.rand(1, 17), path=tmp_path / "p.so", target="sm_90")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"emit": ("exe",)}, "unknown kind of file 'exe'"),
        ({"emit": ()}, "emit is empty"),
        ({"weights": "elsewhere"}, "inside"),
        ({"name": "int"}, "cannot have the prefix 'int'"),
        ({"name": "two words"}, "cannot have the prefix 'two words'"),
        ({"precision": "f8"}, "f8"),
    ],
)
def test_wrong_choices_are_refused(options: dict[str, Any], message: str, tmp_path: Path):
    with pytest.raises(ArgumentError, match=message):
        build_library(NETS["policy"].model(), graphc.rand(1, 17), path=tmp_path / "p.so", **options)


def test_a_processor_without_the_instructions_is_told_from_the_others(built: Built):
    emulator = tool_or_skip("qemu-x86_64")
    program = build_demo(built("policy", target="avx2"), compiler=tool_or_skip("cc"))
    refused = subprocess.run([emulator, "-cpu", "Nehalem", program], capture_output=True, text=True)
    assert refused.returncode == 1
    assert refused.stderr == "init: this processor lacks instructions that the library was built for\n"
    assert run_tool(emulator, "-cpu", "max", program).startswith("output:")


def test_an_arm_processor_without_the_instructions_is_refused(built: Built):
    compiler, emulator = tool_or_skip("aarch64-linux-gnu-gcc"), tool_or_skip("qemu-aarch64")
    program = build_demo(built("policy", target="neon-dotprod"), compiler=compiler)
    command = [emulator, "-L", "/usr/aarch64-linux-gnu", "-cpu"]
    refused = subprocess.run([*command, "cortex-a72", program], capture_output=True, text=True)
    assert refused.returncode == 1 and "lacks instructions" in refused.stderr
    assert run_tool(*command, "cortex-a76", program).startswith("output:")


CROSS = {
    "neon": ("aarch64-linux-gnu-gcc", "qemu-aarch64", "/usr/aarch64-linux-gnu"),
    "rv64gc": ("riscv64-linux-gnu-gcc", "qemu-riscv64", "/usr/riscv64-linux-gnu"),
}


@pytest.mark.parametrize("name", ["policy", "digits", "sizes", "decoder"])
@pytest.mark.parametrize("target", CROSS)
def test_libraries_for_other_processors_run_under_emulation(target: str, name: str, built: Built):
    compiler, emulator, root = (tool_or_skip(CROSS[target][0]), tool_or_skip(CROSS[target][1]), CROSS[target][2])
    net = NETS[name]
    library = built(name, target=target)
    program = build_demo(library, compiler=compiler)
    sizes = ["--batch=2", "--time=12"] if net.dims else []
    outputs = printed(run_tool(emulator, "-L", root, program, "--all", *sizes))
    expected = printed(run_tool(build_demo(built(name), compiler=tool_or_skip("cc")), "--all", *sizes))
    for output, values in expected.items():
        np.testing.assert_allclose(outputs[output], values, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["policy", "digits", "lstm", "decoder"])
@pytest.mark.parametrize("target", ["sse2", "avx2", *CROSS])
def test_in_strict_order_all_processors_give_the_same_bits(target: str, name: str, built: Built):
    compiler, emulator, root = CROSS.get(target, ("cc", "", ""))
    cross = [tool_or_skip(emulator), "-L", root] if emulator else []
    if not emulator:
        target_or_skip(target)
    library = built(name, target=target, strict_order=True)
    outputs = run_tool(*cross, build_demo(library, compiler=tool_or_skip(compiler)), "--all")
    assert outputs == run_tool(build_demo(built(name, strict_order=True), compiler=tool_or_skip("cc")), "--all")


def loaded(built: Built, name: str, **options: Any) -> Any:
    path = built(name, **options).files["py"]
    namespace: dict[str, Any] = {"__file__": str(path)}
    exec(path.read_text(), namespace)
    return namespace["Model"]()


@pytest.mark.parametrize("name", NETS)
def test_it_has_sixty_lines(name: str, built: Built):
    assert len(built(name).files["py"].read_text().splitlines()) <= 60
    assert len(built("decoder", weights="beside").files["py"].read_text().splitlines()) <= 61


def test_inputs_are_given_by_position_or_name(built: Built):
    model, x = loaded(built, "policy"), np.ones((1, 17), np.float32)
    assert np.array_equal(model.run(x), model.run(input=x))
    for arrays, named in [((), {}), ((x, x), {}), ((x,), {"batch": 3})]:
        with pytest.raises(TypeError, match="run takes input"):
            model.run(*arrays, **named)


def test_types_and_shapes_are_checked(built: Built):
    model = loaded(built, "sizes")
    assert model.run(np.zeros((2, 3, 8), np.float32))[0].shape == (2, 3)
    for array in (np.zeros((2, 3, 8)), np.zeros((2, 3, 7), np.float32), np.zeros((2, 3), np.float32)):
        with pytest.raises(ValueError, match="run: x is float32"):
            model.run(array)
    with pytest.raises(ValueError, match="out of its range"):
        model.run(np.zeros((65, 3, 8), np.float32))


def test_arrays_that_are_not_dense_are_copied(built: Built):
    model = loaded(built, "policy")
    wide = np.random.default_rng(0).standard_normal((1, 34)).astype(np.float32)
    assert np.array_equal(model.run(wide[:, ::2]), model.run(wide[:, ::2].copy()))


def test_indices_out_of_range_are_index_errors(built: Built):
    with pytest.raises(IndexError, match="an index or label is out of range"):
        loaded(built, "bag").run(np.full((2, 4), 50))


def test_states_are_kept_and_put_back(built: Built):
    model = loaded(built, "decoder")
    first, second = np.array([[7]]), np.array([[8]])
    model.run(first)
    saved, wanted = model.save_state(), model.run(second)
    assert not np.array_equal(model.run(second), wanted)
    model.load_state(saved)
    assert np.array_equal(model.run(second), wanted)
    with pytest.raises(RuntimeError, match="not one of this model"):
        model.load_state(bytes(len(saved)))


def test_a_library_of_another_build_is_refused(built: Built):
    path = built("policy").files["py"]
    text = path.read_text().replace(built("policy").digest, "0" * 64)
    namespace: dict[str, Any] = {"__file__": str(path)}
    exec(text, namespace)
    with pytest.raises(RuntimeError, match="different builds"):
        namespace["Model"]()


# ---- musl, an old glibc, and no system

THREADS = frozenset(
    (
        *("aligned_alloc", "clock_gettime", "free", "pthread_create", "pthread_detach", "pthread_join"),
        *("pthread_sigmask", "sched_yield", "syscall", "memcpy", "memset"),
    )
)
"""Functions of glibc 2.17: the last ones to appear were aligned_alloc (2.16) and clock_gettime in libc.so.6 (2.17)."""


@pytest.mark.parametrize("name", NETS)
def test_a_library_without_threads_needs_no_other(built: Built, name: str):
    path = built(name).files["so"]
    assert "NEEDED" not in run_tool(tool_or_skip("readelf"), "-dW", path)
    assert not run_tool(tool_or_skip("nm"), "-D", "--undefined-only", path)


def test_threads_need_functions_of_glibc_2_17(built: Built):
    path = built("wide", threads=True).files["so"]
    needed = [x for x in run_tool(tool_or_skip("readelf"), "-dW", path).splitlines() if "NEEDED" in x]
    assert [line.split("[")[1] for line in needed] == ["libpthread.so.0]", "libc.so.6]"]
    names = run_tool(tool_or_skip("nm"), "-D", "--undefined-only", path).split()
    assert "pthread_create" in names and {*names} - {"U"} <= THREADS


@pytest.mark.parametrize(("name", "threads"), [("policy", False), ("decoder", False), ("sizes", False), ("wide", True)])
def test_the_demo_runs_with_musl(built: Built, name: str, threads: bool):
    library = built(name, threads=threads)
    found, wanted = (
        printed(run_tool(build_demo(library, compiler=tool_or_skip(compiler)))) for compiler in ("musl-gcc", "cc")
    )
    assert found == wanted and found


@pytest.mark.parametrize("name", ["policy", "digits", "lstm", "decoder"])
def test_a_library_runs_without_a_system(built: Built, tmp_path: Path, name: str):
    library, net = built(name), NETS[name]
    loaded = Loaded(library.files["so"])
    arena_size = loaded.call(f"{name}_run_arena_size", result=ctypes.c_size_t)
    context, arena = (aligned(size) for size in (library.context_bytes, arena_size))
    pointer = context.ctypes.data
    assert loaded.call(f"{name}_init", ctypes.c_void_p(pointer), ctypes.c_size_t(context.size)) == 0
    for inputs, outputs in zip(net.calls, expected(net, tmp_path), strict=True):
        found = [np.full_like(a, 7) for a in outputs]
        places = [ctypes.c_void_p(a.ctypes.data) for a in (context, *inputs, *found, arena)]
        assert loaded.call(f"{name}_run", *places, ctypes.c_size_t(arena.size)) == 0
        for a, b in zip(found, outputs, strict=True):
            np.testing.assert_array_equal(a, b)


def aligned(size: int) -> np.ndarray:
    memory = np.zeros(size + 64, np.uint8)
    return memory[-memory.ctypes.data % 64 :][:size]
