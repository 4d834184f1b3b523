"""Rust methods and types of a library's entries."""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

from graphc.base.sizes.size import is_size
from graphc.c_library.bindings import BindingArgument, BindingEntry, MethodNames, SizeDialect, size_lines
from graphc.c_library.plan import LibraryPlan
from graphc.files.container import ALIGNMENT

_ENTRY = Template("""
    /// Call $entry and return its outputs.
    ///
$documentation
    pub fn $run(&mut self$parameters) -> Result<$outputs, Error> {
$allocation    }

    /// Call $entry and write its outputs to slices.$allocates
    pub fn ${run}_into(&mut self$parameters$slices) -> Result<(), Error> {
$checks        let net = self.context.as_mut_ptr().cast();
        // SAFETY: all arrays have the lengths that the library expects, and slices do not overlap what calls write.
        check(unsafe {
            c::$symbol($arguments)
        })
    }
""")
_SIZES = Template("""
    /// Compute the sizes of a call of $entry from the shapes of its inputs.
    pub fn $sizes($parameters) -> Result<$record, Error> {
$lines        Ok($record {
$values        })
    }
""")
RUST_TYPES = {
    **{"double": "f64", "float": "f32", "int64_t": "i64", "int32_t": "i32", "int16_t": "i16", "int8_t": "i8"},
    **{"uint64_t": "u64", "uint32_t": "u32", "uint16_t": "u16", "uint8_t": "u8"},
}
"""Rust type of each C type of elements."""
_DIALECT = SizeDialect(
    axis="{}[{}] as i64".format,
    define="let {} = {};".format,
    fails=lambda condition, error: [
        f"if {condition} {{",
        "    return Err(Error::Size);"
        if error == "size"
        else f'    return Err(Error::Shape {{ argument: "{error}" }});',
        "}",
    ],
    real="({} as f64)".format,
)


def rust_methods(plan: LibraryPlan, crate: str, entry: BindingEntry, names: MethodNames, make: str) -> str:
    """Return the methods of an entry."""
    given = [f"{entry.dims[d]}: usize" for d in entry.parameters]
    views = [
        f"{a.name}: &[{_element(a)}]" if a.is_fixed else f"{a.name}: View<'_, {_element(a)}, {a.rank}>"
        for a in entry.inputs
    ]
    slices = [f"{a.name}: &mut [{_element(a)}]" for a in entry.outputs]
    example = "".join(f"    /// {line}\n" for line in _documentation(crate, entry, names, make)).rstrip()
    text = _ENTRY.substitute(
        entry=entry.plan.name,
        documentation=example,
        run=names.run,
        outputs=names.outputs,
        parameters="".join(f", {p}" for p in [*given, *views]),
        slices="".join(f", {p}" for p in slices),
        allocates="" if entry.dims else " This allocates nothing.",
        allocation=_indent(_allocation(entry, names)),
        checks=_indent(_checks(plan, entry, names)),
        symbol=plan.symbol(entry.plan.name),
        arguments=", ".join(_arguments(entry)),
    )
    return text + (_sizes(entry, names) if entry.dims else "")


def _indent(lines: Sequence[str]) -> str:
    return "".join(f"        {line}\n" for line in lines)


def _sizes_call(entry: BindingEntry, names: MethodNames) -> str:
    passed = [*(entry.dims[d] for d in entry.parameters), *(f"{a.name}.shape" for a in entry.sized_inputs)]
    return f"let sizes = Self::{names.sizes}({', '.join(passed)})?;"


def _allocation(entry: BindingEntry, names: MethodNames) -> list[str]:
    """Return the body of the method that allocates its outputs."""
    given = [*(entry.dims[d] for d in entry.parameters), *(a.name for a in entry.inputs)]
    outputs = [f"&mut outputs.{a.name}.data" for a in entry.outputs]
    shapes = [
        f"    {a.name}: Tensor::zeros({f'[{_fixed_shape(a)}]' if a.is_fixed else f'sizes.{a.name}'})?,"
        for a in entry.outputs
    ]
    return [
        *([_sizes_call(entry, names)] if entry.sized_outputs else []),
        f"let {'mut ' if outputs else ''}outputs = {names.outputs} {{",
        *shapes,
        "};",
        f"self.{names.run}_into({', '.join([*given, *outputs])})?;",
        "Ok(outputs)",
    ]


def _fixed_shape(argument: BindingArgument) -> str:
    return ", ".join(str(int(size)) for size in argument.shape)


