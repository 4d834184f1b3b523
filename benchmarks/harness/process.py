"""The parent's side of a worker process: starts it, asks with a time limit, notices when it dies."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


LIMITS = {
    "sse2": {
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2",
    },
    "avx2": {
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
    },
    "avx512": {
        "ONEDNN_MAX_CPU_ISA": "AVX512_CORE",
        "ATEN_CPU_CAPABILITY": "avx512",
        "MKL_ENABLE_INSTRUCTIONS": "AVX512",
        "XLA_FLAGS": "--xla_cpu_max_isa=AVX512",
    },
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
    limited = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GRAPHC_THREADS")
    return {
        **os.environ,
        **dict.fromkeys(limited, str(threads)),
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


class WorkerProcess:
    """One peer's worker. Ask it with `ask`; every answer is a dictionary, errors included."""

    def __init__(
        self,
        module: str,
        threads: int,
        environment: Mapping[str, str],
        log: Path,
        limit_s: float,
        tree: Path = ROOT,
    ):
        """Start the process with the packages of the folder ``tree``."""
        self.module = module
        self.limit_s = limit_s
        self._log = log.open("wb")
        self._pending = b""
        command = [sys.executable, "-m", "benchmarks.workers.peer", module, str(threads)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, cwd=tree, env=dict(environment)
        )
        self.hello = self._read()

    def ask(self, command: Mapping[str, Any]) -> dict[str, Any]:
        """Send one command and return its answer, or ``{"error": ...}`` when the process died or took too long."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(command).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return {"error": self._describe_end()}
        return self._read()

    @property
    def alive(self) -> bool:
        """Return False once the process has ended."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the process, by force if it does not end itself."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        while b"\n" not in self._pending:
            ready, _, _ = select.select([self._process.stdout], [], [], self.limit_s)
            if not ready:
                self._process.kill()
                self._process.wait()
                return {"error": f"no answer within {self.limit_s:g} s"}
            piece = os.read(self._process.stdout.fileno(), 65536)
            if not piece:
                return {"error": self._describe_end()}
            self._pending += piece
        line, _, self._pending = self._pending.partition(b"\n")
        return json.loads(line)

    def _describe_end(self) -> str:
        status = self._process.wait()
        if status < 0:
            return f"the process died of {signal.Signals(-status).name}"
        return f"the process ended with status {status}"
