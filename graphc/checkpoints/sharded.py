"""Sharded checkpoints: several processes write one together, and any number of processes reads it.

A checkpoint is a folder with a manifest. Each tensor is written by one of the processes
with a copy of it. The manifest is written last, atomically, and makes the new checkpoint valid.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from graphc.base.dtypes import BY_NAME, layout_of
from graphc.base.errors import ArtifactError, DistributedError, GraphcError, StateDictError
from graphc.checkpoints.outlines import children, merged, place, pruned, tensors_of
from graphc.checkpoints.safetensors_file import array_of
from graphc.checkpoints.tree import outline, rebuilt
from graphc.distributed.group import Group, group
from graphc.files.archive import Archive
from graphc.files.container import replacing
from graphc.files.numpy_file import parse_npy, write_npz
from graphc.tape.grad_mode import no_grad
from graphc.tensors.tensor import Tensor

MANIFEST = "manifest.json"
FORMAT = "graphc sharded checkpoint"
VERSION = 1
_LONGEST_MANIFEST = 1 << 28
_DATA = re.compile(r"[0-9a-f]{16}-\d+\.npz")
_REST = re.compile(r"\.[0-9a-f]{16}-\d+\.npz\..*\.(tmp|linked)")


class _Entry(NamedTuple):
    """Description of a tensor in a manifest."""

    dtype: str
    shape: tuple[int, ...]
    digest: str
    """SHA-256 of the elements."""

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return BY_NAME[self.dtype].itemsize * int(np.prod(self.shape, dtype=np.int64))


class _Manifest(NamedTuple):
    """Manifest of a checkpoint."""

    files: dict[str, int]
    """Sizes in bytes by file name."""
    tensors: dict[str, tuple[str, _Entry]]
    """File and description of each tensor, by name."""
    outline: Any
    """Nesting of the tensors."""
    digest: str
    """SHA-256 of the manifest, which includes the digests of all tensors."""


def save(state_dict: Mapping[Any, Any], checkpoint_id: str | os.PathLike[str]) -> None:
    """Write a checkpoint to the folder ``checkpoint_id`` on a shared file system; all processes call this.

    ``state_dict`` nests dictionaries, lists, tuples, numbers, strings, bools and None around tensors, and objects with
    a ``state_dict`` (modules, optimizers, compiled steps). Values that several processes have must be equal, and are
    written once. Entries of dictionaries that only some processes have, such as the state of a ZeroRedundancyOptimizer,
    are all written. A killed process or an error in any process leaves the previous checkpoint unchanged. Raises
    DistributedError in all processes if values differ or one process fails; ArgumentError for values that cannot be
    stored; OSError.
    """
    processes, folder = group(), Path(checkpoint_id)
    content = _Content()
    tables = _together(processes, lambda: content.take(state_dict))
    tree = merged([(rank, table[1]) for rank, table in enumerate(tables)])
    tensors = _merged_entries([table[0] for table in tables])
    owners = _assign_writers(tensors, [table[0] for table in tables])
    token = tables[0][2]
    names = [f"{token}-{rank}.npz" for rank in range(processes.size)]
    mine = {name: content.arrays[name] for name, owner in owners.items() if owner == processes.rank}
    _together(processes, lambda: _prepare(folder) if processes.rank == 0 else None)
    sizes = _together(processes, lambda: _write(folder / names[processes.rank], mine))
    files = {names[rank]: size for rank, size in enumerate(sizes) if size}
    entries = {name: (names[rank], tensors[name]) for name, rank in owners.items()}
    _together(processes, lambda: _finish(folder, files, entries, tree) if processes.rank == 0 else None)


def load(state_dict: Any, checkpoint_id: str | os.PathLike[str]) -> Any:
    """Read a checkpoint that any number of processes has written with ``save``; all processes call this.

    Without ``state_dict`` (None) return the whole checkpoint, with modules and optimizers as dictionaries.
    Otherwise fill ``state_dict`` and return it: tensors are written in place, objects with a ``load_state_dict`` get
    their saved state (a ZeroRedundancyOptimizer reads its shard only), and other entries of dictionaries are replaced.
    Entries that ``state_dict`` lacks are not read. Every byte read is checked.

    Raises ArtifactError for a missing or damaged checkpoint, or one of another version; StateDictError if it lacks
    an entry or a shape differs, and then nothing has changed in any process; DistributedError if another process fails
    or sees another checkpoint.
    """
    processes = group()
    loading = _Loading(Path(checkpoint_id), state_dict)
    digests = _together(processes, loading.read)
    if any(digest != digests[0] for digest in digests):
        raise DistributedError(
            f"{os.fspath(checkpoint_id)}: the processes see different checkpoints there",
            remedy="use a folder that all of them share, or copies of one checkpoint",
        )
    return loading.fill()


def _together(processes: Group, work: Callable[[], Any]) -> list[Any]:
    """Run ``work`` in each process and return the results of all.

    If it fails in one process, that process raises its error, and all others a DistributedError with its message.
    """
    result, error = None, None
    try:
        result = work()
    except (GraphcError, OSError) as failure:
        error = failure
    results = processes.gather_objects((result, error and f"{type(error).__name__}: {error}"))
    if error is not None:
        raise error
    for rank, (_, text) in enumerate(results):
        if text is not None:
            raise DistributedError(f"rank {rank} has failed: {text}")
    return [result for result, _ in results]


# ---- writing


class _Content:
    """Content of this process for a checkpoint."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        """Tensors of this process by name."""

    def take(self, state_dict: Any) -> tuple[dict[str, _Entry], Any, str]:
        """Return descriptions of the tensors, their nesting, and a random name for the checkpoint's files."""
        tensors, nesting = outline(_plain(state_dict))
        self.arrays = {name: array_of(name, value) for name, value in tensors.items()}
        return {name: _entry(array) for name, array in self.arrays.items()}, nesting, secrets.token_hex(8)


