"""Functional mock-up unit (FMI 3.0) of a library: an archive with a model description and a shared library."""

from __future__ import annotations

import io
import zipfile
from string import Template
from xml.sax.saxutils import quoteattr

from graphc.base.errors import CompileError
from graphc.base.records import dataclass
from graphc.c_library.bindings import comment_text
from graphc.c_library.identifiers import distinct
from graphc.c_library.plan import CONTEXT_BYTES, EntryPlan, LibraryArgument, LibraryPlan
from graphc.codegen.link.layout import align
from graphc.files.container import ALIGNMENT

FMI_TYPES = {
    "f64": "Float64",
    "f32": "Float32",
    "i64": "Int64",
    "i32": "Int32",
    "i16": "Int16",
    "i8": "Int8",
    "u64": "UInt64",
    "u32": "UInt32",
    "u16": "UInt16",
    "u8": "UInt8",
    "bool": "Boolean",
    "f16": "UInt16",
    "bf16": "UInt16",
}
"""FMI type of each element type; f16 and bf16 are passed as their bits."""
_TYPES = ("Float64", "Float32", "Int64", "Int32", "Int16", "Int8", "UInt64", "UInt32", "UInt16", "UInt8", "Boolean")
_TIME = 0
"""Value reference of the time."""
_OFFSET_OF_CONTEXT = ALIGNMENT
"""Offset of the context in an instance; the time comes before it."""
_OK = ("SetDebugLogging", "ExitInitializationMode", "EnterEventMode", "Terminate", "EnterStepMode")
"""Functions that have nothing to do."""
_REFUSED = (
    *("EnterConfigurationMode", "ExitConfigurationMode", "GetString", "SetString", "GetBinary", "SetBinary"),
    *("GetClock", "SetClock", "GetIntervalDecimal", "GetIntervalFraction", "GetShiftDecimal"),
    *("GetShiftFraction", "SetIntervalDecimal", "SetIntervalFraction", "SetShiftDecimal", "SetShiftFraction"),
    *("EvaluateDiscreteStates", "UpdateDiscreteStates", "GetNumberOfVariableDependencies"),
    *("GetVariableDependencies", "GetDirectionalDerivative", "GetAdjointDerivative", "EnterContinuousTimeMode"),
    *("CompletedIntegratorStep", "SetTime", "SetContinuousStates", "GetContinuousStateDerivatives"),
    *("GetEventIndicators", "GetContinuousStates", "GetNominalsOfContinuousStates"),
    *("GetNumberOfEventIndicators", "GetNumberOfContinuousStates", "GetOutputDerivatives"),
    *("ActivateModelPartition",),
)
"""Functions of parts of the standard that the description does not claim."""
_OTHER = (
    *("GetVersion", "InstantiateCoSimulation", "InstantiateModelExchange", "InstantiateScheduledExecution"),
    *("FreeInstance", "EnterInitializationMode", "Reset", "DoStep", "GetFMUState", "SetFMUState"),
    *("FreeFMUState", "SerializedFMUStateSize", "SerializeFMUState", "DeserializeFMUState"),
)
_ACCESSORS = tuple(f"{way}{type}" for way in ("Get", "Set") for type in _TYPES)
FMI_EXPORTS = tuple(sorted(f"fmi3{name}" for name in (*_OK, *_REFUSED, *_OTHER, *_ACCESSORS)))
"""All functions of FMI 3.0, which importers look up."""

