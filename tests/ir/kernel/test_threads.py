"""Kernels of threads that are wrong: each is found, and right ones are not refused."""

from __future__ import annotations

import pytest

from graphc.base.errors import VerifyError
from graphc.ir.kernel.map import chain_of
from graphc.ir.kernel.parse import parse_kernel
from graphc.ir.kernel.statements import Kernel
from graphc.ir.kernel.threads import number_of, verify_threads
from graphc.ir.kernel.verify import verify_kernel

HEAD = (
    "kernel @k(%x: f32[64] in, %y: f32[64] out, %t: f32[64] inout, %s: f32[64] shared, %p: f32[64] private) threads 64"
)
LIMITED = HEAD.replace("(", "(%n: i64[64] in, ")
COUNT = "acc c: i64 = add i64(0) for d in 64 thread { v8: i64 = load %n[d] update c with v8 }"
USE = "for e in 64 thread { v9: f32 = load %s[63 - e] store %y[e] = v9 }"
FILL = "for a in 64 thread { v1: f32 = load %x[a] store %s[a] = v1 }"
SUM = "acc q: f32 = add f32(0.0) for b in 64 thread { v2: f32 = load %x[b] update q with v2 }"
ZERO = "for z in 64 thread { store %y[z] = f32(0.0) }"
WRONG = [
    ("for i in 2 block { barrier warp }", "a barrier over a warp is not inside a warp"),
    ("for i in 64 grid { barrier block }", "a barrier over a block is not inside a block"),
    ("for i in 64 thread { barrier block }", "not all threads of the block come to a barrier"),
    (
        f"{SUM} for j in 64 thread {{ v3 = read q over block store %y[j] = v3 }}",
        "not all threads of the block come to the sum q",
    ),
    (
        "for i in 8 thread { acc q: f32 = add f32(0.0) for j in 8 thread { v1: f32 = load %x[j] update q with v1 } }",
        "is inside a loop that is shared already",
    ),
    ("for i in 2 warp { for j in 32 thread { store %y[32*i + j] = f32(0.0) } }", "thread axis j is not inside a block"),
    ("for i in 2 block { for j in 32 lane { store %y[32*i + j] = f32(0.0) } }", "lane axis j is not inside a warp"),
    ("for i in 4 thread { for j in 2 block { store %y[2*i + j] = f32(0.0) } }", "does not enclose everything else"),
    (f"{FILL} for j in 64 thread {{ v2: f32 = load %s[63 - j] store %y[j] = v2 }}", "without a barrier over the block"),
    (f"{FILL} v2: f32 = load %s[3] store %y[0] = v2", "without a barrier over the block"),
    (
        "v1: f32 = load %t[0] store %t[0] = f32(1.0) v2: f32 = load %t[0] store %y[0] = v2",
        "without a barrier over the block",
    ),
    (
        f"for k in 3 serial {{ {FILL} barrier block "
        "for j in 64 thread { v2: f32 = load %s[63 - j] store %y[j] = v2 } }",
        "without a barrier over the block",
    ),
    ("for i in 64 thread { store %t[0] add= f32(1.0) }", "several threads, of axis i, add to one element of %t"),
    ("for i in 64 grid { store %t[0] add= f32(1.0) }", "several threads, of axis i, add to one element of %t"),
    ("for i in 64 thread { store %p[63 - i] = f32(0.0) }", "does not belong to a single thread"),
    ("for i in 32 thread { store %p[2*i] = f32(0.0) }", "does not belong to a single thread"),
    ("store %p[0] = f32(0.0)", "but all threads run this"),
]
RIGHT = [
    f"{FILL} barrier block for j in 64 thread {{ v2: f32 = load %s[63 - j] store %y[j] = v2 }}",
    f"{SUM} v3 = read q over block store %y[0] = v3",
    f"{FILL} for j in 64 thread {{ v2: f32 = load %s[j] store %y[j] = v2 }}",
    f"{FILL} {SUM} v3 = read q over block v4: f32 = load %s[3] store %y[0] = v4",
    "for i in 64 thread { store %p[i] = f32(0.0) } for j in 64 thread { v1: f32 = load %p[j] store %y[j] = v1 }",
    # Halves that take turns.
    "for a in 32 thread { store %s[a] = f32(0.0) } barrier block for k in 3 serial { "
    "for j in 32 thread { v2: f32 = load %s[31 - j + 32*(k % 2)] store %s[j + 32*((k + 1) % 2)] = v2 } barrier block }",
    "for i in 2 warp { for j in 32 lane { v1: f32 = load %x[32*i + j] store %s[j] = v1 } barrier warp "
    "for k in 32 lane { v2: f32 = load %s[31 - k] store %y[32*i + k] = v2 } }",
]


@pytest.mark.parametrize("body,message", WRONG, ids=range(len(WRONG)))
def test_a_wrong_kernel(body: str, message: str):
    with pytest.raises(VerifyError) as found:
        verify_threads(parse_kernel(f"{HEAD} {{ {body} }}"))
    assert message in str(found.value)


@pytest.mark.parametrize("body", RIGHT, ids=range(len(RIGHT)))
def test_a_right_kernel(body: str):
    verify_kernel(parse_kernel(f"{HEAD} {{ {body} {'' if '%y' in body else ZERO} }}"))


def limited(body: str) -> Kernel:
    return parse_kernel(f"{LIMITED} {{ {body} }}")


