"""Go package of a library: a folder with a module, the C header and a static archive, called through cgo."""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

from graphc.c_library.bindings import (
    BindingArgument,
    BindingEntry,
    MethodNames,
    SizeDialect,
    binding_entry,
    camel_case,
    helper_functions,
    largest_fixed_arena,
    signatures,
    size_lines,
)
from graphc.c_library.c_header import c_header
from graphc.c_library.identifiers import distinct
from graphc.c_library.plan import HEADER_BYTES, STATUSES, LibraryPlan
from graphc.files.container import ALIGNMENT

_PACKAGE = Template("""\
// Package $package is a neural network, written by graphc $version for $target.
//
$signatures
//
// A Model owns its states and the memory of its calls. Goroutines may call at the same time, each with a model of its
// own. Arrays are slices in C order. A bool is a byte that is 0 or 1; f16 and bf16 are their bits.
package $package

/*
#cgo LDFLAGS: $${SRCDIR}/lib$name.a
#include <stdlib.h>
#include "$name.h"
$wrappers*/
import "C"

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Version is the version of graphc that wrote this package.
const Version = "$version"

// Digest identifies code and weights.
const Digest = "$digest"

// StateSize is the number of bytes of a saved state.
const StateSize = $state_size

// Error is the reason why a call failed.
type Error int

const (
$errors	// ErrBuild says that the library is of another build than this file.
	ErrBuild Error = -1
)

// Error returns the reason in words.
func (e Error) Error() string {
	if e == ErrBuild {
		return "the library is of another build than this package"
	}
	return C.GoString(C.${name}_error_text(C.int(e)))
}

// LengthError says that an argument has another number of elements than its type or shape says.
type LengthError struct {
	Argument string
	Expected int
	Actual   int
}

// Error returns the reason in words.
func (e LengthError) Error() string {
	return fmt.Sprintf("%s has %d elements, not %d", e.Argument, e.Actual, e.Expected)
}

// ShapeError says that an argument does not have the shape that the model takes.
type ShapeError struct {
	Argument string
}

// Error returns the reason in words.
func (e ShapeError) Error() string {
	return e.Argument + " does not have the shape that the model takes"
}

// Tensor has elements in C order and their shape.
type Tensor[T any] struct {
	Data  []T
	Shape []int
}

// Zeros allocates a tensor.
func Zeros[T any](shape ...int) Tensor[T] {
	return Tensor[T]{make([]T, product(shape)), shape}
}

// product returns the number of elements of a shape; -1 for a shape that no slice has.
func product(shape []int) int {
	count := 1
	for _, size := range shape {
		if size < 0 || size > 0 && count > (1<<62)/size {
			return -1
		}
		count *= size
	}
	return count
}

func check(code C.int) error {
	if code == 0 {
		return nil
	}
	return Error(code)
}

func checkLength(argument string, actual, expected int) error {
	if actual == expected {
		return nil
	}
	return LengthError{argument, expected, actual}
}

var nothing [$alignment]byte

// address returns the address of the first element, and another one than nil for no elements.
func address[T any](elements []T) unsafe.Pointer {
	if len(elements) == 0 {
		return unsafe.Pointer(&nothing[0])
	}
	return unsafe.Pointer(&elements[0])
}

// aligned allocates memory whose address is a multiple of $alignment.
func aligned(size int) []byte {
	memory := make([]byte, size+$alignment)
	start := -int(uintptr(unsafe.Pointer(&memory[0]))) & ($alignment - 1)
	return memory[start : start+size]
}
$functions
// Model is the network with its states and the memory of its calls.
type Model struct {
	context []byte
	arena   []byte
$fields}

// net returns the address of the context, and nil for a model that is not open.
func (m *Model) net() unsafe.Pointer {
	if len(m.context) == 0 {
		return nil
	}
	return unsafe.Pointer(&m.context[0])
}
$constructors
// SaveState returns the states.
func (m *Model) SaveState() ([]byte, error) {
	buffer := make([]byte, StateSize)
	code := C.go__${name}_save_state(m.net(), address(buffer), StateSize)
	return buffer, check(code)
}

// LoadState sets the states to saved ones, also of another build of the same model.
func (m *Model) LoadState(state []byte) error {
	return check(C.go__${name}_load_state(m.net(), address(state), C.size_t(len(state))))
}

// ResetState sets the states to their initial values.
func (m *Model) ResetState() error {
	code := C.go__${name}_reset_state(m.net())
	runtime.KeepAlive(m)
	return check(code)
}
$threads$entries""")
_INSIDE = Template("""
// New creates a model with its initial states.
func New() (*Model, error) {
	if C.GoString(C.${name}_digest()) != Digest {
		return nil, ErrBuild
	}
	m := &Model{context: aligned($context), arena: aligned($arena)}
	if err := check(C.go__${name}_init(m.net(), $context)); err != nil {
		return nil, err
	}
	return m, nil
}
""")
_BESIDE = Template("""
// Open creates a model with its initial states, and maps its file of weights into memory.
func Open(path string) (*Model, error) {
	text := C.CString(path)
	defer C.free(unsafe.Pointer(text))
	m := &Model{mapped: true}
	if err := check(C.${name}_open_weights(text, &m.weights, &m.size)); err != nil {
		return nil, err
	}
	return m.start()
}

// FromBytes creates a model with its initial states from the contents of its file of weights, which are copied.
func FromBytes(contents []byte) (*Model, error) {
	size := C.size_t(len(contents))
	m := &Model{weights: C.aligned_alloc($alignment, (size/$alignment+1)*$alignment), size: size}
	if m.weights == nil {
		return nil, ErrMemory
	}
	copy(unsafe.Slice((*byte)(m.weights), len(contents)), contents)
	return m.start()
}

func (m *Model) start() (*Model, error) {
	runtime.SetFinalizer(m, (*Model).Close)
	if C.GoString(C.${name}_digest()) != Digest {
		return nil, ErrBuild
	}
	m.context, m.arena = aligned($context), aligned($arena)
	if err := check(C.go__${name}_init(m.net(), $context, m.weights, m.size)); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// Close releases the weights. Calls fail afterwards. The garbage collector closes a model that nothing refers to.
func (m *Model) Close() {
	if m.weights != nil && m.mapped {
		C.${name}_close_weights(m.weights, m.size)
	} else {
		C.free(m.weights)
	}
	m.weights, m.context = nil, nil
}
""")
_THREADS = Template("""
// SetThreads shares calls among so many threads; 1 at first.
func (m *Model) SetThreads(count int) error {
	return check(C.go__${name}_set_threads(m.net(), C.int64_t(count)))
}
""")
_ENTRY = Template("""
// $run calls $entry and returns its outputs.
//
$documentation
func (m *Model) $run($parameters) ($outputs, error) {
$allocation}

// ${run}Into calls $entry and writes its outputs to slices.
func (m *Model) ${run}Into($into) error {
$checks	code := C.go__$symbol($arguments)
	runtime.KeepAlive(m)
	return check(code)
}

// $outputs has the outputs of $entry.
type $outputs struct {
$fields}
""")
_SIZES = Template("""
// $record has the sizes of a call of $entry.
type $record struct {
$fields}

// $record computes the sizes of a call of $entry from the shapes of its inputs.
func (m *Model) $record($parameters) ($record, error) {
$lines}
""")
_FUNCTIONS = {
    "floor_of": """
func floor_of(a, b int64) int64 {
	if a%b != 0 && (a < 0) != (b < 0) {
		return a/b - 1
	}
	return a / b
}
""",
    "positive_part": """
func positive_part(a int64) int64 {
	if a > 0 {
		return a
	}
	return 0
}
""",
}
_TYPES = {
    **{"double": "float64", "float": "float32", "int64_t": "int64", "int32_t": "int32", "int16_t": "int16"},
    **{"int8_t": "int8", "uint64_t": "uint64", "uint32_t": "uint32", "uint16_t": "uint16", "uint8_t": "uint8"},
}
_WORDS = """\
    break case chan const continue default defer else fallthrough for func go goto if import interface map package range
    return select struct switch type var"""