_CODE = Template("""\
target triple = "$triple"
@fmi_version = private constant [4 x i8] c"3.0\\00"
@fmi_token = private constant [65 x i8] c"$token\\00"
@fmi_variables = private constant [$count x { i32, i32, i64, i64 }] [$variables]
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare ptr @memcpy(ptr, ptr, i64)
declare ptr @memset(ptr, i32, i64)
declare signext i32 @${name}_init(ptr, i64)
declare signext i32 @$run($types)

define ptr @fmi3GetVersion() {
  ret ptr @fmi_version
}

define ptr @fmi3InstantiateModelExchange() {
  ret ptr null
}

define ptr @fmi3InstantiateScheduledExecution() {
  ret ptr null
}

define internal signext i32 @fmi_start(ptr %i) {
  %filled = call ptr @memset(ptr %i, i32 0, i64 $bytes)
  %net = getelementptr i8, ptr %i, i64 $context
  %code = call signext i32 @${name}_init(ptr %net, i64 $context_bytes)
  %bad = icmp ne i32 %code, 0
  %status = select i1 %bad, i32 3, i32 0
  ret i32 %status
}

define ptr @fmi3InstantiateCoSimulation(ptr %title, ptr %token) {
entry:
  %none = icmp eq ptr %token, null
  br i1 %none, label %refuse, label %compare
compare:
  %n = phi i64 [ 0, %entry ], [ %next, %same ]
  %a.at = getelementptr i8, ptr %token, i64 %n
  %b.at = getelementptr i8, ptr @fmi_token, i64 %n
  %a = load i8, ptr %a.at
  %b = load i8, ptr %b.at
  %equal = icmp eq i8 %a, %b
  br i1 %equal, label %same, label %refuse
same:
  %next = add i64 %n, 1
  %end = icmp eq i8 %a, 0
  br i1 %end, label %create, label %compare
create:
  %i = call ptr @aligned_alloc(i64 $alignment, i64 $bytes)
  %missing = icmp eq ptr %i, null
  br i1 %missing, label %refuse, label %start
start:
  %status = call signext i32 @fmi_start(ptr %i)
  %bad = icmp ne i32 %status, 0
  br i1 %bad, label %release, label %done
done:
  ret ptr %i
release:
  call void @free(ptr %i)
  br label %refuse
refuse:
  ret ptr null
}

define void @fmi3FreeInstance(ptr %i) {
  call void @free(ptr %i)
  ret void
}

define signext i32 @fmi3Reset(ptr %i) {
  %status = call signext i32 @fmi_start(ptr %i)
  ret i32 %status
}

define signext i32 @fmi3EnterInitializationMode(ptr %i, i1 zeroext %defined, double %tolerance, double %time) {
  store double %time, ptr %i
  ret i32 0
}

define signext i32 @fmi3DoStep(
  ptr %i, double %time, double %step, i1 zeroext %kept, ptr %event, ptr %stop, ptr %early, ptr %last
) {
$addresses
  %code = call signext i32 @$run($arguments)
  store i8 0, ptr %event
  store i8 0, ptr %stop
  store i8 0, ptr %early
  %good = icmp eq i32 %code, 0
  br i1 %good, label %done, label %failed
done:
  %now = fadd double %time, %step
  store double %now, ptr %i
  store double %now, ptr %last
  ret i32 0
failed:
  store double %time, ptr %last
  ret i32 3
}

define internal signext i32 @fmi_values(
  ptr %i, ptr %references, i64 %n, ptr %values, i64 %count, i32 %type, i64 %itemsize, i1 %sets
) {
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %k.next, %copied ]
  %position = phi i64 [ 0, %entry ], [ %position.next, %copied ]
  %more = icmp ult i64 %k, %n
  br i1 %more, label %body, label %done
body:
  %reference.at = getelementptr i32, ptr %references, i64 %k
  %reference = load i32, ptr %reference.at
  %exists = icmp ult i32 %reference, $count
  br i1 %exists, label %look, label %refuse
look:
  %row.number = zext i32 %reference to i64
  %row = getelementptr { i32, i32, i64, i64 }, ptr @fmi_variables, i64 %row.number
  %actual = load i32, ptr %row
  %settable.at = getelementptr i8, ptr %row, i64 4
  %settable = load i32, ptr %settable.at
  %offset.at = getelementptr i8, ptr %row, i64 8
  %offset = load i64, ptr %offset.at
  %elements.at = getelementptr i8, ptr %row, i64 16
  %elements = load i64, ptr %elements.at
  %fits = icmp eq i32 %actual, %type
  %input = icmp ne i32 %settable, 0
  %reads = xor i1 %sets, true
  %allowed = or i1 %input, %reads
  %position.next = add i64 %position, %elements
  %room = icmp ule i64 %position.next, %count
  %both = and i1 %fits, %allowed
  %all = and i1 %both, %room
  br i1 %all, label %copy, label %refuse
copy:
  %begin = mul i64 %position, %itemsize
  %outside = getelementptr i8, ptr %values, i64 %begin
  %inside = getelementptr i8, ptr %i, i64 %offset
  %target = select i1 %sets, ptr %inside, ptr %outside
  %source = select i1 %sets, ptr %outside, ptr %inside
  %nbytes = mul i64 %elements, %itemsize
  %filled = call ptr @memcpy(ptr %target, ptr %source, i64 %nbytes)
  br label %copied
copied:
  %k.next = add i64 %k, 1
  br label %loop
done:
  %exact = icmp eq i64 %position, %count
  %status = select i1 %exact, i32 0, i32 3
  ret i32 %status
refuse:
  ret i32 3
}

define internal void @fmi_copy(ptr %to, ptr %from) {
  %time = load double, ptr %from
  store double %time, ptr %to
  %target = getelementptr i8, ptr %to, i64 $states
  %source = getelementptr i8, ptr %from, i64 $states
  %filled = call ptr @memcpy(ptr %target, ptr %source, i64 $state_bytes)
  ret void
}

define signext i32 @fmi3GetFMUState(ptr %i, ptr %state) {
entry:
  %old = load ptr, ptr %state
  %exists = icmp ne ptr %old, null
  br i1 %exists, label %copy, label %create
create:
  %new = call ptr @aligned_alloc(i64 $alignment, i64 $bytes)
  %missing = icmp eq ptr %new, null
  br i1 %missing, label %refuse, label %fill
fill:
  %filled = call ptr @memset(ptr %new, i32 0, i64 $bytes)
  store ptr %new, ptr %state
  br label %copy
copy:
  %to = phi ptr [ %old, %entry ], [ %new, %fill ]
  call void @fmi_copy(ptr %to, ptr %i)
  ret i32 0
refuse:
  ret i32 3
}

define signext i32 @fmi3SetFMUState(ptr %i, ptr %state) {
  call void @fmi_copy(ptr %i, ptr %state)
  ret i32 0
}

define signext i32 @fmi3FreeFMUState(ptr %i, ptr %state) {
  %memory = load ptr, ptr %state
  call void @free(ptr %memory)
  store ptr null, ptr %state
  ret i32 0
}

define signext i32 @fmi3SerializedFMUStateSize(ptr %i, ptr %state, ptr %size) {
  store i64 $saved_bytes, ptr %size
  ret i32 0
}

define signext i32 @fmi3SerializeFMUState(ptr %i, ptr %state, ptr %buffer, i64 %size) {
  %enough = icmp uge i64 %size, $saved_bytes
  br i1 %enough, label %copy, label %refuse
copy:
  %filled = call ptr @memcpy(ptr %buffer, ptr %state, i64 $saved_bytes)
  ret i32 0
refuse:
  ret i32 3
}

define signext i32 @fmi3DeserializeFMUState(ptr %i, ptr %buffer, i64 %size, ptr %state) {
  %exact = icmp eq i64 %size, $saved_bytes
  br i1 %exact, label %create, label %refuse
create:
  %status = call signext i32 @fmi3GetFMUState(ptr %i, ptr %state)
  %bad = icmp ne i32 %status, 0
  br i1 %bad, label %refuse, label %copy
copy:
  %to = load ptr, ptr %state
  %filled = call ptr @memcpy(ptr %to, ptr %buffer, i64 $saved_bytes)
  ret i32 0
refuse:
  ret i32 3
}
""")
_ACCESS = Template("""
define signext i32 @fmi3$way$type(ptr %i, ptr %references, i64 %n, ptr %values, i64 %count) {
  %status = call signext i32 @fmi_values(
    ptr %i, ptr %references, i64 %n, ptr %values, i64 %count, i32 $number, i64 $itemsize, i1 $sets
  )
  ret i32 %status
}
""")
_DESCRIPTION = Template("""\
<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName="$name" instantiationToken="$token"
    description=$description generationTool="graphc $version" variableNamingConvention="flat">
  <CoSimulation modelIdentifier="$name" canHandleVariableCommunicationStepSize="true" canGetAndSetFMUState="true"
      canSerializeFMUState="true"/>
  <ModelVariables>
    <Float64 name="time" valueReference="0" causality="independent" variability="continuous"/>
$variables  </ModelVariables>
  <ModelStructure>
$outputs$unknowns  </ModelStructure>
</fmiModelDescription>
""")


