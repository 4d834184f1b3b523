"""C libraries beside the C of onnx2c, both called from C: ``python -m benchmarks.library [--onnx2c PATH]``.

Five small nets, batch 1: times of calls (each with the clock around it, in alternating rounds), bytes of machine code,
of stack (painted), and of memory for temporaries. onnx2c (github.com/kraiskil/onnx2c) is built by whoever runs this;
its C is compiled with ``-O3 -march=native``. Without it the peer is ONNX Runtime, if installed,
called from Python on one thread.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import graphc
from benchmarks.harness.results import format_table
from benchmarks.harness.timing import find_library
from benchmarks.models.standard import module
from benchmarks.peers.onnx_calls import onnx_session
from graphc import nn
from graphc.c_library.build import build_library

CALLS, ROUNDS = 20_000, 5
"""Calls of a round, which takes a tenth for warming up, and rounds, of whose figures the median counts."""
_FLAGS = ("-O3", "-march=native", "-w", "-Wl,-z,now")

_HARNESS = """\
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "call.h"

enum {{ PAINTED = 1 << 20, PAINT = 0xA5 }};
static float x[{inputs}], y[{outputs}];

static double now(void) {{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}}

static int smaller(const void *a, const void *b) {{
    const double p = *(const double *)a, q = *(const double *)b;
    return (p > q) - (p < q);
}}

static unsigned char *top;
static void *work(void *unused) {{
    top = (unsigned char *)__builtin_frame_address(0);
    call(x, y);
    return unused;
}}

/* Bytes that a call has written below the frame of its caller. */
static long painted(void) {{
    unsigned char *stack;
    pthread_attr_t attributes;
    pthread_t thread;
    long i;
    if (posix_memalign((void **)&stack, 4096, PAINTED) != 0) {{
        exit(1);
    }}
    memset(stack, PAINT, PAINTED);
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, PAINTED);
    pthread_create(&thread, &attributes, work, NULL);
    pthread_join(thread, NULL);
    for (i = 0; i < PAINTED && stack[i] == PAINT; i++) {{
    }}
    return (long)(top - stack) - i;
}}

