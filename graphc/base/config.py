"""Options of graphc: a table of each option's environment variable, type, default and meaning."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from functools import lru_cache
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.base.records import dataclass


@dataclass(frozen=True)
class Option:
    """One option, set through the environment."""

    field: str
    """Its name in ``Options``."""
    variable: str
    """The environment variable."""
    values: str
    """Description of the accepted values."""
    default: str
    """Text that is parsed if the variable is unset."""
    doc: str
    """Meaning, as docs/options.md prints it."""
    parse: Callable[[str], Any]
    """Convert a text to the value of the option; raises ValueError or KeyError."""


def _one_of(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError(text)
        return text

    return parse


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _some_of(*allowed: str) -> Callable[[str], tuple[str, ...]]:
    def parse(text: str) -> tuple[str, ...]:
        names = _names(text)
        if not set(names) <= set(allowed):
            raise ValueError(text)
        return names

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


def _option(values: str, default: str, doc: str, parse: Callable[[str], Any]) -> Any:
    """Return a field of ``Options``; see ``Option`` for the arguments."""
    return field(metadata={"values": values, "default": default, "doc": doc, "parse": parse})


@dataclass(frozen=True)
class Options:
    """Parsed values of all options."""

    verify: str = _option(
        "`off`, `stage`, `pass`",
        "stage",
        "When to verify the IR: never, after each stage (traced, optimized, lowered), or after every pass.",
        _one_of("off", "stage", "pass"),
    )
    dump: str = _option(
        "a folder",
        "",
        "Write the stages of every compile to a new folder in this one: traced.gc, optimized.gc, fused.gcp, "
        "lowered.gck, scheduled.gck, llvm.ll, asm.s (or cuda.cu), and .npz files with large constants.",
        str,
    )
    """Folder; empty: no dumps."""
    print_after: tuple[str, ...] = _option(
        "names of passes separated by commas, or `all`",
        "",
        "Print the graph, program or nest to stderr after these passes.",
        _names,
    )
    """Names of passes; ``all``: every pass."""
    eager: str = _option(
        "`auto`, `reference`",
        "auto",
        "How eager mode computes ops. `reference`: always with the op's numpy reference, against which all other "
        "implementations are tested. `auto`: functions of more than one numpy call are compiled once they were "
        "called 24 times with the same shapes. Read when graphc is imported.",
        _one_of("auto", "reference"),
    )
    tier: str = _option(
        "`full`, `auto`",
        "full",
        "Tier of `gc.compile` without `tier=`. `full`: compile before the first call. `auto`: run the first calls "
        "without gradients by NumPy while another process compiles.",
        _one_of("full", "auto"),
    )
    check_indices: bool = _option(
        "`on`, `off`",
        "on",
        "Whether compiled code checks the indices and labels that it is passed before it writes to parameters and "
        "states, and raises if one is out of range. If off, an index is clamped to the nearest element, and such a "
        "label is ignored. Read when a program is compiled.",
        _on_off,
    )
    winograd: bool = _option(
        "`on`, `off`",
        "on",
        "Whether 3x3 convolutions may use Winograd's algorithm: 2.25 to 4 times fewer "
        "multiplications, rounding errors about twice as large.",
        _on_off,
    )
    threads: int = _option(
        "`1` to `256`",
        "",
        "Maximum number of threads for a call of a compiled function; unset: the cores available to this process.",
        _within(1, 256),
    )
    """0: the number of available cores."""
    compile_threads: int = _option(
        "`1` to `256`",
        "",
        "Number of threads that generate object code in parallel; unset: the cores available to this process. The code "
        "does not depend on it.",
        _within(1, 256),
    )
    """0: the number of available cores."""
    spin_us: int = _option(
        "`0` to `1000000`",
        "1000",
        "Microseconds for which an idle worker thread spins before it sleeps. Waking it then takes about 60.",
        _within(0, 1_000_000),
    )
    max_isa: str = _option(
        "`sse2`, `avx2`, `avx512`",
        "",
        "Hide the processor's instructions beyond this level of x86-64, as if the machine did not have them, to test "
        "how graphc compiles and computes on an older machine. Read once, when graphc first detects the processor.",
        _one_of("", "sse2", "avx2", "avx512"),
    )
    """Empty: no limit."""
    cache: bool = _option(
        "`on`, `off`",
        "on",
        "Whether compiled programs are cached on disk. The cache is not used while "
        "GRAPHC_DUMP, GRAPHC_PRINT_AFTER or GRAPHC_VERIFY=pass ask for each step of a compile.",
        _on_off,
    )
    cache_dir: str = _option(
        "folders, separated by `:`",
        "~/.cache/graphc",
        "Folder of the cache. It must belong to the user, and no other user may have write permission. Programs are "
        "also read from further folders, which may belong to root; graphc never writes to those.",
        str,
    )
    cache_size: int = _option(
        "bytes, or a number with `K`, `M`, `G` or `T`",
        "1G",
        "Maximum size of the cache; the least recently used programs are deleted first.",
        _size,
    )
    """In bytes."""
    programs: int = _option(
        "`1` to `1000000`",
        "128",
        "Maximum number of programs in memory per compiled function or training step, one per signature. The least "
        "recently used one is dropped, and loaded again from the cache on disk when it is called.",
        _within(1, 1_000_000),
    )
    """0 counts as 1."""
    program_memory: int = _option(
        "bytes, or a number with `K`, `M`, `G` or `T`",
        "",
        "Maximum memory of the programs of all compiled functions: code, constants, prepacked weights, "
        "their own scratch memory, outputs that are reused. Beyond it the least recently used programs are dropped, "
        "but never the last one that a function has used. Unset: half of the machine's memory.",
        lambda text: _size(text) if text else 0,
    )
    """In bytes; 0: half of the machine's memory."""
    warn_programs: int = _option(
        "`0` to `1000000`",
        "8",
        "Number of programs of one compiled function or training step after which a RecompileWarning names the sizes "
        "and numbers that vary; `0`: never.",
        _within(0, 1_000_000),
    )
    """0: never."""
    tf32: bool = _option(
        "`on`, `off`",
        "off",
        "Whether the matrix products of GPU libraries may round f32 operands to tf32, which has 10 bits of fraction: "
        "up to ten times as fast, with errors up to 0.1% of each product. Sums stay f32. Read "
        "when a program is compiled.",
        _on_off,
    )
    emulator: tuple[str, ...] = _option(
        "`orders`, `races`, or both separated by a comma",
        "",
        "Further checks of the device `cuda-emu`, which always detects accesses out of bounds and barriers that some "
        "threads miss. `orders`: run the threads of each kernel in four orders and compare the results; `races`: "
        "detect accesses that may happen at the same time. Read when the device is opened.",
        _some_of("orders", "races"),
    )
    logs: str = _option(
        "`info`, `debug`",
        "",
        "Write a log of compiles (stages, sizes, times) to stderr.",
        _one_of("", "info", "debug"),
    )
    """Empty: no log."""
    progress: bool = _option(
        "`on`, `off`",
        "on",
        "Whether a compile that takes longer than a second shows its stage and kernel on stderr, if that is a terminal "
        "(notebooks have none).",
        _on_off,
    )
    explain_recompiles: bool = _option(
        "`0`, `1`",
        "0",
        "When a function or step is recompiled, report on stderr which guard failed: shape, element "
        "type, static argument, training flag, grad mode, parameter.",
        _flag,
    )
    debug: bool = _option(
        "`0`, `1`",
        "0",
        "Show Python tracebacks in addition to the messages of the command line.",
        _flag,
    )
    distributed_timeout: float = _option(
        "seconds",
        "600",
        "Time after which a collective that some processes do not reach ends all of them, with a message that says "
        "what each process does. `distributed.init(timeout=)` overrides it. Read by `init`.",
        _seconds,
    )
    """In seconds."""
    distributed_check: bool = _option(
        "`0`, `1`",
        "0",
        "Compare the calls of all processes before each collective: if collectives or shapes differ, all processes "
        "raise an error that says which process calls what, and where. Each collective takes about twice as long. "
        "Read by `init`.",
        _flag,
    )


OPTIONS = tuple(Option(f.name, f"GRAPHC_{f.name.upper()}", **f.metadata) for f in fields(Options))


def read(environment: Mapping[str, str] | None = None) -> Options:
    """Return the options as set in the environment now (``os.environ`` unless another mapping is given).

    Raises ArgumentError for an invalid value.
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
                f"{option.variable}={text!r} is no value of this option", remedy=f"set it to one of {option.values}"
            ) from None
    return Options(**values)


def logger(name: str) -> logging.Logger:
    """Return the logger ``graphc.<name>``, which writes to stderr at the level that GRAPHC_LOGS sets."""
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
    """Return the table of options as Markdown: the content of docs/options.md."""
    rows = [
        f"| `{o.variable}` | {o.values} | {f'`{o.default}`' if o.default else 'unset'} | {o.doc} |" for o in OPTIONS
    ]
    head = ["# Options", "", "Options are environment variables, read when a compile or a command starts."]
    command = "python -m tools.pages.options --write"
    note = f"This page is generated from `base/config.py` by `{command}`; a test compares the two."
    table = ["| variable | values | default | meaning |", "|---|---|---|---|", *rows]
    return "\n".join([*head, note, "", *table]) + "\n"