@pytest.mark.parametrize("inside", ["barrier block", f"{SUM} v3 = read q over block", ZERO])
def test_loops_end_at_the_same_iteration_in_all_threads(inside: str):
    """Barriers that only some threads reach are undefined; so is the number of iterations of shared loops."""
    loop = f"for i in 9 serial until v7 {{ {inside} }} {'' if inside == ZERO else ZERO}"
    verify_kernel(limited(f"{COUNT} v7 = read c over block {loop}"))
    verify_kernel(limited(f"v7: i64 = load %n[0] {loop}"))
    with pytest.raises(VerifyError, match="v7 differs between threads: read c over the block"):
        verify_kernel(limited(f"{COUNT} v7 = read c {loop}"))


def test_scalars_from_partial_sums_differ_through_other_accumulators():
    body = (
        f"{COUNT} acc g: i64 = add i64(0) for f in 2 serial {{ v6 = read c OVER update g with v6 }} v7 = read g {ZERO}"
    )
    verify_kernel(limited(body.replace("OVER", "over block")))
    with pytest.raises(VerifyError, match="v6 differs between threads: read c over the block"):
        verify_kernel(limited(body.replace("OVER", "")))


UNTIL = "for i in 9 serial until v7 { barrier block }"
SHARED_END = HEAD.replace("(", "(%n: i64[64] inout, ")


def ending(body: str, blocks: int = 2) -> Kernel:
    """Return a kernel of blocks that write rows of %y, and a buffer %n from which loops may take their end."""
    rows = "for z in 32 thread { store %y[32*b + z] = f32(0.0) }"
    return parse_kernel(f"{SHARED_END} {{ for b in {blocks} block {{ {body} {rows} }} }}")


@pytest.mark.parametrize(
    "body",
    [
        f"v7: i64 = load %n[b] barrier block {UNTIL} store %n[b] = i64(3)",
        f"v6: i64 = load %n[0] v7: i64 = load %n[b] barrier block store %n[b] = v6 {UNTIL}",
        f"{COUNT} v7 = read c over block {UNTIL} store %n[b] = v7",
        "v7: i64 = load %n[0] barrier block for i in 9 serial until v7 { prefetch %x[i] } store %n[b] = v7",
    ],
    ids=["its own element", "another scalar", "a sum over the block", "a loop without barriers"],
)
def test_loops_end_by_what_no_other_block_writes(body: str):
    verify_kernel(ending(body))


@pytest.mark.parametrize(
    "body",
    [
        f"v7: i64 = load %n[0] barrier block {UNTIL} store %n[b] = i64(3)",
        f"v6: i64 = load %n[0] v7: i64 = add(v6, i64(1)) barrier block {UNTIL} store %n[b] = i64(3)",
        "acc g: i64 = add i64(0) v5: i64 = load %n[0] for f in 3 serial until v5 { update g with i64(1) } "
        f"v7 = read g barrier block {UNTIL} store %n[b] = i64(3)",
        f"v7: i64 = load %n[b] barrier block {UNTIL} store %n[1 - b] = i64(3)",
    ],
    ids=["a load", "a number computed from it", "a count of iterations", "an element of the other block"],
)
def test_a_loop_whose_end_another_block_may_write(body: str):
    """Threads of one block may load it before and after the write, and come to the barrier a different number of
    times."""
    with pytest.raises(VerifyError, match=r"come to a barrier, but another block may write %n\[(b|0)\]"):
        verify_kernel(ending(body))
    verify_kernel(ending(body, blocks=1))


def test_a_barrier_that_a_loop_without_iterations_skips():
    verify_kernel(limited(f"{FILL} for i in 9 serial {{ barrier block }} {USE}"))
    skipping = f"v7: i64 = load %n[0] {FILL} for i in 9 serial until v7 {{ barrier block }}"
    verify_kernel(limited(f"{skipping} barrier block {USE}"))
    with pytest.raises(VerifyError, match="without a barrier over the block"):
        verify_kernel(limited(f"{skipping} {USE}"))


def test_a_barrier_in_a_loop_whose_size_may_be_0():
    text = f"{HEAD} {{ {FILL} for i in n serial {{ barrier block }} {USE} }}"
    verify_kernel(parse_kernel(f"dim n = 1..9 hint 4 {text}"))
    with pytest.raises(VerifyError, match="without a barrier over the block"):
        verify_kernel(parse_kernel(f"dim n = 0..9 hint 4 {text}"))


@pytest.mark.parametrize("threads", [0, 33, 2048])
def test_numbers_of_threads(threads: int):
    text = f"{HEAD} {{ {FILL} }}".replace("threads 64", f"threads {threads}" if threads else "")
    with pytest.raises(VerifyError, match="threads"):
        verify_threads(parse_kernel(text))


def test_private_elements_of_several_threads():
    text = f"{HEAD} {{ for i in 128 thread {{ store %p[i % 64] = f32(0.0) }} }}".replace("%p: f32[64]", "%p: f32[256]")
    with pytest.raises(VerifyError, match="does not belong to a single thread"):
        verify_threads(parse_kernel(text))


def test_flattened_loops():
    kernel = parse_kernel(
        f"{HEAD} {{ for i in 4 thread {{ for j in 16 thread {{ store %y[16*i + j] = f32(0.0) }} }} }}"
    )
    loops, inside = chain_of(kernel.body[0])  # type: ignore[arg-type]
    number, count = number_of([loop.axis for loop in loops])
    assert len(loops) == 2 and len(inside) == 1 and count == 64 and str(number) == "16*i + j"