@dataclass(frozen=True)
class FmuVariable:
    """Input or output of the model as a variable of the unit."""

    name: str
    argument: LibraryArgument
    reference: int
    """Value reference."""
    is_input: bool
    offset: int
    """Offset of its elements in an instance, in bytes."""

    @property
    def type(self) -> str:
        """Return its FMI type."""
        return FMI_TYPES[self.argument.spec.dtype]

    @property
    def count(self) -> int:
        """Return the number of its elements."""
        return int(self.argument.count)


@dataclass(frozen=True)
class FmuPlan:
    """Memory of an instance: the time, the context, inputs and outputs, the arena."""

    library: LibraryPlan
    entry: EntryPlan
    variables: tuple[FmuVariable, ...]
    arena_offset: int

    @property
    def saved_bytes(self) -> int:
        """Return the size of all but the arena, which is the size of a saved state."""
        return self.arena_offset

    @property
    def bytes(self) -> int:
        """Return the size of an instance."""
        return align(self.arena_offset + int(self.entry.arena), ALIGNMENT)


def fmu_plan(plan: LibraryPlan) -> FmuPlan:
    """Plan the unit of a library. Raise CompileError for a library that cannot be one."""
    faults = {
        "it has several entries": (len(plan.entries) > 1, "pass entries=[...] with one name"),
        "its sizes change from call to call": (bool(plan.entries[0].dims), "leave out dims="),
        "its weights are in another file": (plan.is_beside, "pass weights='inside'"),
        "an array has no elements": (any(a.is_fixed and a.count == 0 for a in plan.entries[0].arguments), None),
    }
    for fault, (is_wrong, remedy) in faults.items():
        if is_wrong:
            raise CompileError(f"build_library: {plan.name} cannot be an FMU, since {fault}", remedy=remedy)
    entry, end, variables = plan.entries[0], align(_OFFSET_OF_CONTEXT + plan.context_bytes, ALIGNMENT), []
    names = distinct((argument.identifier for argument in entry.arguments), ("time",))
    for reference, (name, argument) in enumerate(zip(names, entry.arguments, strict=True), _TIME + 1):
        variables.append(FmuVariable(name, argument, reference, reference <= len(entry.inputs), end))
        end = align(end + int(argument.count) * argument.itemsize, ALIGNMENT)
    return FmuPlan(plan, entry, tuple(variables), end)


