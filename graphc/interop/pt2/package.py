"""Zip archive of a ``.pt2`` file: its model, and the locations of its members."""

from __future__ import annotations

import os

import numpy as np

from graphc.base.errors import ArtifactError, UnsupportedError
from graphc.files.archive import Archive
from graphc.interop.pt2.fields import Field, parse

SUFFIX = ".pt2"
MOST_JSON = 1 << 26
"""Bytes of a description. Python's objects take about 25 times as many. A net of 10,000 operators has 2^24."""
_FORMAT = b"pt2"
_AGAIN = "export again: torch.export.save(torch.export.export(model, args), path)"


class Package(Archive):
    """Open file. Raises ArtifactError when it is damaged or holds no exported program."""

    def __init__(self, path: str | os.PathLike[str]):
        super().__init__(path)
        try:
            self._check_members()
            self.root = self._find_root()
            self.name = self._find_name()
        # NOTE: also on Ctrl-C, since nobody else could close the file. The exception is raised again.
        except BaseException:
            self.close()
            raise

    def _check_members(self) -> None:
        """Check that all members together are at most as large as the file.

        PyTorch compresses nothing, so this rejects members that share bytes or expand.
        """
        for name in self.names:
            if not _is_plain(name):
                raise self.error(f"member {name[:60]!r} points outside of the archive")
            if self.is_compressed(name):
                raise self.error(f"{name[:60]!r} is compressed, but PyTorch's files are not", remedy=_AGAIN)
        total = sum(map(self.size, self.names))
        if total > os.path.getsize(self.path):
            raise self.error(f"its members have {total} bytes, more than the file: they share some")

    def _find_root(self) -> str:
        roots = {name.partition("/")[0] for name in self.names}
        if len(roots) != 1:
            raise self.error(f"it has {len(roots)} top-level folders, a file of torch.export has one")
        root = next(iter(roots))
        kind = f"{root}/archive_format"
        if kind not in self.names or self.size(kind) != len(_FORMAT):
            raise self.error("it is not a file of torch.export", remedy=_AGAIN)
        if self.read(kind).tobytes() != _FORMAT:
            raise self.error("it is not a file of torch.export", remedy=_AGAIN)
        order = f"{root}/byteorder"
        if order in self.names and self.read(order).tobytes() != b"little":
            raise UnsupportedError(f"{self.path}: its numbers are not little-endian")
        return root

    def _find_name(self) -> str:
        prefix = f"{self.root}/models/"
        members = [n.removeprefix(prefix) for n in self.names if n.startswith(prefix)]
        names = [n.removesuffix(".json") for n in members if n.endswith(".json")]
        if not names:
            compiled = any("/aotinductor/" in n for n in self.names)
            what = "code that Inductor compiled, and no graph" if compiled else "no exported program"
            raise self.error(f"it holds {what}", remedy=_AGAIN)
        if len(names) > 1:
            shown = ", ".join(sorted(names)[:8])
            raise UnsupportedError(f"{self.path}: it holds several programs: {shown}", remedy=_AGAIN)
        return names[0]

    def model(self) -> Field:
        """Return the description of the program."""
        return self._json(f"models/{self.name}.json")

    def config(self, kind: str) -> Field:
        """Return the description of the ``weights`` or ``constants``."""
        if f"{self.root}/data/{kind}/{self.name}.pt" in self.names:
            raise UnsupportedError(
                f"{self.path}: its {kind} are a pickle, the format before PyTorch 2.9",
                remedy="convert it with PyTorch 2.9 or newer: torch.export.save(torch.export.load(path), path)",
            )
        return self._json(f"data/{kind}/{self.name}_{kind}_config.json")

    def payload(self, kind: str, name: str) -> np.ndarray | None:
        """Return the bytes of one of the ``weights`` or ``constants``, None for an unknown name."""
        member = f"{self.root}/data/{kind}/{name}"
        return self.read(member) if member in self.names else None

    def _json(self, relative: str) -> Field:
        member = f"{self.root}/{relative}"
        if member not in self.names:
            raise ArtifactError(f"it lacks {relative}")
        if self.size(member) > MOST_JSON:
            raise ArtifactError(f"{relative} has {self.size(member)} bytes, at most {MOST_JSON} are read")
        return parse(self.read(member).tobytes(), relative.rpartition("/")[2].removesuffix(".json"))


def _is_plain(name: str) -> bool:
    parts = name.split("/")
    return "\\" not in name and "\0" not in name and not {"", ".", ".."} & set(parts)
