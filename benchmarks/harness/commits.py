"""Trees of commits in folders of their own: graphc as it was at a commit, with the measuring code as it is now."""

from __future__ import annotations

import io
import shutil
import subprocess
import zipfile
from pathlib import Path

from benchmarks.harness.process import ROOT

MEASURED = ("graphc", "graphc_launch.py")
"""Files taken from the commit."""
MEASURING = ("benchmarks", "tools")
"""Folders taken from this tree for every commit, so that the same code measures all."""


def resolve(commit: str, root: Path = ROOT) -> str:
    """Return the short name of a commit; raises ValueError where git knows none."""
    command = ["git", "-C", str(root), "rev-parse", "--verify", "--short", f"{commit}^{{commit}}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"{commit!r} is not a commit of {root}: {done.stderr.strip() or 'git failed'}")
    return done.stdout.strip()


def extract(commit: str, folder: Path, root: Path = ROOT) -> Path:
    """Make ``folder`` a tree from which ``python -m benchmarks`` and ``python -m tools.x`` measure that commit's
    graphc; return it."""
    command = ["git", "-C", str(root), "archive", "--format=zip", resolve(commit, root), *MEASURED]
    archive = subprocess.run(command, capture_output=True, check=True).stdout
    folder.mkdir(parents=True)
    with zipfile.ZipFile(io.BytesIO(archive)) as packed:
        packed.extractall(folder)
    _copy(MEASURING, folder, root)
    return folder


def copy_present(folder: Path, root: Path = ROOT) -> Path:
    """Make ``folder`` a tree as ``extract`` does, of the files as they are here; return it."""
    folder.mkdir(parents=True)
    _copy((*MEASURED, *MEASURING), folder, root)
    return folder


def _copy(names: tuple[str, ...], folder: Path, root: Path) -> None:
    for name in names:
        source = root / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy2(source, folder / name)