def emit_fmu(fmu: FmuPlan) -> str:
    """Emit the LLVM text of the FMI functions."""
    plan = fmu.library
    rows = [(0, 0, 0, 1), *((_TYPES.index(v.type), int(v.is_input), v.offset, v.count) for v in fmu.variables)]
    places = [("%net", _OFFSET_OF_CONTEXT), *((f"%a{v.reference}", v.offset) for v in fmu.variables)]
    places.append(("%arena", fmu.arena_offset))
    code = _CODE.substitute(
        triple=plan.triple,
        token=plan.digest.hex(),
        count=len(rows),
        variables=", ".join(
            f"{{ i32, i32, i64, i64 }} {{ i32 {t}, i32 {i}, i64 {o}, i64 {n} }}" for t, i, o, n in rows
        ),
        name=plan.name,
        run=plan.symbol(fmu.entry.name),
        types=", ".join([*["ptr"] * len(places), "i64"]),
        arguments=", ".join([*(f"ptr {register}" for register, _ in places), f"i64 {int(fmu.entry.arena)}"]),
        addresses="\n".join(f"  {register} = getelementptr i8, ptr %i, i64 {offset}" for register, offset in places),
        alignment=ALIGNMENT,
        bytes=max(fmu.bytes, fmu.arena_offset + ALIGNMENT),
        context=_OFFSET_OF_CONTEXT,
        context_bytes=plan.context_bytes,
        states=_OFFSET_OF_CONTEXT + CONTEXT_BYTES,
        state_bytes=fmu.saved_bytes - _OFFSET_OF_CONTEXT - CONTEXT_BYTES,
        saved_bytes=fmu.saved_bytes,
    )
    statuses = dict.fromkeys(_OK, 0) | dict.fromkeys(_REFUSED, 3)
    stubs = [f"define signext i32 @fmi3{name}() {{\n  ret i32 {status}\n}}\n" for name, status in statuses.items()]
    return "\n".join([code, *stubs, *_accessors()])


