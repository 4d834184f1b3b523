"""Warning about an installed distribution ``graphc``, which is another project or a former version of this one."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable

from graphc.base.lazy import deferred

_FOLDERS = ("site-packages", "dist-packages")
_SUFFIXES = (".dist-info", ".egg-info")
_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_reinstall_command = deferred("graphc.base.installation:reinstall_command")


def warn_of_other_distributions(search: Iterable[str] | None = None) -> None:
    """Warn where a distribution ``graphc`` is installed: it and this package both install the command ``graphc``.

    The import of graphc calls this, so it lists folders of packages and reads nothing unless there is one.
    """
    for path in other_distributions(sys.path if search is None else search):
        warnings.warn(_message(path), UserWarning, stacklevel=3)


def other_distributions(search: Iterable[str]) -> list[str]:
    """Return the metadata of distributions ``graphc`` in the folders of packages on a search path."""
    paths = []
    for folder in dict.fromkeys([_OWN_FOLDER, *search]):
        if folder.rpartition(os.sep)[2] not in _FOLDERS and folder != _OWN_FOLDER:
            continue
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        paths += [os.path.join(folder, n) for n in names if n.startswith("graphc-") and n.endswith(_SUFFIXES)]
    return paths


def _message(path: str) -> str:
    folder, name = os.path.split(path)
    version = os.path.splitext(name)[0].split("-")[1]
    if "Compiles PyTorch-style modules" in _metadata(path):
        what = f"graphc {version} in {folder} is this package under its former name; both own the same files"
    else:
        what = (
            f"the distribution graphc {version} in {folder} is another project, not this package: the command "
            "`graphc` starts whichever was installed last (`python -m graphc` starts this one)"
        )
    return f"{what}\n  {'try':<6} pip uninstall graphc, then restore what it removes: {_reinstall_command()}"


def _metadata(path: str) -> str:
    try:
        file = os.path.join(path, "METADATA") if os.path.isdir(path) else path
        with open(file, encoding="utf-8", errors="replace") as lines:
            return lines.read()
    except OSError:
        return ""
