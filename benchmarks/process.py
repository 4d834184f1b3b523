"""The parent's side of a worker process: starts it, asks with a time limit, notices when it dies."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def make_environment(threads: int, caches: Path) -> dict[str, str]:
    """Return this process's environment with every library held to `threads` threads and its disk cache new."""
    limited = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GRAPHC_THREADS")
    return {
        **os.environ,
        **dict.fromkeys(limited, str(threads)),
        "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'}",
        "JAX_PLATFORMS": "cpu",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
        "GRAPHC_CACHE_DIR": str(caches / "graphc"),
    }


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
        """``tree`` is the folder whose packages the process imports."""
        self.module = module
        self.limit_s = limit_s
        self._log = log.open("wb")
        self._pending = b""
        command = [sys.executable, "-m", "benchmarks.worker", module, str(threads)]
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
        """False once the process has ended."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the process."""
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
