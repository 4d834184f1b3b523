"""Demo program in C that calls a library and measures it."""

from __future__ import annotations

from string import Template
from typing import Any

from graphc.base.dtypes import BY_NAME, bits_of, element
from graphc.base.sizes.size import Size, bounds, is_size
from graphc.base.sizes.size_terms import Atom, Dimension, Positive
from graphc.c_library.plan import EntryPlan, LibraryArgument, LibraryPlan
from graphc.files.container import ALIGNMENT

_HEAD = Template("""\
/* Runs ${name} on seeded numbers and prints what comes out.
 *
 *   ${compile} --seed=1
 *
 * --seed=N       seed of the numbers (default: 1)
 * --bench=N      times N calls of each function
 * --all          prints all elements, not the first eight${options} */
#define _POSIX_C_SOURCE 200809L

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "${header}"
${system_header}
static uint32_t seed;
static int all;

static void check(const char *what, int code) {
    if (code != ${upper}_OK) {
        fprintf(stderr, "%s: %s\\n", what, ${name}_error_text(code));
        exit(1);
    }
}

/* Memory for so many bytes, aligned to ${alignment}; it lives as long as the program. */
static void *memory(size_t size) {
    char *place = size > SIZE_MAX - ${alignment} ? NULL : (char *)malloc(size + ${alignment});
    if (place == NULL) {
        fprintf(stderr, "there are no %lu bytes of memory\\n", (unsigned long)size);
        exit(1);
    }
    return place + (${alignment} - (uintptr_t)place % ${alignment}) % ${alignment};
}

/* The text behind a name in the arguments of the program. */
static const char *text(int count, char **arguments, const char *name, const char *otherwise) {
    int i;
    for (i = 1; i < count; i++) {
        if (strncmp(arguments[i], name, strlen(name)) == 0) {
            return arguments[i] + strlen(name);
        }
    }
    return otherwise;
}

static int64_t number(int count, char **arguments, const char *name, int64_t otherwise) {
    const char *found = text(count, arguments, name, NULL);
    return found == NULL ? otherwise : (int64_t)strtoll(found, NULL, 10);
}

/* The next of 2^24 numbers. */
static uint32_t next(void) {
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

/* A time in microseconds. */
static double now(void) {
${clock}}

static int smaller(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void tell(const char *what, double *times, int64_t count) {
    qsort(times, (size_t)count, sizeof *times, smaller);
    printf("%s: min %.3f us, p50 %.3f us, p99.9 %.3f us, max %.3f us, %" PRId64 " calls\\n", what, times[0],
           times[count / 2], times[(int64_t)((double)(count - 1) * 0.999)], times[count - 1], count);
}
""")
_POSIX = {
    "compile": "cc -O2 $file.c $library -o $file && ./$file",
    "system_header": "",
    "clock": """\
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
""",
}
_MACOS = _POSIX | {"compile": "cc -O2 $file.c $library -Wl,-rpath,@executable_path -o $file && ./$file"}
_WINDOWS = {
    "compile": "cl /O2 $file.c $file.lib (or gcc -O2 $file.c $library -o $file.exe); $file.exe",
    "system_header": "\n#include <windows.h> /* after the header: it defines words such as small as macros */\n",
    "clock": """\
    LARGE_INTEGER ticks, rate;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&rate);
    return (double)ticks.QuadPart * 1e6 / (double)rate.QuadPart;
""",
}
"""Differing lines of the program on Linux, macOS and Windows."""
_FLOOR = """
static int64_t floor_of(int64_t a, int64_t b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
"""
_POSITIVE = """
static int64_t positive_part(int64_t a) {
    return a > 0 ? a : 0;
}
"""
_ENTRY = Template("""
static void run_${entry}(${name}_t *net, int count, char **arguments) {
${dims}    const size_t arena_size = ${name}_${entry}_arena_size(${given});
    void *arena;
    const int64_t calls = number(count, arguments, "--bench=", 0);
    int64_t i;
${arrays}    check("${entry}", arena_size == SIZE_MAX ? ${upper}_ERROR_SIZE : ${upper}_OK);
    arena = memory(arena_size);
${fills}    check("${entry}", ${call});
${prints}    if (calls > 0) {
        double *times = (double *)memory((size_t)calls * sizeof *times);
        for (i = -calls / 10; i < calls; i++) {
            const double start = now();
            check("${entry}", ${call});
            times[i < 0 ? 0 : i] = now() - start;
        }
        tell("${entry}", times, calls);
    }
}
""")
_MAIN = Template("""
int main(int count, char **arguments) {
    int i;
    ${name}_t *net = (${name}_t *)memory(${name}_context_size());
${open}    for (i = 1; i < count; i++) {
        all = all || strcmp(arguments[i], "--all") == 0;
    }
    seed = (uint32_t)number(count, arguments, "--seed=", 1);
${runs}    return 0;
}
""")
_OPEN = Template("""\
    const void *weights;
    size_t size;
    check("weights", ${name}_open_weights(text(count, arguments, "--weights=", "${weights}"), &weights, &size));
    check("init", ${name}_init(net, ${name}_context_size(), weights, size));
""")
_READ = Template("""\
    FILE *file = fopen(text(count, arguments, "--weights=", "${weights}"), "rb");
    void *weights = memory(${upper}_WEIGHTS_SIZE);
    if (file == NULL || fread(weights, 1, ${upper}_WEIGHTS_SIZE, file) != ${upper}_WEIGHTS_SIZE) {
        fprintf(stderr, "the file of weights cannot be read\\n");
        return 1;
    }
    fclose(file);
    check("init", ${name}_init(net, ${name}_context_size(), weights, ${upper}_WEIGHTS_SIZE));
""")
_INIT = Template("""\
    check("init", ${name}_init(net, ${name}_context_size()));
""")
_FORMATS = {
    "f64": ("%.17g", ""),
    "f32": ("%.9g", "(double)"),
    "i64": ('%" PRId64 "', ""),
    "u64": ('%" PRIu64 "', ""),
    "u32": ('%" PRIu32 "', ""),
    **dict.fromkeys(("i32", "i16", "i8", "u16", "u8", "bool"), ("%d", "(int)")),
    **dict.fromkeys(("f16", "bf16"), ("0x%04x", "(unsigned)")),
}


