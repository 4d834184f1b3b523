"""Go package of a library: built and vetted by a module that requires it, and called."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from graphc.c_library.build import Library
from graphc.c_library.go_package import go_module
from tests.c_library.binding_cases import all_cases, assert_same_bits, awkward_library, case_library
from tests.c_library.conftest import run_tool, tool_or_skip

_PRELUDE = """
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"

	net "libraries.local/NAME"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func expect(err, expected error) {
	if err != expected {
		panic(fmt.Sprintf("%v, expected %v", err, expected))
	}
}

func equal[T comparable](a, b []T) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

func read[T any](number, count int) []T {
	elements := make([]T, count)
	data, err := os.ReadFile(fmt.Sprintf("in%d", number))
	must(err)
	must(binary.Read(bytes.NewReader(data), binary.LittleEndian, elements))
	return elements
}

func write[T any](number int, elements []T) {
	var buffer bytes.Buffer
	must(binary.Write(&buffer, binary.LittleEndian, elements))
	must(os.WriteFile(fmt.Sprintf("out%d", number), buffer.Bytes(), 0o644))
}

func main() {
	runtime.GC()
BODY
}
"""
_BODIES = {
    "policy": """
	model, err := net.New()
	must(err)
	input := read[float32](0, 17)
	outputs, err := model.Run(input)
	must(err)
	write(0, outputs.Output.Data)
	_, err = model.Run(input[1:])
	expect(err, net.LengthError{"input", 17, 16})
	if err.Error() != "input has 16 elements, not 17" || len(outputs.Output.Shape) != 2 {
		panic(err)
	}
	done := make(chan []float32)
	for i := 0; i < 4; i++ {
		go func() {
			own, err := net.New()
			must(err)
			result := make([]float32, 6)
			for j := 0; j < 50; j++ {
				must(own.RunInto(input, result))
				runtime.GC()
			}
			done <- result
		}()
	}
	for i := 0; i < 4; i++ {
		if !equal(<-done, outputs.Output.Data) {
			panic("goroutines differ")
		}
	}
	var zero net.Model
	_, err = zero.Run(input)
	expect(err, net.ErrNull)""",
    "sizes": """
	model, err := net.New()
	must(err)
	x := net.Tensor[float32]{read[float32](0, 2*12*8), []int{2, 12, 8}}
	outputs, err := model.Run(x)
	must(err)
	write(0, outputs.Output0.Data)
	write(1, outputs.Output1.Data)
	sizes, err := model.RunSizes(x.Shape)
	must(err)
	if sizes.Batch != 2 || sizes.Time != 12 || !equal(sizes.Output1, []int{1, 2, 16}) {
		panic(sizes)
	}
	for shape, expected := range map[[3]int]error{
		{2, 11, 8}: net.LengthError{"x", 176, 192}, {2, 8, 12}: net.ShapeError{"x"}, {65, 1, 8}: net.ErrSize,
		{-1, 1, 8}: net.ErrSize,
	} {
		_, err = model.Run(net.Tensor[float32]{x.Data, shape[:]})
		expect(err, expected)
	}
	_, err = model.Run(net.Tensor[float32]{x.Data, []int{2, 96}})
	expect(err, net.ShapeError{"x"})
	expect(model.RunInto(x, make([]float32, 5), make([]float32, 32)), net.LengthError{"output_0", 6, 5})""",
    "decoder": """
	model, err := net.Open("decoder.weights")
	must(err)
	token := read[int64](0, 1)
	first, err := model.Run(token)
	must(err)
	write(0, first.Output.Data)
	state, err := model.SaveState()
	must(err)
	other := []int64{token[0] ^ 1}
	second, err := model.Run(other)
	must(err)
	must(model.LoadState(state))
	again, err := model.Run(other)
	must(err)
	if equal(first.Output.Data, second.Output.Data) || !equal(again.Output.Data, second.Output.Data) {
		panic("the state is not the saved one")
	}
	must(model.ResetState())
	again, err = model.Run(token)
	must(err)
	if !equal(again.Output.Data, first.Output.Data) {
		panic("the state is not the initial one")
	}
	_, err = model.Run([]int64{40})
	expect(err, net.ErrIndex)
	expect(model.LoadState(make([]byte, net.StateSize)), net.ErrState)
	expect(model.LoadState(nil), net.ErrMemory)
	contents, err := os.ReadFile("decoder.weights")
	must(err)
	copied, err := net.FromBytes(contents)
	must(err)
	contents = nil
	runtime.GC()
	again, err = copied.Run(token)
	must(err)
	if !equal(again.Output.Data, first.Output.Data) {
		panic("the copied weights are others")
	}
	_, err = net.FromBytes(make([]byte, 128))
	expect(err, net.ErrWeights)
	_, err = net.Open("missing.weights")
	expect(err, net.ErrFile)
	copied.Close()
	copied.Close()
	_, err = copied.Run(token)
	expect(err, net.ErrNull)""",
    "wide": """
	model, err := net.New()
	must(err)
	must(model.SetThreads(2))
	expect(model.SetThreads(0), net.ErrThreads)
	outputs, err := model.Run(read[float32](0, 256*512))
	must(err)
	write(0, outputs.Output.Data)""",
    "types": """
	model, err := net.New()
	must(err)
	o, err := model.Run(read[float64](0, 2), read[uint16](1, 2), read[int8](2, 2), read[int16](3, 2),
		read[uint16](4, 2), read[int32](5, 2), read[uint32](6, 2), read[int64](7, 2), read[uint8](8, 2))
	must(err)
	write(0, o.Output0.Data)
	write(1, o.Output1.Data)
	write(2, o.Output2.Data)
	write(3, o.Output3.Data)
	write(4, o.Output4.Data)
	write(5, o.Output5.Data)
	write(6, o.Output6.Data)
	write(7, o.Output7.Data)
	write(8, o.Output8.Data)""",
    "pooled": """
	model, err := net.New()
	must(err)
	outputs, err := model.Run(net.Tensor[float32]{read[float32](0, 54), []int{2, 3, 9}}, read[float32](1, 1))
	must(err)
	write(0, outputs.Output0.Data)
	write(1, outputs.Output1.Data)""",
    "repeats": """
	model, err := net.New()
	must(err)
	x := read[float32](0, 4)
	outputs, err := model.Run(5, x)
	must(err)
	write(0, outputs.Output.Data)
	_, err = model.Run(101, x)
	expect(err, net.ErrSize)
	expect(model.RunInto(6, x, make([]float32, 20)), net.LengthError{"output", 24, 20})""",
    "learner": """
	model, err := net.New()
	must(err)
	x, y := read[float32](0, 64), read[int64](1, 16)
	before, err := model.Infer(x)
	must(err)
	write(0, before.Output.Data)
	first, err := model.TrainStep(x, y)
	must(err)
	last := first
	for i := 0; i < 50; i++ {
		last, err = model.TrainStep(x, y)
		must(err)
	}
	after, err := model.Infer(x)
	must(err)
	if last.Output.Data[0] >= first.Output.Data[0] || equal(before.Output.Data, after.Output.Data) {
		panic("it learns nothing")
	}""",
}


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of compiled packages that all tests share."""
    return tmp_path_factory.mktemp("go")


