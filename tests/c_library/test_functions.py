"""The functions of a library: what they refuse, and what states and threads they keep."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
from graphc.c_library.build import Library
from graphc.c_library.functions import GuardedWriter
from graphc.c_library.plan import CODES, STATUSES
from graphc.codegen.llvm.build import build_object
from graphc.codegen.llvm.module import Item, LlvmModule
from graphc.codegen.llvm.sizes import register_of
from graphc.codegen.machine.target import host_target
from graphc.runtime.loader import host, link_forever
from tests.c_library.conftest import Built

SIZE = ctypes.c_size_t


def aligned(nbytes: int, shift: int = 0) -> np.ndarray:
    """So many bytes at a multiple of 64, or so many behind one."""
    memory = np.zeros(nbytes + 192, np.uint8)
    start = -memory.ctypes.data % 64 + shift
    return memory[start : start + nbytes]


class Called:
    """The functions of a library as ctypes has them; arrays are passed by address."""

    def __init__(self, library: Library):
        self.library, self.c = library, ctypes.CDLL(str(library.files["so"]))
        self.context = aligned(library.context_bytes)

    def __call__(self, function: str, *arguments: Any) -> int:
        c_arguments = [ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else a for a in arguments]
        return getattr(self.c, f"{self.library.name}_{function}")(*c_arguments)

    def text(self, function: str, *arguments: Any) -> str:
        """Return the text that a function of the library returns."""
        result = getattr(self.c, f"{self.library.name}_{function}")
        result.restype = ctypes.c_char_p
        return result(*arguments).decode()

    def size(self, function: str, *arguments: Any) -> int:
        """Return the size that a function of the library returns."""
        result = getattr(self.c, f"{self.library.name}_{function}")
        result.restype = SIZE
        return result(*arguments)

    def init(self) -> Called:
        """Makes the context."""
        assert self("init", self.context, SIZE(self.context.size)) == 0
        return self


@pytest.fixture
def policy(built: Built) -> Called:
    return Called(built("policy")).init()


@pytest.fixture
def call(policy: Called) -> Callable[..., int]:
    """Runs the policy, with something else in the place of an argument."""

    def run(**others: Any) -> int:
        buffers = {
            "net": policy.context,
            "x": np.zeros((1, 17), np.float32),
            "y": np.zeros((1, 6), np.float32),
            "arena": aligned(policy.size("run_arena_size")),
            "size": SIZE(policy.size("run_arena_size")),
        }
        return policy("run", *(buffers | others).values())

    return run


def test_each_code_has_a_text(policy: Called):
    assert [policy.text("error_text", code) for code in range(len(STATUSES))] == [s.text for s in STATUSES]
    assert policy.text("error_text", -1) == policy.text("error_text", len(STATUSES)) == "unknown code"


def test_a_library_says_what_it_is(policy: Called):
    assert policy.text("digest") == policy.library.digest
    assert policy.text("version").count(".") == 2 and policy.text("target").startswith("x86_64")
    assert policy.size("context_size") == policy.library.context_bytes
    assert policy.size("run_arena_size") == policy.library.entries["run"].arena


def test_a_call_is_refused_without_memory_of_its_own(call: Callable[..., int]):
    null = ctypes.c_void_p(None)
    assert call() == 0
    for name in ("net", "x", "y", "arena"):
        assert call(**{name: null}) == CODES["ERROR_NULL"], name
    shifted = {name: aligned(4096, 2) for name in ("x", "y")} | {name: aligned(4096, 4) for name in ("net", "arena")}
    for name, address in shifted.items():
        assert call(**{name: address}) == CODES["ERROR_ALIGNMENT"], name
    assert call(size=SIZE(511)) == CODES["ERROR_MEMORY"]
    assert call(net=aligned(64)) == CODES["ERROR_CONTEXT"]


def test_inputs_need_the_alignment_of_their_type_alone(call: Callable[..., int]):
    assert call(x=aligned(68, 4), y=aligned(24, 60)) == 0


def test_a_context_is_of_one_library(policy: Called, built: Built):
    other = Called(built("bag")).init()
    arrays = np.zeros((2, 4), np.int64), np.zeros((2, 8), np.float32), aligned(64)
    assert other("run", other.context, *arrays, SIZE(64)) == 0
    assert other("run", policy.context, *arrays, SIZE(64)) == CODES["ERROR_CONTEXT"]


def test_init_is_refused_without_enough_memory(policy: Called):
    assert policy("init", policy.context, SIZE(policy.library.context_bytes - 1)) == CODES["ERROR_MEMORY"]
    assert policy("init", aligned(64, 8), SIZE(64)) == CODES["ERROR_ALIGNMENT"]
    assert policy("init", ctypes.c_void_p(None), SIZE(64)) == CODES["ERROR_NULL"]


def test_indices_out_of_range_are_a_code_and_outputs_stay(built: Built):
    bag = Called(built("bag")).init()
    y = np.full((2, 8), 7, np.float32)
    for index in (50, -51):
        x = np.array([[1, 2, 3, index], [0, 0, 0, 0]])
        assert bag("run", bag.context, x, y, aligned(64), SIZE(64)) == CODES["ERROR_INDEX"]
    assert bag("run", bag.context, np.zeros((2, 4), np.int64), y, aligned(64), SIZE(64)) == 0


def test_sizes_out_of_range_are_a_code(built: Built):
    net = Called(built("sizes")).init()
    wide = ctypes.c_int64
    arena = aligned(net.size("run_arena_size", wide(64), wide(3)))
    x, y, h = np.zeros((64, 3, 8), np.float32), np.zeros((64, 3), np.float32), np.zeros((64, 16), np.float32)

    def run(batch: int, time: int, room: int = arena.size) -> int:
        return net("run", net.context, wide(batch), wide(time), x, y, h, arena, SIZE(room))

    assert run(64, 3) == 0
    for batch, time in ((0, 3), (65, 3), (64, 0), (64, 501), (-1, 3), (1 << 62, 3)):
        assert run(batch, time) == CODES["ERROR_SIZE"]
        assert net.size("run_arena_size", wide(batch), wide(time)) == 2**64 - 1
    assert run(64, 3, arena.size - 1) == CODES["ERROR_MEMORY"]


class Decoding(Called):
    """A decoder that tells how many steps it has made."""

    def step(self, token: int) -> np.ndarray:
        """The scores after a token."""
        y, arena = np.zeros((1, 1, 40), np.float32), aligned(self.size("run_arena_size"))
        assert self("run", self.context, np.array([[token]]), y, arena, SIZE(arena.size)) == 0
        return y


def test_states_are_saved_restored_and_reset(built: Built):
    net = Decoding(built("decoder"))
    net.init()
    first = net.step(3)
    saved = np.zeros(net.size("state_size"), np.uint8)
    assert net("save_state", net.context, saved, SIZE(saved.size)) == 0
    second = net.step(4)
    assert not np.array_equal(net.step(4), second)
    assert net("load_state", net.context, saved, SIZE(saved.size)) == 0
    assert np.array_equal(net.step(4), second)
    assert net("reset_state", net.context) == 0
    assert np.array_equal(net.step(3), first)


def test_a_state_of_another_model_is_refused_and_nothing_is_changed(built: Built):
    net = Decoding(built("decoder"))
    net.init()
    saved = np.zeros(net.size("state_size"), np.uint8)
    assert net("save_state", net.context, saved, SIZE(saved.size - 1)) == CODES["ERROR_MEMORY"]
    before = net.context.copy()
    assert net("load_state", net.context, saved, SIZE(saved.size)) == CODES["ERROR_STATE"]
    assert net("save_state", net.context, saved, SIZE(saved.size)) == 0
    for offset in (0, 8, 16, 40):
        damaged = saved.copy()
        damaged[offset] ^= 1
        assert net("load_state", net.context, damaged, SIZE(saved.size)) == CODES["ERROR_STATE"]
    assert net("load_state", net.context, saved, SIZE(63)) == CODES["ERROR_MEMORY"]
    assert np.array_equal(before, net.context)


def test_a_context_can_be_copied(built: Built):
    net = Decoding(built("decoder"))
    net.init()
    net.step(3)
    copy = aligned(net.context.size)
    copy[:] = net.context
    expected, net.context = net.step(5), copy
    assert np.array_equal(net.step(5), expected)


def test_weights_beside_are_checked(built: Built, tmp_path: Path):
    library = built("decoder", weights="beside")
    net = Called(library)
    pointer, size = ctypes.c_void_p(), SIZE()

    def opened(path: Path) -> int:
        return net("open_weights", str(path).encode(), ctypes.byref(pointer), ctypes.byref(size))

    def init(length: int | None = None) -> int:
        return net("init", net.context, SIZE(net.context.size), pointer, SIZE(length or size.value))

    assert opened(library.files["weights"]) == 0 and size.value == library.weight_bytes + 64
    assert init() == 0
    assert init(size.value - 1) == CODES["ERROR_WEIGHTS"]
    assert net("close_weights", pointer, size) == 0
    assert opened(tmp_path / "none") == CODES["ERROR_FILE"]
    assert net("open_weights", None, ctypes.byref(pointer), ctypes.byref(size)) == CODES["ERROR_NULL"]
    other = tmp_path / "other.weights"
    content = bytearray(library.files["weights"].read_bytes())
    content[20] ^= 1
    other.write_bytes(content)
    assert opened(other) == 0 and init() == CODES["ERROR_WEIGHTS"]
    other.write_bytes(b"")
    assert opened(other) == CODES["ERROR_FILE"]


def test_damaged_files_of_weights_and_states_are_refused(built: Built):
    """500 files of each: cut off, longer, or with other bits in their first 48 bytes (magic, size, digest)."""
    library = built("decoder", weights="beside")
    net, random = Called(library), np.random.default_rng(0)
    file = np.frombuffer(library.files["weights"].read_bytes(), np.uint8)

    def init(content: np.ndarray) -> int:
        held = aligned(content.size)
        held[:] = content
        return net("init", net.context, SIZE(net.context.size), held, SIZE(content.size))

    assert init(file) == 0
    saved = aligned(net.size("state_size"))
    assert net("save_state", net.context, saved, SIZE(saved.size)) == 0
    before = net.context.copy()
    for number in range(500):
        damaged, state = file.copy(), saved.copy()
        bit, size = random.integers(0, 48 * 8), random.integers(0, file.size)
        for array in (damaged, state):
            array[bit // 8] ^= 1 << bit % 8
        damaged = (damaged, file[:size], np.concatenate([file, file[: 1 + size % 64]]))[number % 3]
        assert init(damaged) == CODES["ERROR_WEIGHTS"]
        held = aligned(state.size)
        held[:] = state
        assert net("load_state", net.context, held, SIZE(state.size)) == CODES["ERROR_STATE"]
        short = SIZE(int(random.integers(0, saved.size)))
        assert net("load_state", net.context, saved, short) == CODES["ERROR_MEMORY"]
    assert np.array_equal(before, net.context)


def test_threads_share_calls_where_there_is_a_pool(built: Built):
    alone, library = Called(built("wide")).init(), built("wide", threads=True)
    shared = Called(library).init()
    x = np.random.default_rng(0).standard_normal((256, 512)).astype(np.float32)
    results = []
    for net in (alone, shared):
        y, arena = np.zeros((256, 512), np.float32), aligned(net.size("run_arena_size"))
        for count in (1, 2, 3) if net is shared else (1,):
            if net is shared:
                assert net("set_threads", net.context, ctypes.c_int64(count)) == 0
            assert net("run", net.context, x, y, arena, SIZE(arena.size)) == 0
            results.append(y.copy())
    assert all(np.array_equal(y, results[0]) for y in results)
    for count in (0, 257, -1):
        assert shared("set_threads", shared.context, ctypes.c_int64(count)) == CODES["ERROR_THREADS"]
    assert shared("forget_threads") == 0
    assert not hasattr(alone.c, "wide_set_threads")


class Record(ctypes.Structure):
    """An input or output in the tables of a library."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("shape", ctypes.c_char_p),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("type", ctypes.c_int32),
        ("rank", ctypes.c_int32),
    )


