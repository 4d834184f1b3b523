"""FMI 3.0 units of libraries: their description, and their functions as an importer calls them."""

from __future__ import annotations

import ctypes
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import graphc
from graphc.base.errors import CompileError
from graphc.c_library.build import Library, build_library
from graphc.c_library.fmu import FMI_EXPORTS
from tests.c_library.binding_cases import CASES, case_library, loader_results, write_inputs
from tests.c_library.conftest import run_tool, tool_or_skip

OK, ERROR = 0, 3
NUMBERS = {"f4": "Float32", "f8": "Float64", "b1": "Boolean", "f2": "UInt16"} | {
    f"{kind}{size}": f"{name}{8 * size}" for kind, name in (("i", "Int"), ("u", "UInt")) for size in (1, 2, 4, 8)
}


class Instance:
    """Instance of a unit, with arrays as values."""

    def __init__(self, library: Library, folder: Path):
        with zipfile.ZipFile(library.files["fmu"]) as archive:
            archive.extractall(folder / "unit")
        (path,) = (folder / "unit" / "binaries").glob("*/*.so")
        self.c = ctypes.CDLL(str(path))
        self.c.fmi3InstantiateCoSimulation.restype = ctypes.c_void_p
        description = ElementTree.parse(folder / "unit" / "modelDescription.xml").getroot()
        self.token = description.attrib["instantiationToken"].encode()
        self.i = ctypes.c_void_p(self.c.fmi3InstantiateCoSimulation(b"net", self.token))
        assert self.i.value

    def access(self, way: str, references: Sequence[int], values: np.ndarray) -> int:
        """Get or set variables of the type of an array."""
        numbers, data = (ctypes.c_uint32 * len(references))(*references), ctypes.c_void_p(values.ctypes.data)
        function = self.c[f"fmi3{way}{NUMBERS[values.dtype.str[1:]]}"]
        return function(self.i, numbers, ctypes.c_size_t(len(references)), data, ctypes.c_size_t(values.size))

    def step(self, time: float = 0.0) -> tuple[int, float]:
        """Do a step of 0.5, and return its status and the time that it reached."""
        flags, last = (ctypes.c_uint8 * 3)(9, 9, 9), ctypes.c_double(-1)
        addresses = [ctypes.byref(flags, n) for n in range(3)]
        times = ctypes.c_double(time), ctypes.c_double(0.5)
        status = self.c.fmi3DoStep(self.i, *times, ctypes.c_bool(True), *addresses, ctypes.byref(last))
        assert bytes(flags) == bytes(3)
        return status, last.value