def _checks(plan: LibraryPlan, entry: BindingEntry, names: MethodNames) -> list[str]:
    """Return lines that check the lengths of all arrays and grow the arena."""
    fixed = [a for a in entry.arguments if a.is_fixed]
    lines = [f'check_length("{a.name}", {a.name}.len(), {int(a.count)})?;' for a in fixed]
    if not entry.dims:
        return lines
    lines.append(_sizes_call(entry, names))
    for a in entry.sized_inputs:
        lines.append(f'check_length("{a.name}", {a.name}.data.len(), product(&{a.name}.shape))?;')
    for a in entry.sized_outputs:
        lines.append(f'check_length("{a.name}", {a.name}.len(), product(&sizes.{a.name}))?;')
    dims = ", ".join(f"sizes.{name} as i64" for name in entry.dims.values())
    return [
        *lines,
        "// SAFETY: the function reads nothing but its arguments.",
        f"let need = unsafe {{ c::{plan.symbol(entry.plan.name)}_arena_size({dims}) }};",
        "if need == usize::MAX {",
        "    return Err(Error::Size);",
        "}",
        "reserve(&mut self.arena, need)?;",
    ]


def _arguments(entry: BindingEntry) -> list[str]:
    """Return the arguments of the C function."""
    inputs = [f"{a.name}.as_ptr()" if a.is_fixed else f"{a.name}.data.as_ptr()" for a in entry.inputs]
    outputs = [f"{a.name}.as_mut_ptr()" for a in entry.outputs]
    dims = [f"sizes.{name} as i64" for name in entry.dims.values()]
    arena = ["self.arena.as_mut_ptr().cast()", f"{ALIGNMENT} * self.arena.len()"]
    return ["net", *dims, *inputs, *outputs, *arena]


def _documentation(crate: str, entry: BindingEntry, names: MethodNames, make: str) -> list[str]:
    """Return the documentation of a method, with an example that rustdoc compiles."""
    arrays, passed = [], [str(d.hint) for d in entry.parameters]
    for a in entry.inputs:
        shape = entry.hinted_shape(a)
        count = " * ".join(map(str, shape)) or "1"
        arrays.append(f"let {a.name} = vec![0_{_element(a)}; {count}];")
        passed.append(f"&{a.name}" if a.is_fixed else f"{crate}::View::new(&{a.name}, {shape})")
    first = [f'println!("{{:?}}", outputs.{a.name}.shape);' for a in entry.outputs[:1]]
    return [
        *("```text", *entry.documentation(), "```", ""),
        "```no_run",
        f"# fn main() -> Result<(), {crate}::Error> {{",
        f"let mut model = {crate}::Model::{make}?;",
        *arrays,
        f"let {'outputs' if first else '_'} = model.{names.run}({', '.join(passed)})?;",
        *first,
        *("# Ok(())", "# }", "```"),
    ]


def _sizes(entry: BindingEntry, names: MethodNames) -> str:
    """Return the function that computes the sizes of a call."""
    parameters = [f"{entry.dims[d]}: usize" for d in entry.parameters]
    parameters += [f"{a.name}: [usize; {a.rank}]" for a in entry.sized_inputs]
    casts = [f"let {entry.dims[d]} = {entry.dims[d]} as i64;" for d in entry.parameters]
    values = [f"    {name}: {name} as usize," for name in entry.dims.values()]
    for a in entry.sized_outputs:
        sizes = [f"({entry.expression(n)}) as usize" if is_size(n) else str(int(n)) for n in a.shape]
        values.append(f"    {a.name}: [{', '.join(sizes)}],")
    return _SIZES.substitute(
        entry=entry.plan.name,
        sizes=names.sizes,
        record=names.record,
        parameters=", ".join(parameters),
        lines=_indent([*casts, *size_lines(entry, _DIALECT)]),
        values=_indent(values),
    )


def rust_records(entry: BindingEntry, names: MethodNames) -> str:
    """Return the types of an entry: its outputs, and its sizes if it has named dimensions."""
    fields = [f"    /// {a.text}\n    pub {a.name}: Tensor<{_element(a)}, {a.rank}>,\n" for a in entry.outputs]
    fields = [field.replace("[", "\\[", 1) for field in fields]
    outputs = (
        f"\n/// Outputs of {entry.plan.name}.\n#[derive(Clone, Debug, PartialEq)]\npub struct {names.outputs} {{\n"
    )
    text = outputs + "".join(fields) + "}\n"
    if entry.dims:
        text += f"\n/// Sizes of a call of {entry.plan.name}.\n#[derive(Clone, Copy, Debug, PartialEq, Eq)]\n"
        text += f"pub struct {names.record} {{\n" + "".join(f"    pub {name}: usize,\n" for name in entry.dims.values())
        text += "".join(
            f"    /// Shape of the output.\n    pub {a.name}: [usize; {a.rank}],\n" for a in entry.sized_outputs
        )
        text += "}\n"
    return text


def _element(argument: BindingArgument) -> str:
    return RUST_TYPES[argument.plan.ctype]
