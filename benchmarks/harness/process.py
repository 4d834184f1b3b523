"""Child processes: pinned, limited to threads and instructions, asked for calls of functions, with a time limit."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GRAPHC_THREADS")
"""Environment variables from which libraries read their number of threads when they are loaded."""


def _limits(onednn: str, torch: str, mkl: str, xla: str) -> dict[str, str]:
    return {
        "ONEDNN_MAX_CPU_ISA": onednn,
        "ATEN_CPU_CAPABILITY": torch,
        "MKL_ENABLE_INSTRUCTIONS": mkl,
        "XLA_FLAGS": f"--xla_cpu_max_isa={xla}",
    }


LIMITS = {
    "sse2": _limits("SSE41", "default", "SSE4_2", "SSE4_2"),
    "avx2": _limits("AVX2", "avx2", "AVX2", "AVX2"),
    "avx512": _limits("AVX512_CORE", "avx512", "AVX512", "AVX512"),
}
"""Environment variables that limit oneDNN (in torch and openvino), torch's own kernels, MKL and XLA to a target's
instructions, or to the nearest level that they know, by target."""
UNLIMITED = ("onnxruntime",)
"""Peers that nothing holds to fewer instructions than the machine has."""
TARGET = "GRAPHC_BENCHMARK_TARGET"
"""The variable that tells the workers of graphc for which target to compile."""


def make_environment(threads: int, caches: Path, target: str = "host") -> dict[str, str]:
    """Return this process's environment with every library held to `threads` threads and its disk cache new, and to the
    instructions of `target`."""
    limits = LIMITS.get(target, {})
    xla = f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'}"
    return {
        **os.environ,
        **dict.fromkeys(THREADS, str(threads)),
        "JAX_PLATFORMS": "cpu",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
        "GRAPHC_CACHE_DIR": str(caches / "graphc"),
        TARGET: target,
        **limits,
        "XLA_FLAGS": " ".join([xla, limits.get("XLA_FLAGS", "")]).strip(),
    }


def limits_note(target: str, names: Sequence[str]) -> str:
    """Describe how the peers `names` are limited to a target's instructions, and which peers are not; empty for
    `host`."""
    if target not in LIMITS:
        return ""
    settings = ", ".join(f"{variable}={value}" for variable, value in LIMITS[target].items())
    free = [name for name in names if name.startswith(UNLIMITED)]
    note = f"target: graphc {target}; other peers with {settings}"
    note += "; openvino with a clamp behind each product, which keeps it to oneDNN" if "openvino" in names else ""
    return note + (f"; {', '.join(free)}: no such switch, all instructions of the machine\n" if free else "\n")


def pin(threads: int) -> list[int]:
    """Bind this process and its children to the first `threads` of the cores it may use; return them."""
    cores = sorted(os.sched_getaffinity(0))[:threads]
    if len(cores) < threads:
        raise ValueError(f"{threads} threads asked for, and this process may use {len(cores)} cores")
    os.sched_setaffinity(0, cores)
    return cores


class Child:
    """A process that calls functions by name. Every answer is a dictionary; ``{"error": ...}`` where it fails."""

    def __init__(
        self,
        environment: Mapping[str, str],
        limit_s: float,
        tree: Path = ROOT,
        launcher: Sequence[str] = (),
        order: Sequence[str] = (),
    ):
        """Start it with the packages of the folder ``tree``. With an ``order``, it gives the answer to that only;
        ``launcher`` is a command that starts it, perhaps several times (``mpiexec -n 2``)."""
        self.limit_s = limit_s
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed with the process
        self._pending = b""
        command = [*launcher, sys.executable, "-m", "benchmarks.harness.child", *order]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=self._log, cwd=tree, env=dict(environment), start_new_session=True
        )

    def ask(self, function: str, /, **arguments: Any) -> dict[str, Any]:
        """Call ``package.module:function``; return its answer, or ``{"error": ...}`` when it raises or the process dies
        or takes too long."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps([function, arguments]).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return {"error": self._describe_end()}
        return self.read()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        while b"\n" not in self._pending:
            ready, _, _ = select.select([self._process.stdout], [], [], self.limit_s)
            if not ready:
                self._kill()
                return {"error": f"no answer within {self.limit_s:g} s"}
            piece = os.read(self._process.stdout.fileno(), 65536)
            if not piece:
                return {"error": self._describe_end()}
            self._pending += piece
        line, _, self._pending = self._pending.partition(b"\n")
        return json.loads(line)

    def close(self) -> None:
        """End the process and the processes that it has started, by force if it does not end itself."""
        with contextlib.suppress(BrokenPipeError):
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        self._kill()
        self._process.stdout.close()
        self._log.close()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _describe_end(self) -> str:
        status = self._process.wait()
        if status < 0:
            return f"the process died of {signal.Signals(-status).name}"
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return ": ".join([f"the process ended with status {status}", *lines[-1:]])


def call_in_child(
    function: str, environment: Mapping[str, str], limit_s: float, launcher: Sequence[str] = (), /, **arguments: Any
) -> dict[str, Any]:
    """Return what ``package.module:function`` answers in a process of its own, or ``{"error": ...}``."""
    order = [json.dumps([function, arguments])]
    with Child(environment, limit_s, launcher=launcher, order=order) as child:
        return child.read()
