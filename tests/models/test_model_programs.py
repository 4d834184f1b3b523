"""Programs of model files: native code needs trust and a machine that fits, damage reaches no loader."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pytest

from graphc.errors import ArtifactError
from graphc.files import model_content as artifact
from graphc.files.model_content import Artifact
from graphc.models import model_programs
from graphc.models.model_file import load
from tests.models.model_files import changed, stored_model


@pytest.fixture
def stored(tmp_path: Path) -> Artifact:
    return stored_model(tmp_path)


def test_flipped_bytes_never_reach_the_loader(tmp_path: Path, stored: Artifact, monkeypatch: pytest.MonkeyPatch):
    """Damaged object code is refused before it is linked, at whatever byte the damage is."""
    loads: list[bytes] = []
    monkeypatch.setattr(model_programs, "load_object", lambda code, entry, target: loads.append(code))
    path = tmp_path / "a.gcm"
    content = bytearray(path.read_bytes())
    rng = random.Random(0)
    for position in rng.sample(range(len(content)), 300):
        mask = 1 << rng.randrange(8)
        content[position] ^= mask
        path.write_bytes(content)
        with pytest.raises(ArtifactError):
            load(path, trust=True)
        content[position] ^= mask
    assert not loads


def test_native_code_runs_only_with_trust(tmp_path: Path, stored: Artifact, monkeypatch: pytest.MonkeyPatch):
    assert stored.first.natives
    assert load(tmp_path / "a.gcm").seconds
    monkeypatch.setattr(model_programs, "compile_stages", None)
    assert load(tmp_path / "a.gcm", trust=True).seconds is None


@pytest.mark.parametrize("what", ["version", "features", "triple", "absent"])
def test_native_code_that_does_not_fit_is_compiled_again(tmp_path: Path, stored: Artifact, what: str):
    native, *code = stored.first.natives[0]
    target = native.target
    other = {
        "version": dataclasses.replace(native, versions={"graphc": "0.0.1"}),
        "features": dataclasses.replace(native, target=dataclasses.replace(target, features=("tensor-cores",))),
        "triple": dataclasses.replace(native, target=dataclasses.replace(target, triple="sparc-sun-solaris")),
        "absent": None,
    }[what]
    codes = (artifact.Code(other, *code),) if other else ()
    artifact.save(tmp_path / "b.gcm", changed(stored, natives=codes))
    assert load(tmp_path / "b.gcm", trust=True).seconds
