"""Every option of graphc: its environment variable, type, default and meaning, in one table."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from graphc.base.errors import ArgumentError


@dataclass(frozen=True)
class Option:
    """One option, set through the environment."""

    field: str
    """Its name in ``Options``."""
    variable: str
    """The environment variable."""
    values: str
    """What it may be set to, for people."""
    default: str
    """The text that stands for an unset variable."""
    doc: str
    parse: Callable[[str], Any]
    """Typed value of a text; raises ValueError."""


@dataclass(frozen=True)
class Options:
    """The typed values of all options."""

    verify: str
    """``off``, ``stage`` or ``pass``."""
    dump: str
    """Folder for the text of every stage; empty for none."""
    print_after: tuple[str, ...]
    """Names of passes after which the graph is printed to stderr; ``all`` stands for every one."""
    threads: int
    """How many threads a call may use; 0 for the number of available cores."""
    compile_threads: int
    """How many threads build object code at once; 0: one per core."""
    spin_us: int
    """Microseconds for which an idle worker looks for work before it sleeps."""
    eager: str
    """What eager mode computes ops by: ``auto`` or ``reference``."""
    check_indices: bool
    """Whether compiled code checks indices and labels."""
    winograd: bool
    """Whether convolutions may be computed by Winograd's method."""
    max_isa: str
    """Level of x86-64 whose instructions compiled code may use at most; empty for all of the machine's."""
    cache: bool
    """Whether compiled programs are kept on disk."""
    cache_dir: str
    """Folder of the cache."""
    cache_size: int
    """Bytes that the cache may take."""
    tf32: bool
    """Whether GPUs' libraries may multiply f32 as tf32."""
    emulator: tuple[str, ...]
    """How the emulated device looks for mistakes: any of ``orders`` and ``races``."""
    logs: str
    """Level of the log on stderr; empty for none."""
    progress: bool
    """Whether long compiles show on a terminal what they are doing."""
    programs: int
    """How many programs of one function are kept; 0 counts as 1."""
    program_memory: int
    """Bytes that the programs of all compiled functions may hold; 0 for half of the machine's memory."""
    warn_programs: int
    """After how many programs of one function there is a warning; 0 for none."""
    explain_recompiles: bool
    """Whether a compiled function tells why it is compiled again."""
    debug: bool
    """Whether the command line shows tracebacks."""
    distributed_timeout: float
    """Seconds after which a collective that some processes do not come to ends all of them."""
    distributed_check: bool
    """Whether processes compare what they call before each collective."""