def test_tables_tell_names_types_and_sizes(built: Built):
    net = Called(built("sizes"))
    x, end = (Record * 2).in_dll(net.c, "sizes_run_inputs")
    assert (x.name, x.shape, x.sizes[:3], x.type, x.rank) == (b"x", b"batch,time,8", [-1, -1, 8], 2, 3)
    assert end.name is None
    y, h, end = (Record * 3).in_dll(net.c, "sizes_run_outputs")
    assert (y.name, h.name, h.shape, end.name) == (b"output.0", b"output.1", b"1,batch,16", None)


def built(name: str, write: Callable[[GuardedWriter], None], *registers: str) -> Callable[..., int]:
    """A function of numbers that returns a code."""
    declarations: dict[str, Item] = {}
    w = GuardedWriter(declarations)
    write(w)
    function = w.function(name, [("i64", r) for r in registers])
    head, end = f'target triple = "{host_target().triple}"\n', "attributes #0 = { nounwind }\n"
    code = build_object(LlvmModule((head, *declarations.values(), function, end)), host_target())
    kind = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int64] * len(registers))
    return kind(link_forever(code, (name,), host())[name])


def test_numbers_outside_of_a_range_end_a_function():
    check = built("within", lambda w: w.within("%n", 2, 9, "ERROR_SIZE"), "%n")
    assert [check(n) for n in (1, 2, 9, 10, -1)] == [5, 0, 0, 5, 5]
    assert CODES["ERROR_SIZE"] == 5


def test_sizes_that_would_overflow_end_a_function():
    batch: Any = graphc.Dim("batch")
    size = batch * batch * batch * 1024 - batch
    (dimension,) = {d for monomial, _ in size.terms for d, _ in monomial}
    check = built("safe", lambda w: w.safe(size), register_of(dimension))
    assert [check(n) for n in (1, 1000, 1 << 17, 1 << 18, (1 << 31) - 1)] == [0, 0, 0, 5, 5]


def test_sizes_that_cannot_overflow_are_not_looked_at():
    batch: Any = graphc.Dim("batch", max=64)
    w = GuardedWriter({})
    w.safe(batch * 4096)
    assert w.body == "entry:"


def test_memory_is_taken_when_a_function_begins():
    w = GuardedWriter({})
    w.require(w.equal("i64", "%n", "1"), "ERROR_SIZE")
    room = w.room("i64", 8)
    assert w.body.splitlines()[1] == f"  {room} = alloca i64, align 8"


def test_pointers_of_one_alignment_are_looked_at_together():
    w = GuardedWriter({})
    w.require_pointers([("%a", 4), ("%b", 4), ("%c", 1)])
    assert w.body.count("icmp ne ptr") == 3 and w.body.count("and i64") == 1
