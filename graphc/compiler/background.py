"""Builds in the background: a child process compiles a graph into the disk cache while this process goes on.

The child has a session and a niceness of its own, so Ctrl-C does not reach it. It ends with its one program, also where
this process ends first: the next process then finds the program. Without a disk cache it hands over a temporary folder.
"""

from __future__ import annotations

import os
import pickle
import select
import shutil
import signal
import sys
import weakref
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from fcntl import F_DUPFD_CLOEXEC, fcntl
from pathlib import Path
from typing import IO

import numpy as np

from graphc.base import config, locks
from graphc.base.lazy import deferred
from graphc.base.records import NamedTuple
from graphc.base.sizes.assumptions import Assumption, holding
from graphc.base.sizes.named_dims import dimensions, size_of
from graphc.base.sizes.size import Dimension
from graphc.compiler import cache
from graphc.compiler.graph_programs import program_key
from graphc.compiler.ready import prepare_threads, running_target, spec_and_text
from graphc.files.manifest import TargetSpec
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.text import collect_data, print_graph
from graphc.runtime.code.host_facts import are_known, is_llvm_loaded

_caller = deferred("graphc.compiler.native_call:caller")
_compile_graph = deferred("graphc.compiler.compile:compile_graph")
_make_folder = deferred("tempfile:mkdtemp")
_parse_graph = deferred("graphc.ir.graph.parse:parse_graph")

NICENESS = 10
"""Niceness that a child adds to its parent's, so that it takes time that nobody else wants."""
MOST_LOGGED = 2000
"""Limit on the characters of a failed child's last messages in the log."""
_CODE = "import sys; sys.path[:] = {path!r}; from graphc.compiler.background import main; main()"


class Request(NamedTuple):
    """A graph on its way to a child."""

    text: str
    data: dict[str, np.ndarray]
    assumptions: Sequence[Assumption]
    dims: dict[str, Dimension]
    """Named dimensions of the graph, by name."""
    target: str
    """Name of the target."""
    has_cache: bool = True
    """Whether the program goes to the cache, so that objects around it are found there too."""

    def graph(self) -> Graph:
        """Return the graph."""
        assumed = dimensions(n for x in self.assumptions for n in (x.a, x.b))
        with holding(self.assumptions, {d: size_of(self.dims.get(name, d)) for name, d in assumed.items()}):
            graph = _parse_graph(self.text, self.data)
        graph.assumptions = self.assumptions
        return graph


def request_of(graph: Graph, target: str) -> Request:
    """Return the request to compile a graph for a target."""
    return Request(print_graph(graph), dict(collect_data(graph)), tuple(graph.assumptions), dict(graph.dims), target)


def _memory() -> IO[bytes]:
    """Return a file without a name."""
    return open(os.memfd_create("graphc-build"), "w+b")


def _spawn(command: list[str], environment: dict[str, str], streams: Iterable[IO[bytes]]) -> int:
    """Start a process in a session of its own with these standard streams. Return its identifier."""
    # NOTE: numbers from 3 on, as this process may have closed its standard streams and opened these files instead.
    ends = [fcntl(stream, F_DUPFD_CLOEXEC, 3) for stream in streams]
    actions = [(os.POSIX_SPAWN_DUP2, end, number) for number, end in enumerate(ends)]
    ignored_by_python = (signal.SIGPIPE, signal.SIGXFSZ)
    try:
        return os.posix_spawn(
            command[0], command, environment, file_actions=actions, setsid=True, setsigdef=ignored_by_python
        )
    finally:
        for end in ends:
            os.close(end)


class _Child:
    """A child process. Its standard output is closed at its end, which forks of this process see too."""

    def __init__(self, request: Request, environment: dict[str, str]):
        command = [sys.executable, "-c", _CODE.format(path=sys.path)]
        # NOTE: the modules subprocess and tempfile take 9 ms to import, a fiftieth of a first call's processor time.
        with locks.section(), _memory() as file, ExitStack() as failed:
            # A full pipe would stop the child, so its messages go to a file.
            self._messages = failed.enter_context(_memory())
            pickle.dump(request, file)
            file.seek(0)
            reader, writer = os.pipe()
            self._output = failed.enter_context(open(reader, "rb"))
            with open(writer, "wb") as output:
                self.pid = _spawn(command, environment, (file, output, self._messages))
            failed.pop_all()
        self._parent = os.getpid()
        self.is_running = True

    def look(self) -> None:
        """Find out whether the process has ended."""
        if not self.is_running:
            return
        poll = select.poll()
        poll.register(self._output, select.POLLHUP)
        if any(event & select.POLLHUP for _, event in poll.poll(0)):
            self._end()

    def stop(self) -> None:
        """End the process, if it runs and is a child of this one."""
        self.look()
        if self.is_running and os.getpid() == self._parent:
            os.kill(self.pid, signal.SIGKILL)
            self._end(is_stopped=True)

    def _end(self, is_stopped: bool = False) -> None:
        self.is_running = False
        self._output.close()
        if os.getpid() != self._parent:
            return
        try:
            status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        except ChildProcessError:  # somebody else waited for it
            return
        with self._messages as messages:
            if status and not is_stopped:
                messages.seek(max(0, messages.seek(0, os.SEEK_END) - MOST_LOGGED))
                text = messages.read().decode(errors="replace").strip()
                config.logger("compile").info("the child failed with exit status %d: %s", status, text)


