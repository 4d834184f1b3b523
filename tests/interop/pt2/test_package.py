"""Archives of torch.export: found by their names, and refused where they are compressed, shared or foreign."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from graphc.errors import ArtifactError, UnsupportedError
from graphc.interop.pt2 import package as module
from graphc.interop.pt2.package import Package
from tests.interop.pt2.kept import FILES, members, packed


def test_a_file_says_what_it_holds():
    with Package(FILES / "tied.pt2") as package:
        assert (package.root, package.name) == ("tied", "model")
        assert package.model().entries()["schema_version"].entries()["major"].integer() == 8
        assert set(package.config("weights").entries()["config"].entries()) >= {"tokens.weight", "head.weight"}
        assert package.payload("weights", "weight_9") is None
        found = package.payload("weights", "weight_0")
        assert found is not None and found.size == 11 * 6 * 4


@pytest.mark.parametrize("name", ["../x", "tied/../x", "/tied/x", "tied//x", "tied\\x", "tied/./x", "other/x"])
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str):
    with pytest.raises(ArtifactError):
        Package(packed(tmp_path / "a.pt2", {**members("tied"), name: b""}))


def test_compressed_members_are_refused(tmp_path: Path):
    path = packed(tmp_path / "a.pt2", members("tied"), zipfile.ZIP_DEFLATED)
    with pytest.raises(ArtifactError, match="is compressed"):
        Package(path)


def test_members_that_share_their_bytes_are_refused(tmp_path: Path):
    path = packed(tmp_path / "a.pt2", {"tied/a": b"x" * 4000, "tied/b": b"y" * 4000})
    with zipfile.ZipFile(path, "a") as archive:
        for number in range(9):
            entry = zipfile.ZipInfo(f"tied/c{number}")
            first = archive.getinfo("tied/a")
            for field in ("CRC", "compress_size", "file_size", "header_offset"):
                setattr(entry, field, getattr(first, field))
            archive.filelist.append(entry)
            archive.NameToInfo[entry.filename] = entry
        archive._didModify = True  # type: ignore[attr-defined]
    with pytest.raises(ArtifactError, match="share"):
        Package(path)


@pytest.mark.parametrize(
    ("name", "content"), [("archive_format", b"xyz"), ("archive_format", b"pt2 "), ("byteorder", b"big")]
)
def test_other_formats_are_refused(tmp_path: Path, name: str, content: bytes):
    with pytest.raises((ArtifactError, UnsupportedError)):
        Package(packed(tmp_path / "a.pt2", {**members("tied"), f"tied/{name}": content}))


def test_archives_without_a_program_are_refused(tmp_path: Path):
    contents = {n: c for n, c in members("tied").items() if "/models/" not in n}
    with pytest.raises(ArtifactError, match="no exported program"):
        Package(packed(tmp_path / "a.pt2", contents))
    with pytest.raises(ArtifactError, match="Inductor compiled"):
        Package(packed(tmp_path / "b.pt2", {**contents, "tied/data/aotinductor/model/x.so": b""}))


def test_archives_with_several_programs_are_refused_with_their_names(tmp_path: Path):
    with pytest.raises(UnsupportedError, match="model, other"):
        Package(packed(tmp_path / "a.pt2", {**members("tied"), "tied/models/other.json": b"{}"}))


def test_weights_of_older_files_are_refused(tmp_path: Path):
    with (
        Package(packed(tmp_path / "a.pt2", {**members("tied"), "tied/data/weights/model.pt": b""})) as package,
        pytest.raises(UnsupportedError, match="pickle"),
    ):
        package.config("weights")


def test_descriptions_that_lack_or_are_too_long_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    contents = {n: c for n, c in members("tied").items() if "constants_config" not in n}
    with Package(packed(tmp_path / "a.pt2", contents)) as package:
        with pytest.raises(ArtifactError, match="lacks data/constants"):
            package.config("constants")
        monkeypatch.setattr(module, "MOST_JSON", 1000)
        with pytest.raises(ArtifactError, match="at most 1000"):
            package.model()


def test_other_files_are_refused(tmp_path: Path):
    (tmp_path / "a.pt2").write_bytes(b"PK\x03\x04 and nothing more")
    with pytest.raises(ArtifactError, match="not a readable zip archive"):
        Package(tmp_path / "a.pt2")
    with pytest.raises(FileNotFoundError):
        Package(tmp_path / "b.pt2")