_LOCALS = """\
    len int string error nil make byte bool true false m sizes need code err outputs address aligned product check
    checklength floor_of positive_part tensor model zeros runtime unsafe fmt c errsize errmemory shapeerror"""
_KEYWORDS = frozenset(_WORDS.split())
_RESERVED = _KEYWORDS.union(_LOCALS.split(), _TYPES.values())
"""Lower-case names that arguments cannot have: keywords, and names that methods use."""
_METHODS = ("net", "start", "Open", "New", "Close", "SaveState", "LoadState", "ResetState", "SetThreads", "FromBytes")
_DIALECT = SizeDialect(
    axis="int64({}[{}])".format,
    define="{} := {}".format,
    fails=lambda condition, error: [
        f"if {condition} {{",
        "\treturn sizes, ErrSize" if error == "size" else f'\treturn sizes, ShapeError{{"{error}"}}',
        "}",
    ],
    real="float64({})".format,
)


def go_package(plan: LibraryPlan) -> dict[str, str]:
    """Return the texts of the package by path; its archive ``libNAME.a`` lies beside them."""
    package = f"{plan.name}_" if plan.name in _KEYWORDS else plan.name
    names = {
        "name": plan.name,
        "package": package,
        "version": plan.version,
        "target": plan.target_name,
        "digest": plan.digest.hex(),
        "alignment": str(ALIGNMENT),
        "state_size": str(HEADER_BYTES + plan.state_bytes),
        "context": str(plan.context_bytes),
        "arena": str(max(largest_fixed_arena(plan), ALIGNMENT)),
    }
    methods_of = _method_names(plan)
    reserved = _RESERVED.union(name for m in methods_of for name in (m.sizes, m.outputs))
    entries = [(binding_entry(e, reserved), m) for e, m in zip(plan.entries, methods_of, strict=True)]
    make = f'Open("{plan.name}.weights")' if plan.is_beside else "New()"
    methods = "".join(_methods(plan, entry, m, f"{package}.{make}") for entry, m in entries)
    fields = [("weights", "unsafe.Pointer"), ("size", "C.size_t"), ("mapped", "bool")] if plan.is_beside else []
    text = _PACKAGE.substitute(
        names,
        signatures="\n".join(f"//\t{line}" for line in signatures(plan)),
        wrappers="".join(_wrappers(plan, [entry for entry, _ in entries])),
        errors="".join(
            f"\t// {_error(s.name)} says: {s.text}.\n\t{_error(s.name)} Error = {n}\n"
            for n, s in enumerate(STATUSES)
            if n
        ),
        functions=helper_functions(methods, _FUNCTIONS),
        fields="".join(f"\t{name:7} {kind}\n" for name, kind in fields),
        constructors=(_BESIDE if plan.is_beside else _INSIDE).substitute(names),
        threads=_THREADS.substitute(names) if plan.threads else "",
        entries=methods,
    )
    module = f"module {go_module(plan.name)}\n\ngo 1.18\n"
    return {"go.mod": module, f"{plan.name}.go": text, f"{plan.name}.h": c_header(plan)}