def _plain(value: Any) -> Any:
    """Replace objects by their state dictionaries; for sharded objects, by the shard of this process."""
    for method in ("sharded_state_dict", "state_dict"):
        if hasattr(value, method):
            return _plain(getattr(value, method)())
    return {key: _plain(child) for key, child in value.items()} if isinstance(value, Mapping) else value


def _entry(array: np.ndarray) -> _Entry:
    elements = array.reshape(-1).view(np.uint8).data
    return _Entry(layout_of(array.dtype).name, array.shape, hashlib.sha256(elements).hexdigest())


def _merged_entries(tables: list[dict[str, _Entry]]) -> dict[str, _Entry]:
    """Merge the descriptions of tensors of all processes; raises DistributedError if two differ."""
    merged_table: dict[str, tuple[int, _Entry]] = {}
    for rank, table in enumerate(tables):
        for name, entry in table.items():
            first, reference = merged_table.setdefault(name, (rank, entry))
            if entry != reference:
                types = [f"{e.dtype}{list(e.shape)}" for e in (reference, entry)]
                raise DistributedError(
                    f"the tensor {name!r} is not the same on rank {first} and rank {rank}: "
                    + (" and ".join(types) if types[0] != types[1] else f"their elements differ ({types[0]})"),
                    remedy="for buffers, save the DistributedDataParallel itself, not its module; or call "
                    "graphc.distributed.broadcast(tensor); or use a separate entry for each rank: "
                    "{f'rank {graphc.distributed.rank()}': tensor}",
                )
    return {name: entry for name, (_, entry) in merged_table.items()}


def _assign_writers(tensors: Mapping[str, _Entry], tables: list[dict[str, _Entry]]) -> dict[str, int]:
    """Assign each tensor to a rank with a copy of it: greedily, largest first, to the least loaded one."""
    loads = [0] * len(tables)
    owners: dict[str, int] = {}
    for name in sorted(tensors, key=lambda n: -tensors[n].nbytes):
        rank = min((r for r, table in enumerate(tables) if name in table), key=loads.__getitem__)
        owners[name] = rank
        loads[rank] += tensors[name].nbytes
    return owners


def _prepare(folder: Path) -> None:
    """Create the folder, and remove files of an unfinished checkpoint."""
    folder.mkdir(parents=True, exist_ok=True)
    manifest = _read_manifest(folder) if (folder / MANIFEST).exists() else None
    _sweep(folder, manifest.files if manifest else {})