@pytest.mark.parametrize("name", ["policy", "types", "wide"])
def test_a_step_gives_the_bits_of_the_loader(name: str, tmp_path: Path):
    library = case_library(name, ("fmu",), tmp_path)
    unit, arrays = Instance(library, tmp_path), write_inputs(name, tmp_path)
    for reference, array in enumerate(arrays, 1):
        assert unit.access("Set", [reference], array) == OK
    assert unit.step(1.0) == (OK, 1.5)
    expected = loader_results(name, library, arrays)
    kinds = [a.dtype for a in arrays] if name == "types" else [np.dtype("f4")]
    for number, (data, kind) in enumerate(zip(expected, kinds, strict=True)):
        values = np.zeros(len(data) // kind.itemsize, kind)
        assert unit.access("Get", [len(arrays) + 1 + number], values) == OK
        assert values.tobytes() == data
    time = np.zeros(1)
    assert unit.access("Get", [0], time) == OK and time[0] == 1.5
    unit.c.fmi3FreeInstance(unit.i)


def _decode(unit: Instance, token: int) -> bytes:
    assert unit.access("Set", [1], np.array([token])) == OK and unit.step() == (OK, 0.5)
    scores = np.zeros(40, "f4")
    assert unit.access("Get", [2], scores) == OK
    return scores.tobytes()


@pytest.fixture
def decoder(tmp_path: Path) -> Instance:
    """Instance of a model with states."""
    case = CASES["decoder"]
    return Instance(build_library(case.model(), *case.examples, path=tmp_path / "decoder.fmu"), tmp_path)


def test_states_are_kept_saved_and_reset(decoder: Instance):
    c, first, saved = decoder.c, _decode(decoder, 7), ctypes.c_void_p()
    assert c.fmi3GetFMUState(decoder.i, ctypes.byref(saved)) == OK
    second = _decode(decoder, 8)
    assert _decode(decoder, 8) != second and second != first
    assert c.fmi3SetFMUState(decoder.i, saved) == OK and _decode(decoder, 8) == second
    assert c.fmi3Reset(decoder.i) == OK and _decode(decoder, 7) == first
    size = ctypes.c_size_t()
    assert c.fmi3SerializedFMUStateSize(decoder.i, saved, ctypes.byref(size)) == OK
    buffer, other = (ctypes.c_uint8 * size.value)(), ctypes.c_void_p()
    assert c.fmi3SerializeFMUState(decoder.i, saved, buffer, size) == OK
    assert c.fmi3FreeFMUState(decoder.i, ctypes.byref(saved)) == OK and saved.value is None
    assert c.fmi3DeserializeFMUState(decoder.i, buffer, size, ctypes.byref(other)) == OK
    assert c.fmi3SetFMUState(decoder.i, other) == OK and _decode(decoder, 8) == second
    assert c.fmi3DeserializeFMUState(decoder.i, buffer, ctypes.c_size_t(8), ctypes.byref(other)) == ERROR


def test_wrong_calls_are_errors(decoder: Instance):
    token, scores = np.array([7]), np.zeros(40, "f4")
    assert decoder.access("Set", [3], token) == ERROR, "no such variable"
    assert decoder.access("Set", [2], scores) == ERROR, "an output"
    assert decoder.access("Get", [1], scores) == ERROR, "another type"
    assert decoder.access("Get", [2], scores[1:]) == ERROR, "too few values"
    assert decoder.access("Get", [2], np.zeros(41, "f4")) == ERROR, "too many values"
    assert decoder.access("Set", [1], np.array([40])) == OK
    assert decoder.step(1.0) == (ERROR, 1.0), "an index out of range"
    assert decoder.c.fmi3EnterConfigurationMode(decoder.i) == ERROR
    assert not decoder.c.fmi3InstantiateCoSimulation(b"net", decoder.token[:-1])
    assert not decoder.c.fmi3InstantiateCoSimulation(b"net", None)
    assert not decoder.c.fmi3InstantiateModelExchange(b"net", decoder.token)


def test_the_description_lists_variables_with_types_and_dimensions(tmp_path: Path):
    library = case_library("policy", ("fmu",), tmp_path)
    with zipfile.ZipFile(library.files["fmu"]) as archive:
        root = ElementTree.fromstring(archive.read("modelDescription.xml"))
        names = archive.namelist()
    assert names[1].startswith("binaries/") and names[1].endswith("-linux/policy.so")
    assert root.attrib["fmiVersion"] == "3.0" and root.attrib["instantiationToken"] == library.digest
    variables = {v.attrib["name"]: v for v in root.iter() if "valueReference" in v.attrib and "name" in v.attrib}
    assert [*variables] == ["time", "input", "output"] and variables["input"].tag == "Float32"
    assert [d.attrib["start"] for d in variables["input"]] == ["1", "17"]
    assert variables["output"].attrib["causality"] == "output"


def test_variables_of_the_model_are_not_called_time(tmp_path: Path):
    def later(time: Any) -> Any:
        return time + 1

    library = build_library(later, graphc.zeros(3), path=tmp_path / "later.fmu", emit=("fmu",))
    with zipfile.ZipFile(library.files["fmu"]) as archive:
        root = ElementTree.fromstring(archive.read("modelDescription.xml"))
    names = [v.attrib["name"] for v in root.iter() if "valueReference" in v.attrib and "name" in v.attrib]
    assert names == ["time", "time_2", "output"]


def test_all_functions_of_the_standard_are_exported(tmp_path: Path):
    Instance(case_library("policy", ("fmu",), tmp_path), tmp_path)
    (path,) = tmp_path.glob("unit/binaries/*/policy.so")
    names = [line.split()[-1] for line in run_tool(tool_or_skip("nm"), "-D", "--defined-only", path).splitlines()]
    assert [n for n in names if n.startswith("fmi")] == list(FMI_EXPORTS) and len(FMI_EXPORTS) == 75


@pytest.mark.parametrize(("target", "folder"), [("neon", "aarch64-linux"), ("rv64gc", "riscv64-linux")])
def test_units_for_other_processors_have_their_folder(target: str, folder: str, tmp_path: Path):
    case = CASES["policy"]
    library = build_library(case.model(), *case.examples, path=tmp_path / "policy.fmu", target=target)
    assert f"binaries/{folder}/policy.so" in zipfile.ZipFile(library.files["fmu"]).namelist()


def test_equal_models_give_equal_archives(tmp_path: Path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = (case_library("policy", ("fmu",), tmp_path / name).files["fmu"].read_bytes() for name in "ab")
    assert first == second


@pytest.mark.parametrize(
    ("name", "message"),
    [("sizes", "sizes change from call to call"), ("decoder", "in another file"), ("learner", "several entries")],
)
def test_models_that_no_unit_can_be_are_refused(name: str, message: str, tmp_path: Path):
    with pytest.raises(CompileError, match=message):
        case_library(name, ("fmu",), tmp_path)


def test_fmpy_reads_and_simulates_it(tmp_path: Path):
    fmpy: Any = pytest.importorskip("fmpy")
    pytest.importorskip("lxml")
    path = str(case_library("policy", ("fmu",), tmp_path).files["fmu"])
    assert fmpy.read_model_description(path, validate=True).fmiVersion == "3.0"
    assert len(fmpy.simulate_fmu(path, stop_time=1.0, output_interval=0.1)) == 11
