"""Start of several processes from a test, by the MPI launcher next to this Python."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def mpiexec() -> str | None:
    """Return the launcher next to this Python, else the one on the search path."""
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return shutil.which("mpiexec", path=beside)


def reason_without() -> str:
    """Why no processes can be started here; empty where they can."""
    if importlib.util.find_spec("mpi4py") is None:
        return "mpi4py is not installed"
    return "" if mpiexec() else "there is no mpiexec"


needs_mpi = pytest.mark.skipif(bool(reason_without()), reason=reason_without() or "-")
"""Marks tests that start processes."""


def command(program: str | Path, ranks: int, *args: object) -> list[str]:
    """Return the command that starts ``ranks`` processes of a script (``.py``) or a module (``tests.x.y``)."""
    what = [str(program)] if str(program).endswith(".py") else ["-m", str(program)]
    return [str(mpiexec()), "-n", str(ranks), sys.executable, *what, *map(str, args)]


def launch(
    program: str | Path, ranks: int, *args: object, timeout: float = 60.0, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``ranks`` processes to their end; return exit code, stdout and stderr of all together. Skip the test without
    MPI. Raise TimeoutExpired with their output after killing the processes."""
    if reason_without():
        pytest.skip(reason_without())
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    given = {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "GRAPHC_CACHE": "off", **(env or {})}
    process = subprocess.Popen(
        command(program, ranks, *args),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=given,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired as error:
        end(process)
        out, err = process.communicate()
        raise subprocess.TimeoutExpired(error.cmd, timeout, out, err) from None
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def end(process: subprocess.Popen[str], patience: float = 5.0) -> None:
    """Ends a launcher with its processes: asked to end, it ends them first."""
    process.terminate()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