def _one_of(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError(text)
        return text

    return parse


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _some_of(*allowed: str) -> Callable[[str], tuple[str, ...]]:
    def parse(text: str) -> tuple[str, ...]:
        found = _names(text)
        if not set(found) <= set(allowed):
            raise ValueError(text)
        return found

    return parse


def _within(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        number = int(text) if text else 0
        if text and not low <= number <= high:
            raise ValueError(text)
        return number

    return parse


def _on_off(text: str) -> bool:
    return {"on": True, "off": False}[text]


def _size(text: str) -> int:
    scale = {"K": 10, "M": 20, "G": 30, "T": 40}.get(text[-1:].upper(), 0)
    number = float(text[:-1] if scale else text)
    if not 0 <= number < 1e15:
        raise ValueError(text)
    return int(number * (1 << scale))


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 < number < 1e9:
        raise ValueError(text)
    return number


def _flag(text: str) -> bool:
    return {"1": True, "0": False, "": False}[text]


OPTIONS = (
    Option(
        "verify",
        "GRAPHC_VERIFY",
        "`off`, `stage`, `pass`",
        "stage",
        "When the compiler verifies the IR: never, after each stage (traced, optimized, lowered), or after every pass.",
        _one_of("off", "stage", "pass"),
    ),
    Option(
        "dump",
        "GRAPHC_DUMP",
        "a folder",
        "",
        "Every compile writes its stages into a folder of its own in this one: traced.gc, optimized.gc, lowered.gck, "
        "scheduled.gck, llvm.ll, asm.s, and large constants as .npz beside them.",
        str,
    ),
    Option(
        "print_after",
        "GRAPHC_PRINT_AFTER",
        "names of passes separated by commas, or `all`",
        "",
        "Prints the graph, program or nest to stderr after these passes.",
        _names,
    ),
    Option(
        "eager",
        "GRAPHC_EAGER",
        "`auto`, `reference`",
        "auto",
        "What eager mode computes each op by: `reference` is always the op's numpy reference, against which all other "
        "ways are compared; `auto` computes functions that are more than a call of numpy by programs, once they were "
        "called 24 times with the same shapes. Read when graphc is imported.",
        _one_of("auto", "reference"),
    ),
    Option(
        "check_indices",
        "GRAPHC_CHECK_INDICES",
        "`on`, `off`",
        "on",
        "Whether compiled code checks indices and labels that come from outside, before it writes to parameters and "
        "states, and raises where one is out of range. Without, the nearest element is taken, and such a label counts "
        "as none. Read when a program is compiled.",
        _on_off,
    ),
    Option(
        "winograd",
        "GRAPHC_WINOGRAD",
        "`on`, `off`",
        "on",
        "Whether 3x3 convolutions may be computed by Winograd's method: 2.25 to 4 times fewer "
        "multiplications, rounding errors about twice as large.",
        _on_off,
    ),
    Option(
        "threads",
        "GRAPHC_THREADS",
        "`1` to `256`",
        "",
        "How many threads a call of a compiled function may use; unset: as many as there are cores for this process.",
        _within(1, 256),
    ),
    Option(
        "compile_threads",
        "GRAPHC_COMPILE_THREADS",
        "`1` to `256`",
        "",
        "How many threads build object code at once; unset: as many as there are cores for this process. The code does "
        "not depend on it.",
        _within(1, 256),
    ),
    Option(
        "spin_us",
        "GRAPHC_SPIN_US",
        "`0` to `1000000`",
        "1000",
        "For how many microseconds an idle worker looks for work before it sleeps. Waking it then takes about 60.",
        _within(0, 1_000_000),
    ),
    Option(
        "max_isa",
        "GRAPHC_MAX_ISA",
        "`sse2`, `avx2`, `avx512`",
        "",
        "Hide the processor's instructions beyond this level of x86-64, as if the machine did not have them: to try "
        "what a lesser machine compiles and computes. Read once, when graphc first looks at the processor.",
        _one_of("", "sse2", "avx2", "avx512"),
    ),
    Option(
        "cache",
        "GRAPHC_CACHE",
        "`on`, `off`",
        "on",
        "Whether compiled programs are kept on disk and found there the next time. The cache is not used while "
        "GRAPHC_DUMP, GRAPHC_PRINT_AFTER or GRAPHC_VERIFY=pass ask to see each step of a compile.",
        _on_off,
    ),
    Option(
        "cache_dir",
        "GRAPHC_CACHE_DIR",
        "a folder",
        "~/.cache/graphc",
        "Folder of the cache. It must belong to the user, and nobody else may be able to write to it.",
        str,
    ),
    Option(
        "cache_size",
        "GRAPHC_CACHE_SIZE",
        "bytes, or a number with `K`, `M`, `G` or `T`",
        "1G",
        "How much the cache may hold; programs that were not used for the longest time go first.",
        _size,
    ),
    Option(
        "programs",
        "GRAPHC_PROGRAMS",
        "`1` to `1000000`",
        "128",
        "How many programs of one compiled function or training step are kept in memory, one for each signature; the "
        "one that was not used for the longest time goes, and is made again when it is called, from the cache on disk.",
        _within(1, 1_000_000),
    ),
    Option(
        "program_memory",
        "GRAPHC_PROGRAM_MEMORY",
        "bytes, or a number with `K`, `M`, `G` or `T`",
        "",
        "How much the programs of all compiled functions may hold in memory: code, constants, prepacked weights, "
        "scratch memory of their own, outputs that are used again. Beyond it those go that were not used for the "
        "longest time, but never what a function has used last. Unset: half of the memory of the machine.",
        lambda text: _size(text) if text else 0,
    ),
    Option(
        "warn_programs",
        "GRAPHC_WARN_PROGRAMS",
        "`0` to `1000000`",
        "8",
        "After how many programs of one compiled function or training step a RecompileWarning names the sizes and "
        "numbers that vary; `0`: never.",
        _within(0, 1_000_000),
    ),
    Option(
        "tf32",
        "GRAPHC_TF32",
        "`on`, `off`",
        "off",
        "Whether GPUs may multiply f32 numbers as tf32, with 10 bits of their fractions, where their library computes "
        "a product of matrices: up to ten times as fast, with errors up to 0.1% of each product. Sums stay f32. Read "
        "when a program is compiled.",
        _on_off,
    ),
    Option(
        "emulator",
        "GRAPHC_EMULATOR",
        "`orders`, `races`, or both separated by a comma",
        "",
        "How the device `cuda-emu` looks for mistakes besides accesses out of buffers and barriers that some threads "
        "miss: `orders` runs the threads of each kernel in four orders, which must leave the same; `races` "
        "watches every access for others that may happen at the same time. Read when the device is opened.",
        _some_of("orders", "races"),
    ),
    Option(
        "logs",
        "GRAPHC_LOGS",
        "`info`, `debug`",
        "",
        "Writes a log of compiles (stages, sizes, times) to stderr.",
        _one_of("", "info", "debug"),
    ),
    Option(
        "progress",
        "GRAPHC_PROGRESS",
        "`on`, `off`",
        "on",
        "Whether a compile that takes longer than a second shows on stderr what it is doing, when that is a terminal.",
        _on_off,
    ),
    Option(
        "explain_recompiles",
        "GRAPHC_EXPLAIN_RECOMPILES",
        "`0`, `1`",
        "0",
        "A compiled function or step that is compiled again tells on stderr which guard did not hold: shape, element "
        "type, static argument, training flag, grad mode, parameter.",
        _flag,
    ),
    Option(
        "debug",
        "GRAPHC_DEBUG",
        "`0`, `1`",
        "0",
        "The command line shows Python tracebacks beside its messages.",
        _flag,
    ),
    Option(
        "distributed_timeout",
        "GRAPHC_DISTRIBUTED_TIMEOUT",
        "seconds",
        "600",
        "After how long a collective that some processes do not come to ends all of them, with a message that says "
        "what each does; `distributed.init(timeout=)` goes before it. Read by `init`.",
        _seconds,
    ),
    Option(
        "distributed_check",
        "GRAPHC_DISTRIBUTED_CHECK",
        "`0`, `1`",
        "0",
        "Processes compare what they call before each collective: another one, or other shapes, is an error on all "
        "that says which process calls what, and where. Each collective takes about twice as long. Read by `init`.",
        _flag,
    ),
)


def read(environment: Mapping[str, str] | None = None) -> Options:
    """The options as the environment sets them now (``os.environ`` unless another mapping is given).

    Raises ArgumentError for a value that an option does not have.
    """
    environment = os.environ if environment is None else environment
    return _parse(tuple([environment.get(option.variable, option.default) for option in OPTIONS]))


@lru_cache(maxsize=16)
def _parse(texts: tuple[str, ...]) -> Options:
    # NOTE: each stage of a compile reads the options; the environment changes rarely.
    values = {}
    for option, text in zip(OPTIONS, texts, strict=True):
        try:
            values[option.field] = option.parse(text)
        except (ValueError, KeyError):
            raise ArgumentError(
                f"{option.variable}={text!r} is no value of this option", remedy=f"one of {option.values}"
            ) from None
    return Options(**values)


def logger(name: str) -> logging.Logger:
    """The logger ``graphc.<name>``, shown on stderr at the level that GRAPHC_LOGS asks for."""
    root = logging.getLogger("graphc")
    level = read().logs
    if level and not root.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        root.addHandler(handler)
    if level:
        root.setLevel(level.upper())
    return root.getChild(name)


def document() -> str:
    """The table of options as Markdown, which is what docs/options.md holds."""
    rows = [
        f"| `{o.variable}` | {o.values} | {f'`{o.default}`' if o.default else 'unset'} | {o.doc} |" for o in OPTIONS
    ]
    head = ["# Options", "", "Options are environment variables, read when a compile or a command starts."]
    note = "This page is generated from `base/config.py` by `python tools/options.py --write`; a test compares the two."
    table = ["| variable | values | default | meaning |", "|---|---|---|---|", *rows]
    return "\n".join([*head, note, "", *table]) + "\n"


assert {o.field for o in OPTIONS} == {f.name for f in fields(Options)}
