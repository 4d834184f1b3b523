"""Ops as machine code of Windows: samples of the registry in DLLs, called under Wine.

``python -m tools.codegen.windows_ops --target windows-avx2`` links the object code of each sample to a DLL, and calls
all of them from a C program that mingw compiles. The results are compared with the references of the ops. ``--count N
--seed S`` draws N samples at random; the default is all of them. Exits 1 where a result differs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from graphc.cli.commands.targets import WINE
from graphc.codegen.link.pe_shared import link_dll
from graphc.codegen.llvm.build import build_object
from graphc.codegen.machine.linkage import ENTRY
from graphc.codegen.machine.target import Target, named_targets, target_named
from graphc.compiler.linking import builtins_for
from graphc.files.object_archive import split_objects
from tools.codegen.cross_ops import LIMIT, RUNNER, Program, chosen, compare, input_of

COMPILER = "x86_64-w64-mingw32-gcc"


def wine() -> str:
    """Return the program that runs code for Windows here; empty where none is installed."""
    return next((path for path in map(shutil.which, WINE) if path), "")


def missing_tool() -> str:
    """Return the missing tool without which code for Windows cannot run here; empty where nothing is missing."""
    if shutil.which(COMPILER) is None:
        return f"no {COMPILER}"
    return "" if wine() else "no wine64"


def run_under_wine(
    program: Path, *arguments: str, folder: Path, emulator: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Run a program for Windows in a folder, with Wine's settings apart from those of the user. ``emulator`` runs Wine
    itself, which must not replace its process then."""
    prefix = Path(tempfile.gettempdir()) / f"graphc-wine-{os.getuid()}"
    environment = {**os.environ, "WINEPREFIX": str(prefix), "WINEDEBUG": "-all"}
    if emulator:
        environment["WINELOADERNOEXEC"] = "1"
    command = [*emulator, wine(), str(program), *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
    )


def link_case(case: Program, target: Target) -> bytes:
    """Return a DLL with the entry of a sample."""
    code = build_object(case.module, target)
    return link_dll(split_objects(code), [ENTRY], name="case.dll", supply=builtins_for(target, needs_libc=False))


def run(cases: Sequence[Program], target: Target, folder: Path) -> list[str]:
    """Run all cases in a folder; one line for each that differs from its reference. Raises CalledProcessError."""
    for number, case in enumerate(cases):
        (folder / f"case_{number}.dll").write_bytes(link_case(case, target))
    (folder / "in").write_bytes(input_of(cases))
    subprocess.run([COMPILER, "-O1", "-o", folder / "runner.exe", RUNNER], check=True)
    run_under_wine(folder / "runner.exe", folder=folder).check_returncode()
    return compare(cases, (folder / "out").read_bytes())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    names = [name for name, target in named_targets().items() if target.is_windows]
    parser.add_argument("--target", choices=names, required=True)
    parser.add_argument("--count", type=int, help="number of samples to draw (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if reason := missing_tool():
        print(f"{options.target} cannot run here: {reason}", file=sys.stderr)
        return 2
    target = target_named(options.target)
    cases = chosen(target, options.count, options.seed)
    with tempfile.TemporaryDirectory() as folder:
        lines = run(cases, target, Path(folder))
    print("\n".join([*lines, f"{options.target}: {len(cases)} samples, {len(lines)} differ"]))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