def _accessors() -> list[str]:
    """Return the functions that get and set values of each type."""
    sizes = {"Boolean": 1}
    return [
        _ACCESS.substitute(
            way=way,
            type=type,
            number=number,
            itemsize=sizes.get(type) or int("".join(c for c in type if c.isdigit())) // 8,
            sets="true" if way == "Set" else "false",
        )
        for way in ("Get", "Set")
        for number, type in enumerate(_TYPES)
    ]


def model_description(fmu: FmuPlan) -> str:
    """Return the text of ``modelDescription.xml``."""
    outputs = [v for v in fmu.variables if not v.is_input]
    return _DESCRIPTION.substitute(
        name=fmu.library.name,
        token=fmu.library.digest.hex(),
        version=fmu.library.version,
        description=quoteattr("A neural network; each step is a call"),
        variables="".join(map(_variable, fmu.variables)),
        outputs="".join(f'    <Output valueReference="{v.reference}"/>\n' for v in outputs),
        unknowns="".join(f'    <InitialUnknown valueReference="{v.reference}"/>\n' for v in outputs),
    )


def _variable(variable: FmuVariable) -> str:
    """Return the XML element of a variable."""
    spec = variable.argument.spec
    is_float = variable.type.startswith("Float")
    attributes = {
        "name": variable.name,
        "valueReference": str(variable.reference),
        "description": comment_text(str(spec)),
        "causality": "input" if variable.is_input else "output",
        "variability": "continuous" if is_float else "discrete",
    }
    if variable.is_input:
        zero = "false" if variable.type == "Boolean" else "0"
        attributes["start"] = " ".join([zero] * variable.count)
    text = " ".join(f"{name}={quoteattr(value)}" for name, value in attributes.items())
    sizes = "".join(f'<Dimension start="{int(size)}"/>' for size in spec.shape)
    end = f">{sizes}</{variable.type}>" if sizes else "/>"
    return f"    <{variable.type} {text}{end}\n"


def fmu_archive(fmu: FmuPlan, shared_library: bytes) -> bytes:
    """Return the archive, with equal bytes for equal arguments."""
    machine = fmu.library.triple.partition("-")[0]
    files = {
        "modelDescription.xml": model_description(fmu).encode(),
        f"binaries/{machine}-linux/{fmu.library.name}.so": shared_library,
    }
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return memory.getvalue()