def go_module(name: str) -> str:
    """Return the path of the module, which no package of Go itself has."""
    return f"libraries.local/{name}"


def _method_names(plan: LibraryPlan) -> list[MethodNames]:
    names = [camel_case(entry.name) for entry in plan.entries]
    methods = distinct(names, (*_METHODS, *(f"{name}{end}" for name in names for end in ("Into", "Sizes"))))
    return [MethodNames(m, f"{m}Sizes", f"{m}Sizes", f"{m}Outputs") for m in map(camel_case, methods)]


def _error(status: str) -> str:
    return f"Err{camel_case(status.removeprefix('ERROR_').lower())}"


def _element(argument: BindingArgument) -> str:
    return _TYPES[argument.plan.ctype]


def _wrappers(plan: LibraryPlan, entries: Sequence[BindingEntry]) -> list[str]:
    """Return C functions that take untyped pointers, since cgo does not convert slices to pointers of C types."""
    n = plan.name
    net, state = f"({n}_t *)net", "void *net, void *buffer, size_t size"
    weights = (", const void *weights, size_t weights_size", ", weights, weights_size") if plan.is_beside else ("", "")
    wrappers = [
        (f"{n}_init", f"void *net, size_t size{weights[0]}", f"{net}, size{weights[1]}"),
        (f"{n}_save_state", state, f"{net}, buffer, size"),
        (f"{n}_load_state", state, f"{net}, buffer, size"),
        (f"{n}_reset_state", "void *net", net),
    ]
    if plan.threads:
        wrappers.append((f"{n}_set_threads", "void *net, int64_t count", f"{net}, count"))
    for entry in entries:
        dims = [f"d{number}" for number in range(len(entry.dims))]
        arrays = [f"a{number}" for number in range(len(entry.arguments))]
        casts = [
            f"({'' if a in entry.outputs else 'const '}{a.plan.ctype} *){name}"
            for a, name in zip(entry.arguments, arrays, strict=True)
        ]
        parameters = ["void *net", *(f"int64_t {d}" for d in dims), *(f"void *{a}" for a in arrays)]
        parameters += ["void *arena", "size_t arena_size"]
        call = ", ".join([net, *dims, *casts, "arena", "arena_size"])
        wrappers.append((plan.symbol(entry.plan.name), ", ".join(parameters), call))
    return [f"\nstatic int go__{f}({parameters}) {{\n\treturn {f}({call});\n}}\n" for f, parameters, call in wrappers]