_lock = locks.Lock()
_children: list[_Child] = []
"""The running child: one at a time."""


def is_building() -> bool:
    """Return whether a child of this process runs."""
    with _lock:
        return _running()


def _running() -> bool:
    """Forget children that have ended; return whether one runs."""
    for child in [*_children]:
        child.look()
        if not child.is_running:
            _children.remove(child)
    return bool(_children)


def can_build() -> bool:
    """Return whether a child can do the work of a compile: no option asks this process for its steps."""
    options = config.read()
    return bool(sys.executable) and not (options.dump or options.print_after or options.verify == "pass")


class BackgroundBuild:
    """The program of a graph that a child process builds. It waits while another child runs.

    Example:
        >>> import time
        >>> import graphc as gc
        >>> from graphc.compiler.background import BackgroundBuild
        >>> build = BackgroundBuild(gc.trace(lambda x: x * 2, gc.zeros(3)), "host")
        >>> while not build.is_finished():
        ...     time.sleep(0.01)
        >>> build.program().manifest.name
        'main'
    """

    def __init__(self, graph: Graph, target: str):
        """``target`` is the name of a CPU."""
        disk, self._folder = cache.current(), ""
        request = request_of(graph, target)._replace(has_cache=disk is not None)
        self._request: Request | None = request
        if disk is None:
            self._folder = _make_folder(prefix="graphc-")
            disk = cache.Cache(Path(self._folder), sys.maxsize)
        self._disk, self._graph, self._target, self._text = disk, graph, target, request.text
        self._entry_key: tuple[str, TargetSpec] | None = None
        self._children: list[_Child] = []
        self._discard = weakref.finalize(self, _discard, self._folder, os.getpid(), self._children)

    def is_finished(self) -> bool:
        """Return whether the child has ended, with or without a program. Start it once no other child runs."""
        with _lock:
            if self._request is not None:
                if _running():
                    return False
                self._start(self._request)
                self._request = None
            for child in self._children:
                child.look()
                return not child.is_running
            return True

    def _start(self, request: Request) -> None:
        environment = {**os.environ}
        if self._folder:
            environment |= {"GRAPHC_CACHE": "on", "GRAPHC_CACHE_DIR": self._folder, "GRAPHC_CACHE_SIZE": "1000G"}
        try:
            child = _Child(request, environment)
        except OSError as error:
            config.logger("compile").info("no child process: %s", error)
            return
        self._children.append(child)
        _children.append(child)

    def program(self) -> cache.CacheEntry | None:
        """Return the program if it is on disk. Raise the error of a question about sizes that stopped its build.

        Before the child has started, return None too where only LLVM could tell whether the program is there. Importing
        LLVM takes longer than the child needs to find a program, and the child records the facts for the look-up.
        """
        if self._request is not None and (self._folder or not self._can_look()):
            return None
        key, spec = self._key()
        question = self._disk.question(key)
        if question is not None:
            raise question.error()
        return self._disk.load(key, spec)

    def _can_look(self) -> bool:
        """Return whether the key of the program is known without importing LLVM."""
        return is_llvm_loaded() or are_known(self._folders)

    @property
    def _folders(self) -> tuple[Path, ...]:
        return (self._disk.folder, *self._disk.shared)

    def _key(self) -> tuple[str, TargetSpec]:
        """Return the key of the program, and the machine that it is for."""
        if self._entry_key is None:
            are_known(self._folders)  # takes the facts that the child has recorded, if it has
            spec, facts = spec_and_text(self._target)
            self._entry_key = program_key(self._disk, self._graph, spec, facts, self._text), spec
        return self._entry_key

    def discard(self) -> None:
        """Remove a temporary folder, and end a child that would write to it."""
        self._discard()


def _discard(folder: str, process: int, children: list[_Child]) -> None:
    if folder and os.getpid() == process:
        for child in children:
            child.stop()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Compile the graph of the request on standard input, as the child.

    Store the objects around the program too, which its first call in any process needs: the pool of threads, and native
    calls. That process would import LLVM for them.
    """
    os.nice(NICENESS)
    request: Request = pickle.load(sys.stdin.buffer)
    compiled = _compile_graph(request.graph(), running_target(request.target))
    if request.has_cache:
        for entry in filter(None, (compiled, compiled.prepacking)):
            prepare_threads(entry.object)
        _caller()