def _sweep(folder: Path, files: Mapping[str, int]) -> None:
    for name in os.listdir(folder):
        if name not in files and (_DATA.fullmatch(name) or _REST.fullmatch(name)):
            with suppress(OSError):
                (folder / name).unlink()


def _write(path: Path, arrays: Mapping[str, np.ndarray]) -> int:
    """Write the tensors of this process; return the size of the file, or 0 without tensors."""
    if not arrays:
        return 0
    write_npz(path, {name: _storable(array) for name, array in arrays.items()})
    return path.stat().st_size


def _storable(array: np.ndarray) -> np.ndarray:
    """Return the bits of elements that numpy has no type for (bf16)."""
    return array.view(np.dtype(f"<u{array.itemsize}")) if array.dtype.kind == "V" else array


def _finish(folder: Path, files: dict[str, int], tensors: dict[str, tuple[str, _Entry]], tree: Any) -> None:
    """Write the manifest, which makes the new checkpoint valid, and remove the files of the previous one."""
    for name, size in files.items():
        path = folder / name
        if not path.exists() or path.stat().st_size != size:
            raise ArtifactError(
                f"{path}: another process has written this file, but it is not visible here", remedy=_SHARED
            )
    content: dict[str, Any] = {"format": FORMAT, "version": VERSION, "files": files, "outline": tree}
    content["tensors"] = {name: {"file": file, **entry._asdict()} for name, (file, entry) in tensors.items()}
    content["sha256"] = _digest(content)
    with replacing(folder / MANIFEST) as file:
        file.write(json.dumps(content).encode())
    _sweep(folder, files)


_SHARED = "use a folder that all processes share"


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


# ---- reading