def _methods(plan: LibraryPlan, entry: BindingEntry, names: MethodNames, make: str) -> str:
    """Return the methods and types of an entry."""
    given = [f"{entry.dims[d]} int" for d in entry.parameters]
    given += [f"{a.name} []{_element(a)}" if a.is_fixed else f"{a.name} Tensor[{_element(a)}]" for a in entry.inputs]
    text = _ENTRY.substitute(
        entry=entry.plan.name,
        run=names.run,
        outputs=names.outputs,
        documentation=_comment(_documentation(entry, names, make)),
        parameters=", ".join(given),
        into=", ".join([*given, *(f"{a.name} []{_element(a)}" for a in entry.outputs)]),
        allocation=_indent(_allocation(entry, names)),
        checks=_indent(_checks(plan, entry, names)),
        symbol=plan.symbol(entry.plan.name),
        arguments=", ".join(_arguments(entry)),
        fields=_struct([(field, f"Tensor[{_element(a)}]") for field, a in _output_fields(entry)]),
    )
    return text + (_sizes(entry, names) if entry.dims else "")


def _comment(lines: Sequence[str]) -> str:
    """Format lines as gofmt does: code begins with a tab."""
    return "\n".join((f"//{line}" if line.startswith("\t") else f"// {line}").rstrip() for line in lines)


def _output_fields(entry: BindingEntry) -> list[tuple[str, BindingArgument]]:
    """Return the outputs with the names of their fields."""
    return list(zip(distinct(camel_case(a.name) for a in entry.outputs), entry.outputs, strict=True))


def _size_fields(entry: BindingEntry) -> tuple[list[str], list[tuple[str, BindingArgument]]]:
    """Return the fields of the dimensions, and the outputs with the fields of their shapes."""
    names = [*entry.dims.values(), *(a.name for a in entry.sized_outputs)]
    fields = distinct(map(camel_case, names))
    return fields[: len(entry.dims)], list(zip(fields[len(entry.dims) :], entry.sized_outputs, strict=True))


def _struct(fields: Sequence[tuple[str, str]]) -> str:
    width = max((len(name) for name, _ in fields), default=0)
    return "".join(f"\t{name:{width}} {kind}\n" for name, kind in fields)


def _indent(lines: Sequence[str]) -> str:
    return "".join(f"\t{line}\n" for line in lines)


def _sizes_call(entry: BindingEntry, names: MethodNames, otherwise: str) -> list[str]:
    passed = [*(entry.dims[d] for d in entry.parameters), *(f"{a.name}.Shape" for a in entry.sized_inputs)]
    call = f"sizes, err := m.{names.sizes}({', '.join(passed)})"
    return [call, "if err != nil {", f"\treturn {otherwise}err", "}"]


def _allocation(entry: BindingEntry, names: MethodNames) -> list[str]:
    """Return the body of the method that allocates its outputs."""
    lines = [f"var outputs {names.outputs}"]
    if entry.sized_outputs:
        lines += _sizes_call(entry, names, "outputs, ")
    shapes = {a.name: f"sizes.{field}..." for field, a in _size_fields(entry)[1]}
    for field, a in _output_fields(entry):
        shape = shapes.get(a.name) or ", ".join(str(int(size)) for size in a.shape)
        lines.append(f"outputs.{field} = Zeros[{_element(a)}]({shape})")
    given = [*(entry.dims[d] for d in entry.parameters), *(a.name for a in entry.inputs)]
    given += [f"outputs.{field}.Data" for field, _ in _output_fields(entry)]
    return [*lines, f"return outputs, m.{names.run}Into({', '.join(given)})"]