def go(folder: Path, cache: Path, *arguments: str) -> str:
    """Run go without a network."""
    tool_or_skip("gcc", "clang")
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "GOPROXY": "off", "CGO_ENABLED": "1", "GOCACHE": str(cache)}
    environment |= {"GOPATH": str(cache / "path"), "GOMAXPROCS": "2", "GODEBUG": "cgocheck=1"}
    return run_tool(tool_or_skip("go"), *arguments, cwd=folder, env=environment)


def program(name: str, library: Library, cache: Path, text: str | None = None) -> Path:
    """Build a module that requires the library's module, and return its program."""
    folder, module = library.files["go"].parent / "user", go_module(name)
    folder.mkdir()
    (folder / "go.mod").write_text(
        f"module user\n\ngo 1.18\n\nrequire {module} v0.0.0\n\nreplace {module} => ../{name}-go\n"
    )
    source = _PRELUDE.replace("NAME", name).replace("BODY", _BODIES[name]) if text is None else text
    (folder / "main.go").write_text(source)
    go(folder, cache, "build", "-o", "user", ".")
    return folder / "user"


@all_cases
def test_calls_give_the_bits_of_the_loader(name: str, cache: Path, tmp_path: Path):
    tool_or_skip("go")
    library = case_library(name, ("go",), tmp_path)
    binary = program(name, library, cache)
    environment = {**os.environ, "GODEBUG": "cgocheck=2" if name == "policy" else "cgocheck=1"}
    assert_same_bits(name, library, tmp_path, lambda: run_tool(binary, cwd=tmp_path, env=environment))


@pytest.mark.parametrize("name", ["sizes", "decoder", "wide", "types"])
def test_its_text_is_formatted_and_vetted(name: str, cache: Path, tmp_path: Path):
    tool_or_skip("go")
    folder = case_library(name, ("go",), tmp_path).files["go"]
    assert run_tool(tool_or_skip("gofmt"), "-l", folder) == ""
    go(folder, cache, "vet", ".")


def test_a_library_of_another_build_is_refused(cache: Path, tmp_path: Path):
    tool_or_skip("go")
    library = case_library("policy", ("go",), tmp_path)
    source = library.files["go"] / "policy.go"
    source.write_text(source.read_text().replace(f'"{library.digest}"', f'"{"0" * 64}"'))
    text = """
    package main
    import net "libraries.local/policy"
    func main() { if _, err := net.New(); err != net.ErrBuild { panic(err) } }"""
    run_tool(program("policy", library, cache, text))


def test_names_of_the_language_are_no_obstacle(cache: Path, tmp_path: Path):
    tool_or_skip("go")
    go(awkward_library("type", ("go",), tmp_path).files["go"], cache, "vet", ".")


def test_the_folder_holds_all_that_go_needs(tmp_path: Path):
    folder = case_library("policy", ("go",), tmp_path).files["go"]
    assert sorted(path.name for path in folder.iterdir()) == ["go.mod", "libpolicy.a", "policy.go", "policy.h"]
    text = (folder / "policy.go").read_text()
    assert "// - input input: f32[1,17]\n// - output output: f32[1,6]" in text
    assert "//\toutputs, err := model.Run(input)\n" in text