def _read_manifest(folder: Path) -> _Manifest:
    """Return the manifest of the checkpoint in a folder; raises ArtifactError."""
    path = folder / MANIFEST
    if not path.is_file():
        is_partial = folder.is_dir() and any(map(_DATA.fullmatch, os.listdir(folder)))
        raise ArtifactError(
            f"{folder}: there is no checkpoint" + (", only an unfinished one" if is_partial else ""),
            remedy="pass the folder that graphc.distributed.checkpoint.save was called with",
        )
    if path.stat().st_size > _LONGEST_MANIFEST:
        raise ArtifactError(f"{path}: a manifest has at most {_LONGEST_MANIFEST} bytes")
    try:
        content = json.loads(path.read_bytes())
        if content["format"] != FORMAT:
            raise ValueError(f"its format is {content['format']!r}")
        version = content["version"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ArtifactError(f"{path}: not the manifest of a checkpoint: {type(error).__name__}: {error}") from None
    if version != VERSION:
        raise ArtifactError(
            f"{path}: the checkpoint has version {version}, this graphc reads version {VERSION}",
            remedy="install a newer graphc",
        )
    return _parsed(content, path)


def _parsed(content: dict[str, Any], path: Path) -> _Manifest:
    digest = content.pop("sha256", None)
    if digest != _digest(content):
        raise ArtifactError(f"{path}: the manifest is damaged: its digest differs")
    try:
        files = {str(name): int(size) for name, size in content["files"].items()}
        tensors = {
            name: (item["file"], _Entry(item["dtype"], tuple(item["shape"]), item["digest"]))
            for name, item in content["tensors"].items()
        }
        if not all(map(_DATA.fullmatch, files)) or not all(file in files for file, _ in tensors.values()):
            raise ValueError("it names files that do not belong to a checkpoint")
        return _Manifest(files, tensors, content["outline"], digest)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ArtifactError(f"{path}: the manifest is damaged: {type(error).__name__}: {error}") from None


class _Loading:
    """State of a call of ``load``."""

    def __init__(self, folder: Path, target: Any):
        self._folder, self._target = folder, target
        self._tensors: dict[str, Tensor] = {}
        self._assignments: list[tuple[Callable[[Any], Any], Any]] = []
        """Functions that take a part of the checkpoint, with the outline of that part."""
        self._result = target

    def read(self) -> str:
        """Read everything needed without changing the target; return the digest of the checkpoint."""
        manifest = _read_manifest(self._folder)
        if self._target is None:
            self._assignments = [(self._keep, manifest.outline)]
        else:
            self._match(self._target, manifest.outline, (), self._keep)
            self._check_shapes(manifest)
        names = [name for _, nesting in self._assignments for name in tensors_of(nesting)]
        self._tensors = _read_tensors(self._folder, manifest, names)
        return manifest.digest

    def fill(self) -> Any:
        """Pass each part to its target; return the result."""
        with no_grad():
            for take, nesting in self._assignments:
                take(rebuilt(nesting, self._tensors))
        return self._result

    def _keep(self, value: Any) -> None:
        self._result = value

    def _match(self, target: Any, nesting: Any, path: tuple[Any, ...], replace: Callable[[Any], Any]) -> None:
        """Find the targets in ``target`` for the parts of ``nesting``; ``replace`` takes it if ``target`` itself
        cannot."""
        if hasattr(target, "load_state_dict"):
            is_needed = getattr(target, "needs_entry", None)
            self._assignments.append((target.load_state_dict, pruned(nesting, is_needed) if is_needed else nesting))
        elif isinstance(target, Tensor):
            self._assignments.append((target.copy_, nesting))
        elif isinstance(target, dict):
            entries = children(nesting)
            missing = [key for key in target if key not in entries]
            if missing:
                raise StateDictError(
                    f"{self._folder}: {place(path)} lacks {', '.join(map(repr, missing[:8]))}",
                    remedy=f"use its entries: {', '.join(map(repr, [*entries][:8]))}",
                )
            for key, child in [*target.items()]:
                self._match(child, entries[key], (*path, key), _Replacing(target, key))
        else:
            self._assignments.append((replace, nesting))

    def _check_shapes(self, manifest: _Manifest) -> None:
        for take, nesting in self._assignments:
            target = getattr(take, "__self__", None)
            if not isinstance(target, Tensor):
                continue
            name = nesting.get("tensor")
            shape = manifest.tensors[name][1].shape if name in manifest.tensors else None
            if shape != tuple(target.shape):
                saved = "no tensor" if shape is None else f"one of shape {list(shape)}"
                raise StateDictError(
                    f"{self._folder}: for a tensor of shape {list(target.shape)} the checkpoint has {saved}"
                    + (f" ({name})" if name else "")
                )


class _Replacing:
    """Assignment to an entry of a dictionary."""

    def __init__(self, target: dict[Any, Any], key: Any):
        self._target, self._key = target, key

    def __call__(self, value: Any) -> None:
        self._target[self._key] = value


def _read_tensors(folder: Path, manifest: _Manifest, names: list[str]) -> dict[str, Tensor]:
    by_file: dict[str, list[str]] = {}
    for name in names:
        if name not in manifest.tensors:
            raise ArtifactError(f"{folder / MANIFEST}: the manifest names no file for {name!r}")
        by_file.setdefault(manifest.tensors[name][0], []).append(name)
    tensors: dict[str, Tensor] = {}
    for file, members in by_file.items():
        path, size = folder / file, manifest.files[file]
        if not path.is_file():
            raise ArtifactError(f"{path}: a file of the checkpoint is missing")
        if path.stat().st_size != size:
            raise ArtifactError(f"{path}: it has {path.stat().st_size} bytes, and the checkpoint needs {size}")
        with Archive(path) as archive:
            tensors.update((name, _tensor(archive, name, manifest.tensors[name][1])) for name in members)
    return tensors


def _tensor(archive: Archive, name: str, entry: _Entry) -> Tensor:
    member = f"{name}.npy"
    if member not in archive.names:
        raise archive.error(f"it lacks {name!r}, which the manifest says it has")
    array = parse_npy(archive.read(member), f"{archive.path}: {name!r}")
    dtype = BY_NAME[entry.dtype].numpy
    array = array.view(dtype) if dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize else array
    if array.dtype != dtype or array.shape != entry.shape or _entry(array) != entry:
        raise archive.error(f"{name!r} differs from the manifest: the file is damaged, or another one")
    return Tensor._wrap(array)