def _length_check(argument: BindingArgument, actual: str, expected: str) -> list[str]:
    call = f'checkLength("{argument.name}", len({actual}), {expected})'
    return [f"if err := {call}; err != nil {{", "\treturn err", "}"]


def _checks(plan: LibraryPlan, entry: BindingEntry, names: MethodNames) -> list[str]:
    """Return lines that check the lengths of all arrays and grow the arena."""
    fixed = [a for a in entry.arguments if a.is_fixed]
    lines = [line for a in fixed for line in _length_check(a, a.name, str(int(a.count)))]
    if not entry.dims:
        return lines
    lines += _sizes_call(entry, names, "")
    dims, shapes = _size_fields(entry)
    for a in entry.sized_inputs:
        lines += _length_check(a, f"{a.name}.Data", f"product({a.name}.Shape)")
    for field, a in shapes:
        lines += _length_check(a, a.name, f"product(sizes.{field})")
    given = ", ".join(f"C.int64_t(sizes.{field})" for field in dims)
    return [
        *lines,
        f"need := uint64(C.{plan.symbol(entry.plan.name)}_arena_size({given}))",
        *("if need == 1<<64-1 {", "\treturn ErrSize", "}"),
        *("if need > 1<<47 {", "\treturn ErrMemory", "}"),
        *("if uint64(len(m.arena)) < need {", "\tm.arena = aligned(int(need))", "}"),
    ]


def _arguments(entry: BindingEntry) -> list[str]:
    """Return the arguments of the C function."""
    dims = [f"C.int64_t(sizes.{field})" for field in _size_fields(entry)[0]]
    arrays = [
        f"address({a.name})" if a.is_fixed or a in entry.outputs else f"address({a.name}.Data)" for a in entry.arguments
    ]
    return ["m.net()", *dims, *arrays, "address(m.arena)", "C.size_t(len(m.arena))"]


def _documentation(entry: BindingEntry, names: MethodNames, make: str) -> list[str]:
    """Return the comment of a method, with an example of its call."""
    arrays, passed = [], [str(d.hint) for d in entry.parameters]
    package = make.partition(".")[0]
    for a in entry.inputs:
        shape = ", ".join(map(str, entry.hinted_shape(a)))
        made = f"make([]{_element(a)}, {int(a.count)})" if a.is_fixed else f"{package}.Zeros[{_element(a)}]({shape})"
        arrays.append(f"\t{a.name} := {made}")
        passed.append(a.name)
    call = f"\toutputs, err := model.{names.run}({', '.join(passed)})"
    return [*entry.documentation(), "", "Example:", "", f"\tmodel, err := {make}", *arrays, call]


def _sizes(entry: BindingEntry, names: MethodNames) -> str:
    """Return the record of the sizes of a call, and the method that computes it."""
    dims, shapes = _size_fields(entry)
    parameters = [f"{entry.dims[d]} int" for d in entry.parameters]
    parameters += [f"{a.name} []int" for a in entry.sized_inputs]
    lines = [f"var sizes {names.record}"]
    for a in entry.sized_inputs:
        lines += [f"if len({a.name}) != {a.rank} {{", f'\treturn sizes, ShapeError{{"{a.name}"}}', "}"]
    solve = [f"{entry.dims[d]} := int64({entry.dims[d]})" for d in entry.parameters] + size_lines(entry, _DIALECT)
    solve += [f"sizes.{field} = int({name})" for field, name in zip(dims, entry.dims.values(), strict=True)]
    for field, a in shapes:
        sizes = ", ".join(f"int({entry.expression(size)})" for size in a.shape)
        solve.append(f"sizes.{field} = []int{{{sizes}}}")
    lines += ["{", *(f"\t{line}" for line in solve), "}", "return sizes, nil"]
    return _SIZES.substitute(
        entry=entry.plan.name,
        record=names.record,
        fields=_struct([*((field, "int") for field in dims), *((field, "[]int") for field, _ in shapes)]),
        parameters=", ".join(parameters),
        lines=_indent(lines),
    )
