"""Installation of graphc: the pip command that adds an extra to it, for a clone, a folder, an archive or an index."""

from __future__ import annotations

import functools
import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from graphc.base.records import dataclass

DISTRIBUTION = "graphc-compiler"
"""Name on package indexes. The name ``graphc`` belongs to another project there."""


@dataclass(frozen=True)
class Installation:
    """Source that pip installed this package from."""

    folder: Path | None = None
    """Folder of the source: a clone, or an unpacked source distribution."""
    editable: bool = False
    """Whether ``pip install -e`` links to the folder."""
    url: str = ""
    """Archive or repository that was installed by its address; empty for a folder or an index."""

    def __str__(self) -> str:
        if self.folder is not None:
            return f"{'linked to' if self.editable else 'from'} {self.folder}"
        return f"from {self.url}" if self.url else "from a package index"

    def command(self, *extras: str, options: str = "") -> str:
        """Return the shell command that installs the package again, with extras such as ``torch``.

        Example:
            >>> from pathlib import Path
            >>> from graphc.base.installation import Installation
            >>> Installation().command("torch")
            "pip install 'graphc-compiler[torch]'"
            >>> Installation(Path("/src/graphc"), editable=True).command("images", "onnx")
            "cd /src/graphc && pip install -e '.[images,onnx]'"
        """
        target = "." if self.folder is not None else DISTRIBUTION
        target += f"[{','.join(extras)}]" if extras else ""
        target += f" @ {self.url}" if self.url else ""
        flags = " ".join(filter(None, [options, "-e" if self.editable else ""]))
        command = " ".join(filter(None, ["pip install", flags, shlex.quote(target)]))
        return command if self.folder is None else f"cd {shlex.quote(str(self.folder))} && {command}"


def install_command(*extras: str) -> str:
    """Return the shell command that adds extras to this installation."""
    return installation().command(*extras)


def reinstall_command() -> str:
    """Return the shell command that restores the files and the command of this installation."""
    return installation().command(options="--force-reinstall --no-deps")


def group_command(group: str) -> str:
    """Return the shell command that installs a dependency group of the project, for programs of a clone."""
    folder = installation().folder
    file = f"{folder}/pyproject.toml:{group}" if folder is not None else group
    return f"pip install --group {shlex.quote(file)}"


@functools.cache
def installation() -> Installation:
    """Return the source of the package that this process has imported."""
    return read_installation(Path(__file__).resolve().parents[2], sys.path)


def read_installation(root: Path, search: Sequence[str]) -> Installation:
    """Return the source of the package in the folder ``root``.

    Metadata next to the package describe it. Metadata elsewhere on the path ``search`` count only where they link to
    ``root``: another installation of graphc may follow a clone on ``sys.path``.
    """
    for url in _direct_urls([str(root)]):
        return _from_direct_url(url)
    for url in _direct_urls(search):
        linked = _from_direct_url(url)
        if linked.editable and linked.folder is not None and linked.folder.resolve() == root:
            return linked
    return Installation(root) if (root / "pyproject.toml").is_file() else Installation()


def _direct_urls(search: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield ``direct_url.json`` of each installed distribution; an empty record for one from an index (PEP 610)."""
    # NOTE: importlib.metadata loads in 10 ms or more, and only messages need it.
    for distribution in import_module("importlib.metadata").distributions(name=DISTRIBUTION, path=list(search)):
        yield json.loads(distribution.read_text("direct_url.json") or "{}")


def _from_direct_url(record: dict[str, Any]) -> Installation:
    url = record.get("url", "")
    if "dir_info" in record:
        editable = bool(record["dir_info"].get("editable"))
        return Installation(Path(unquote(urlsplit(url).path)), editable)
    vcs = record.get("vcs_info")
    return Installation(url=f"{vcs['vcs']}+{url}@{vcs['commit_id']}" if vcs else url)