def c_demo(plan: LibraryPlan, file: str, header: str, library: str, weights: str) -> str:
    """Return the program's text, valid C99 and C++; ``file`` is its file name without suffix."""
    names = {"name": plan.name, "upper": plan.upper, "alignment": ALIGNMENT, "weights": weights}
    dims = {n: d.hint for entry in plan.entries for n, d in zip(entry.dim_identifiers, entry.dims, strict=True)}
    options = [f" * --{name + '=N':12} size (default: {hint})" for name, hint in dims.items()]
    options += [f" * --weights=FILE (default: {weights})"] if plan.is_beside else []
    functions = "".join(_entry(entry, names) for entry in plan.entries)
    system = _WINDOWS if plan.is_windows else _MACOS if plan.is_macos else _POSIX
    lines = {key: Template(text).substitute(file=file, library=library) for key, text in system.items()}
    head = _HEAD.substitute(names, header=header, options="".join(f"\n{line}" for line in options), **lines)
    runs = "".join(f"    run_{entry.name}(net, count, arguments);\n" for entry in plan.entries)
    start = (_OPEN if plan.opens_weights else _READ if plan.is_beside else _INIT).substitute(names)
    helpers = (_FLOOR if "floor_of(" in functions else "") + (_POSITIVE if "positive_part(" in functions else "")
    return head + helpers + functions + _MAIN.substitute(names, open=start, runs=runs)


def _entry(entry: EntryPlan, names: dict[str, Any]) -> str:
    dims = "".join(
        f'    const int64_t {name}_size = number(count, arguments, "--{name}=", {d.hint});\n'
        for name, d in zip(entry.dim_identifiers, entry.dims, strict=True)
    )
    variables = {d: f"{name}_size" for name, d in zip(entry.dim_identifiers, entry.dims, strict=True)}
    counts = [expression(a.count, variables) for a in entry.arguments]
    arrays, fills, prints = "", "", ""
    for argument, count in zip(entry.arguments, counts, strict=True):
        kind, name = argument.ctype, _array(argument)
        arrays += f"    {kind} *{name} = ({kind} *)memory((size_t)({count}) * sizeof *{name});\n"
    for argument, count in zip(entry.inputs, counts, strict=False):
        fills += _loop(count, f"{_array(argument)}[i] = {_random(argument)};")
    for argument, count in zip(entry.outputs, counts[len(entry.inputs) :], strict=True):
        format, cast = _FORMATS[argument.spec.dtype]
        prints += f'    printf("{argument.identifier}:");\n'
        prints += _loop(f"{count}) && (all || i < 8", f'printf(" {format}", {cast}{_array(argument)}[i]);')
        prints += '    printf("\\n");\n'
    sizes = ", ".join(variables.values())
    passed = ["net", *variables.values(), *map(_array, entry.arguments), "arena", "arena_size"]
    call = f"{names['name']}_{entry.name}({', '.join(passed)})"
    return _ENTRY.substitute(
        names, entry=entry.name, dims=dims, given=sizes, arrays=arrays, fills=fills, prints=prints, call=call
    )


def _array(argument: LibraryArgument) -> str:
    """Return the name of its variable, unique in the program."""
    return f"{argument.identifier}_data"


def _loop(count: str, body: str) -> str:
    return f"    for (i = 0; i < ({count}); i++) {{\n        {body}\n    }}\n"


def _random(argument: LibraryArgument) -> str:
    """Return a C expression for a random element: -1 to 1 for floats; 0 or 1 for integers, f16 and bf16."""
    dtype = BY_NAME[argument.spec.dtype]
    if dtype.kind == "f":
        return f"({argument.ctype})next() / 8388608 - 1"
    if dtype.kind == "h":
        return f"({argument.ctype})(next() >> 23 ? {int(bits_of(element(1, dtype))):#x} : 0)"
    return f"({argument.ctype})(next() >> 23)"


def expression(size: Any, names: dict[Dimension, str]) -> str:
    """Format a size as a C expression of named variables; ``floor_of`` divides numbers that may be negative."""
    if not is_size(size):
        return str(int(size))
    assert type(size) is Size
    products = []
    for monomial, coefficient in size.terms:
        atoms = [_atom(atom, names) for atom, power in monomial for _ in range(power)]
        products.append(" * ".join([*([str(coefficient)] if coefficient != 1 or not atoms else []), *atoms]))
    return " + ".join(products)


def _atom(atom: Atom, names: dict[Dimension, str]) -> str:
    if isinstance(atom, Dimension):
        return names[atom]
    if isinstance(atom, Positive):
        return f"positive_part({expression(atom.operand, names)})"
    operand, divisor = expression(atom.operand, names), expression(atom.divisor, names)
    if bounds(atom.operand)[0] >= 0:
        return f"(({operand}) / ({divisor}))"
    return f"floor_of({operand}, {divisor})"