int main(int count, char **arguments) {{
    const long n = atol(arguments[count - 1]);
    double *times = (double *)malloc((size_t)n * sizeof *times);
    unsigned seed = 1;
    long i;
    for (i = 0; i < {inputs}; i++) {{
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) / 8388608 - 1;
    }}
    prepare();
    printf("{{\\"stack\\": %ld, ", painted());
    for (i = -n / 10; i < n; i++) {{
        const double start = now();
        call(x, y);
        times[i < 0 ? 0 : i] = now() - start;
    }}
    qsort(times, (size_t)n, sizeof *times, smaller);
    printf("\\"p50\\": %.4f, \\"p999\\": %.4f, \\"outputs\\": [", times[n / 2], times[(long)((double)n * 0.999)]);
    for (i = 0; i < {outputs}; i++) {{
        printf("%s%.9g", i ? ", " : "", (double)y[i]);
    }}
    printf("]}}\\n");
    return 0;
}}
"""
_OWN = """\
#include "net.h"
static void *arena;
static net_t *net;
static void prepare(void) {{
    if (posix_memalign((void **)&net, 64, NET_CONTEXT_SIZE) || net_init(net, NET_CONTEXT_SIZE)) {{
        exit(1);
    }}
    if (posix_memalign(&arena, 64, NET_RUN_ARENA_SIZE + 64)) {{
        exit(1);
    }}
}}
static void call(const float *x, float *y) {{
    if (net_run(net, x, y, arena, NET_RUN_ARENA_SIZE)) {{
        exit(1);
    }}
}}
"""
_PEER = """\
extern void entry(const float *, float *);
static void prepare(void) {{
}}
static void call(const float *x, float *y) {{
    entry(x, y);
}}
"""


def _sequences() -> nn.Module:
    """Return an LSTM over 16 steps of 8 sensors, and the scores of its last step."""

    def forward(self: Any, x: Any) -> Any:
        return self.last(self.lstm(x)[0][-1])

    return module(nn, "Sequences", forward, lstm=nn.LSTM(8, 32), last=nn.Linear(32, 4))


def _digits() -> nn.Module:
    """Return two convolutions and a linear layer on 28 x 28 pixels."""
    layers: list[nn.Module] = []
    for channels, filters in ((1, 8), (8, 16)):
        layers += [nn.Conv2d(channels, filters, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(16 * 49, 10))


def _linear(*sizes: int) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        layers: list[nn.Module] = []
        for a, b in pairwise(sizes):
            layers += [nn.Linear(a, b), nn.Tanh()]
        return nn.Sequential(*layers[:-1])

    return make


def _words() -> nn.Module:
    """Return depthwise and pointwise convolutions, as in models for keyword spotting."""
    layers: list[nn.Module] = [nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.ReLU()]
    for _ in range(2):
        layers += [nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.ReLU(), nn.Conv2d(16, 16, 1), nn.ReLU()]
    return nn.Sequential(*layers, nn.AvgPool2d((16, 10)), nn.Flatten(), nn.Linear(32, 12))


NETS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "policy, 17-64-64-6": (_linear(17, 64, 64, 6), (1, 17)),
    "sensors, 64-32-8-32-64": (_linear(64, 32, 8, 32, 64), (1, 64)),
    "LSTM, 16 steps": (_sequences, (16, 1, 8)),
    "words, depthwise": (_words, (1, 1, 64, 20)),
    "digits, 28x28": (_digits, (1, 1, 28, 28)),
}


class Built(NamedTuple):
    """A program that measures a library, and the figures known without running it: bytes of code, and for
    temporaries."""

    program: Path | None
    code: int
    memory: int


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.library", description=__doc__)
    parser.add_argument("--onnx2c", metavar="PATH", help="path of the program onnx2c")
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    if shutil.which("cc") is None:
        print("a C compiler (cc) is needed", file=sys.stderr)
        return 2
    peer = "onnx2c" if options.onnx2c else "onnxruntime" if find_library("onnxruntime") else ""
    figures = {name: _measure(name, peer, options) for name in NETS}
    if options.json:
        print(json.dumps(figures, indent=2))
        return 0
    rows = []
    for name, row in figures.items():
        for who, f in row.items():
            ratio = f"{f['p50'] / row['graphc']['p50']:.1f}" if who != "graphc" else ""
            rest = [f"{f[key]:,}" if f[key] else "-" for key in ("code", "stack", "memory")]
            rows.append([name, who, f"{f['p50']:.2f}", f"{f['p999']:.2f}", *rest, ratio])
    figures_of = ["p50 us", "p99.9 us", "code B", "stack B", "memory B"]
    print(format_table(["net", "by", *figures_of, f"{peer or 'peer'} / graphc"], rows))
    return 0


def _measure(name: str, peer: str, options: argparse.Namespace) -> dict[str, dict[str, float]]:
    make, shape = NETS[name]
    graphc.manual_seed(0)
    model, x = make().eval(), graphc.zeros(*shape)
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        graphc.export(model, x, path=folder / "net.onnx")
        outputs = model(x).detach().numpy().size
        built = {"graphc": _own(model, x, outputs, folder / "own")}
        if peer == "onnx2c":
            built[peer] = _onnx2c(options.onnx2c, x.numpy().size, outputs, folder)
        elif peer:
            built[peer] = Built(None, 0, 0)
        runs: dict[str, list[dict[str, Any]]] = {who: [] for who in built}
        for _ in range(options.rounds):
            for who, b in built.items():
                run = _run(b.program, options.calls) if b.program else _onnxruntime(folder / "net.onnx", x.numpy())
                runs[who].append(run)
    if peer == "onnx2c":
        np.testing.assert_allclose(runs[peer][0]["outputs"], runs["graphc"][0]["outputs"], rtol=1e-3, atol=1e-4)
    return {who: _figures(runs[who], b) for who, b in built.items()}


def _figures(runs: Sequence[dict[str, Any]], built: Built) -> dict[str, float]:
    medians = {key: float(np.median([run[key] for run in runs])) for key in ("p50", "p999")}
    return {**medians, "code": built.code, "stack": runs[0].get("stack", 0), "memory": built.memory}


def _run(program: Path | None, calls: int) -> dict[str, Any]:
    return json.loads(subprocess.run([str(program), str(calls)], check=True, capture_output=True, text=True).stdout)


def _harness(folder: Path, call: str, inputs: int, outputs: int) -> None:
    (folder / "call.h").write_text(call.format())
    (folder / "harness.c").write_text(_HARNESS.format(inputs=inputs, outputs=outputs))


def _own(model: nn.Module, x: Any, outputs: int, folder: Path) -> Built:
    folder.mkdir()
    library = build_library(model, x, path=folder / "net.o", emit=("o", "h"), name="net")
    _harness(folder, _OWN, x.numpy().size, outputs)
    _cc("harness.c", "net.o", "-lpthread", "-o", "program", folder=folder)
    return Built(folder / "program", library.code_bytes, int(library.entries["run"].arena))


def _onnx2c(onnx2c: str, inputs: int, outputs: int, folder: Path) -> Built:
    code = subprocess.run([onnx2c, str(folder / "net.onnx")], check=True, capture_output=True, text=True).stdout
    (folder / "net.c").write_text(code)
    _harness(folder, _PEER, inputs, outputs)
    _cc("-c", "net.c", "-o", "net.o", folder=folder)
    _cc("harness.c", "net.o", "-lm", "-lpthread", "-o", "program", folder=folder)
    sizes: dict[str, int] = {}
    listed = subprocess.run(["size", "-A", folder / "net.o"], check=True, capture_output=True, text=True)
    for line in listed.stdout.splitlines():
        words = line.split()
        if len(words) == 3 and words[0].startswith((".text", ".bss")):
            kind = words[0][1:].partition(".")[0]
            sizes[kind] = sizes.get(kind, 0) + int(words[1])
    return Built(folder / "program", sizes.get("text", 0), sizes.get("bss", 0))


def _cc(*arguments: str, folder: Path) -> None:
    subprocess.run(["cc", *_FLAGS, *arguments], check=True, cwd=folder)


def _onnxruntime(path: Path, x: np.ndarray) -> dict[str, Any]:
    session = onnx_session(path)
    feeds, times = {session.get_inputs()[0].name: x}, []
    for _ in range(2000):
        start = time.perf_counter()
        session.run(None, feeds)
        times.append(1e6 * (time.perf_counter() - start))
    return {"p50": float(np.percentile(times, 50)), "p999": float(np.percentile(times, 99.9))}


if __name__ == "__main__":
    sys.exit(main())
