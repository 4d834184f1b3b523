"""Files and list of names that later versions must accept: ``python -m tests.compatibility.make VERSION``.

What was made for a version is never made again: files of a new version go into a folder of their own beside the others,
and names are only added to the list (``python -m tests.compatibility.make --names``).
"""

from __future__ import annotations

import argparse
import enum
import importlib
import inspect
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import graphc as gc
from graphc import nn

FOLDER = Path(__file__).resolve().parent
FILES, NAMES = FOLDER / "files", FOLDER / "names.json"
PACKAGES = (
    *(
        "graphc",
        "graphc.autograd",
        "graphc.data",
        "graphc.distributed",
        "graphc.errors",
        "graphc.func",
        "graphc.monitor",
        "graphc.distributions",
    ),
    *("graphc.integrate", "graphc.optimize", "graphc.interpolate"),
    *("graphc.distributions.constraints", "graphc.special", "graphc.nn.utils.prune"),
    *("graphc.nn", "graphc.nn.functional", "graphc.nn.init", "graphc.nn.utils", "graphc.nn.utils.parametrizations"),
    *("graphc.nn.utils.parametrize", "graphc.nn.utils.rnn", "graphc.nn.utils.stateless", "graphc.optim"),
    *("graphc.nn.parallel", "graphc.optim.lr_scheduler", "graphc.optim.swa_utils", "graphc.serialize"),
)
"""Import paths whose names users know."""
SINGLE = ("graphc.hooks.RemovableHandle", "graphc.hooks.strict")
"""Names that users know of modules that hold others too."""

Signature = list[list[str]]
"""Of each parameter: name, kind, and "optional" where it has a default."""


def make_model() -> nn.Module:
    """Return small layers of all kinds with parameters or buffers."""
    gc.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(2, 3, 3, padding=1),
        nn.BatchNorm2d(3),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(3 * 2 * 2, 6),
        nn.LayerNorm(6),
        nn.Dropout(0.5),
        nn.GELU(),
        nn.Linear(6, 4, bias=False),
    )


def make_recurrent() -> nn.Module:
    """A recurrent layer, an embedding, attention."""
    gc.manual_seed(1)
    return nn.ModuleDict(
        {
            "embedding": nn.Embedding(5, 4),
            "lstm": nn.LSTM(4, 3, batch_first=True),
            "attention": nn.MultiheadAttention(4, 2, batch_first=True),
            "scale": nn.ParameterList([nn.Parameter(gc.ones(2))]),
        }
    )


def make_files(folder: Path) -> None:
    """Write every kind of file that graphc writes, with its expected results."""
    folder.mkdir(parents=True)
    model, optimizer = _trained()
    x = gc.rand(2, 2, 4, 4)
    gc.export(model, x, path=folder / "model.gcm")
    gc.export(model, x, path=folder / "model_int8.gcm", precision="int8")
    graph = gc.trace(model, x)
    (folder / "graph.gc").write_text(str(graph), encoding="utf-8")
    for name, value in {"module": model, "recurrent": make_recurrent(), "optimizer": optimizer}.items():
        (folder / f"{name}.pkl").write_bytes(pickle.dumps(value))
    (folder / "state.pkl").write_bytes(pickle.dumps(model.state_dict()))
    checkpoint = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}
    for suffix in (".npz", ".safetensors"):
        gc.save_state(model.state_dict(), folder / f"state{suffix}")
        gc.save_state(checkpoint, folder / f"checkpoint{suffix}")
    with gc.no_grad():
        np.savez(folder / "expected.npz", x=x.numpy(), y=model(x).numpy(), names=np.array(list(model.state_dict())))


def _trained() -> tuple[nn.Module, gc.optim.Optimizer]:
    model = make_model()
    optimizer = gc.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(2):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(gc.rand(4, 2, 4, 4)), gc.tensor([0, 1, 2, 3])).backward()
        optimizer.step()
    return model.eval(), optimizer


def signature_of(value: Any) -> Signature | None:
    """The parameters of a class or function; None for anything else, or where they are not known."""
    if not callable(value) or (isinstance(value, type) and issubclass(value, (enum.Enum, BaseException))):
        return None
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return None
    return [
        [p.name, p.kind.name.lower(), *(["optional"] if p.default is not p.empty else [])]
        for p in parameters
        if p.name != "self"
    ]


def public_names() -> Iterator[tuple[str, Signature | None]]:
    """``package.name`` and signature of what the packages hold: of ``__all__`` where there is one, else of what
    is defined there and has no underscore; and SINGLE."""
    for package in PACKAGES:
        module = importlib.import_module(package)
        names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
        for name in sorted(names):
            value = getattr(module, name)
            listed = hasattr(module, "__all__") or getattr(value, "__module__", "") == package
            if listed and not inspect.ismodule(value):
                yield f"{package}.{name}", signature_of(value)
    for path in SINGLE:
        package, _, name = path.rpartition(".")
        yield path, signature_of(getattr(importlib.import_module(package), name))


def methods() -> Iterator[tuple[str, Signature | None]]:
    """Methods and properties of the classes that users call most."""
    for cls in (gc.Tensor, nn.Module, gc.optim.Optimizer):
        for name in sorted(n for n in dir(cls) if not n.startswith("_")):
            value = inspect.getattr_static(cls, name)
            yield f"{cls.__name__}.{name}", signature_of(getattr(cls, name) if callable(value) else value)


def write_names() -> None:
    """Add missing names to the list; recorded entries stay as first written."""
    known: dict[str, Any] = json.loads(NAMES.read_text(encoding="utf-8")) if NAMES.exists() else {}
    found = dict([*public_names(), *methods()]) | known
    lines = (f"{json.dumps(name)}: {json.dumps(found[name])}" for name in sorted(found))
    NAMES.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("version", nargs="?", help="make files for this version, which has none yet")
    parser.add_argument("--names", action="store_true", help="add new names to the list")
    options = parser.parse_args()
    if options.names:
        write_names()
    if options.version:
        make_files(FILES / options.version)


if __name__ == "__main__":
    main()
