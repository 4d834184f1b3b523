"""C++ header of a library: one file for C++17, without exceptions."""

from __future__ import annotations

from collections.abc import Sequence
from string import Template
from typing import Any

from graphc.c_library.bindings import (
    BindingArgument,
    BindingEntry,
    MethodNames,
    SizeDialect,
    binding_entry,
    helper_functions,
    largest_fixed_arena,
    method_names,
    signatures,
    size_lines,
)
from graphc.c_library.c_header import parameters
from graphc.c_library.plan import HEADER_BYTES, STATUSES, LibraryPlan
from graphc.files.container import ALIGNMENT

_HEAD = Template("""\
/* $name: a neural network as a C++ library, written by graphc $version for $target. For C++17 and later.
 *
$signatures
 *
 *     #include "$file"
 *
 *     graphc::$space::Model model$made;
 *     if (model.status() != graphc::$space::Error::ok) {
 *         std::puts(graphc::$space::message(model.status()));
 *     }
 *
 * Link with $name's shared library or archive. A model owns its states and its arena. Nothing throws. Threads may call
 * at the same time, each with a model of its own.
 *
 * Digest: $digest */
#ifndef ${upper}_HPP
#define ${upper}_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

extern "C" {
struct ${name}_t;
$declarations}

namespace graphc {
namespace $space {

/* Result of a call. */
enum class Error : int {
$errors    shape = -1, /* an argument does not have the shape or number of elements that the model takes */
    build = -2  /* the library and this header are of different builds */
};

/* Return the text of a result; never NULL. */
inline const char *message(Error error) noexcept {
    switch (error) {
    case Error::shape:
        return "an argument does not have the shape or number of elements that the model takes";
    case Error::build:
        return "the library and this header are of different builds";
    default:
        return ::${name}_error_text(static_cast<int>(error));
    }
}
""")
_VIEWS = Template("""
namespace detail {

/* Number of elements of std::array and of std::span with a fixed extent; any other type has none. */
template <class C, class = void> struct Extent {
    static constexpr std::size_t value = SIZE_MAX;
};
template <class C> struct Extent<C, std::void_t<decltype(std::tuple_size<C>::value)>> {
    static constexpr std::size_t value = std::tuple_size<C>::value;
};
template <class C> struct Extent<C, std::void_t<decltype(C::extent)>> {
    static constexpr std::size_t value = C::extent;
};

template <class C> using Plain = std::remove_cv_t<std::remove_reference_t<C>>;

/* Address of arrays without elements, since the library takes no NULL. */
alignas($alignment) inline unsigned char nothing[$alignment];

template <class T> T *address(T *data, std::size_t count) noexcept {
    return data == nullptr && count == 0 ? reinterpret_cast<T *>(nothing) : data;
}

template <std::size_t Rank>
bool has_count(const std::array<std::int64_t, Rank> &sizes, std::size_t count) noexcept {
    std::size_t total = 1;
    for (const std::int64_t size : sizes) {
        if (size < 0 || (size > 0 && total > SIZE_MAX / static_cast<std::size_t>(size))) {
            return false;
        }
        total *= static_cast<std::size_t>(size);
    }
    return total == count;
}

/* Aligned memory, without initialization. */
class Memory {
public:
    Memory() noexcept = default;
    explicit Memory(std::size_t size) noexcept { reserve(size); }
    Memory(Memory &&other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    Memory &operator=(Memory &&other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~Memory() { ::operator delete(data_, std::align_val_t{$alignment}); }

    bool reserve(std::size_t size) noexcept {
        if (data_ == nullptr || size_ < size) {
            ::operator delete(data_, std::align_val_t{$alignment});
            data_ = ::operator new(size, std::align_val_t{$alignment}, std::nothrow);
            size_ = data_ == nullptr ? 0 : size;
        }
        return data_ != nullptr;
    }
    void *data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }

private:
    void *data_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace detail
$functions
/* N elements in C order. C arrays, std::array and std::span with a fixed extent convert to it if they have N elements.
 * An array whose count only the program knows is Fixed<T, N>(data, count); calls return Error::shape unless it is N. */
template <class T, std::size_t N> class Fixed {
public:
    template <std::size_t M, class = std::enable_if_t<M == N>> Fixed(T (&data)[M]) noexcept : data_(data) {}
    template <class C, class = std::enable_if_t<detail::Extent<detail::Plain<C>>::value == N
                                                && std::is_convertible_v<decltype(std::declval<C &>().data()), T *>>>
    Fixed(C &&array) noexcept : data_(detail::address(static_cast<T *>(array.data()), N)) {}
    Fixed(T *data, std::size_t count) noexcept
        : data_(detail::address(data, N)), has_count_(count == N) {}

    T *data() const noexcept { return data_; }
    bool is_valid() const noexcept { return has_count_; }

private:
    T *data_;
    bool has_count_ = true;
};

/* Elements in C order; their number is checked by each call. Containers with data() and size() convert to it. */
template <class T> class Span {
public:
    template <std::size_t M> Span(T (&data)[M]) noexcept : data_(data), size_(M) {}
    template <class C, class = std::enable_if_t<std::is_convertible_v<decltype(std::declval<C &>().data()), T *>>>
    Span(C &&array) noexcept : Span(array.data(), array.size()) {}
    Span(T *data, std::size_t size) noexcept : data_(detail::address(data, size)), size_(size) {}

    T *data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }

private:
    T *data_;
    std::size_t size_;
};

/* Elements in C order with their shape: {elements, {2, 12, 8}}. */
template <class T, std::size_t Rank> class View {
public:
    View(Span<T> elements, const std::array<std::int64_t, Rank> &shape) noexcept : elements_(elements), shape_(shape) {}

    T *data() const noexcept { return elements_.data(); }
    const std::array<std::int64_t, Rank> &shape() const noexcept { return shape_; }
    bool is_valid() const noexcept { return detail::has_count(shape_, elements_.size()); }

private:
    Span<T> elements_;
    std::array<std::int64_t, Rank> shape_;
};

/* Shape of an output. */
template <std::size_t Rank> struct Shape {
    std::array<std::int64_t, Rank> sizes{};

    std::size_t count() const noexcept {
        std::size_t total = 1;
        for (const std::int64_t size : sizes) {
            total *= static_cast<std::size_t>(size);
        }
        return total;
    }
};
""")
_MODEL = Template("""
/* The network with its states and an arena. Only calls with larger sizes than all calls before allocate memory. */
class Model {
public:
    /* Bytes of a saved state. */
    static constexpr std::size_t state_size = $state_size;

$constructors
    Model(Model &&other) noexcept
        : context_(std::move(other.context_)), arena_(std::move(other.arena_))$moved,
          status_(std::exchange(other.status_, Error::context)) {}
    Model &operator=(Model &&other) noexcept {
        context_ = std::move(other.context_);
        arena_ = std::move(other.arena_);
$assigned        std::swap(status_, other.status_);
        return *this;
    }
    ~Model() = default;

    /* Return Error::ok, or why the model cannot be called. */
    Error status() const noexcept { return status_; }

$entries    /* Copy the states to state_size bytes of a buffer. */
    Error save_state(void *buffer, std::size_t size) const noexcept {
        return status_ != Error::ok ? status_ : static_cast<Error>(::${name}_save_state(net(), buffer, size));
    }

    /* Set the states to saved ones, also of another build of the same model. */
    Error load_state(const void *buffer, std::size_t size) noexcept {
        return status_ != Error::ok ? status_ : static_cast<Error>(::${name}_load_state(net(), buffer, size));
    }

    /* Set the states to their initial values. */
    Error reset_state() noexcept {
        return status_ != Error::ok ? status_ : static_cast<Error>(::${name}_reset_state(net()));
    }
$threads
private:
    ${name}_t *net() const noexcept { return static_cast<${name}_t *>(context_.data()); }

    Error start($start_parameters) noexcept {
        if (std::strcmp(::${name}_digest(), "$digest") != 0) {
            return Error::build;
        }
        if (context_.data() == nullptr || !arena_.reserve($arena)) {
            return Error::memory;
        }
        return static_cast<Error>(::${name}_init($init));
    }

    detail::Memory context_{$context};
    detail::Memory arena_;
$members    Error status_;
};

} // namespace $space
} // namespace graphc

#endif
""")
_INSIDE = "    Model() noexcept : status_(start()) {}\n"
_BESIDE = """\
    /* Map a file of weights into memory. */
    explicit Model(const char *path) noexcept : mapping_(path), status_(mapping_.status()) {
        status_ = status_ == Error::ok ? start(mapping_.data(), mapping_.size()) : status_;
    }

    /* Use a file of weights in memory, aligned to 64 bytes, which must outlive the model. */
    Model(const void *weights, std::size_t size) noexcept : status_(start(weights, size)) {}
"""
_MAPPING = Template("""
namespace detail {

/* File of weights in memory. */
class Mapping {
public:
    Mapping() noexcept = default;
    explicit Mapping(const char *path) noexcept
        : status_(static_cast<Error>(::${name}_open_weights(path, &data_, &size_))) {}
    Mapping(Mapping &&other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
    Mapping &operator=(Mapping &&other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~Mapping() {
        if (data_ != nullptr) {
            ::${name}_close_weights(data_, size_);
        }
    }

    const void *data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    Error status() const noexcept { return status_; }

private:
    const void *data_ = nullptr;
    std::size_t size_ = 0;
    Error status_ = Error::ok;
};

} // namespace detail
""")
_THREADS = Template("""
    /* Share calls among so many threads; 1 at first. */
    Error set_threads(std::int64_t count) noexcept {
        return status_ != Error::ok ? status_ : static_cast<Error>(::${name}_set_threads(net(), count));
    }

    /* Forget the threads of the parent process. Call it once in the child of a fork, before other calls. */
    static Error forget_threads() noexcept { return static_cast<Error>(::${name}_forget_threads()); }
""")
_FUNCTIONS = {
    "floor_of": """
inline std::int64_t floor_of(std::int64_t a, std::int64_t b) noexcept {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
""",
    "positive_part": """
inline std::int64_t positive_part(std::int64_t a) noexcept {
    return a > 0 ? a : 0;
}
""",
}
_MEMBERS = (
    *("status", "net", "start", "context_", "arena_", "status_", "mapping_", "Model", "state_size"),
    *("detail", "Error", "Fixed", "Span", "View", "Shape", *_FUNCTIONS),
)
"""Members of the class, and names that it looks up in its namespace; entries cannot have these names."""
_LOCALS = ("sizes", "error", "need", "message", "std", *_MEMBERS)
"""Names inside of member functions, which arguments cannot have."""
_ENTRY = Template("""\
$comment    Error $method($parameters) noexcept {
        if (status_ != Error::ok) {
            return status_;
        }
$body    }

""")


_SIZES = Template("""\
$about_record    struct $record {
$fields    };

$about    static Error $method($given) noexcept {
$body    }

""")
_DIALECT = SizeDialect(
    axis="{}[{}]".format,
    define="const std::int64_t {} = {};".format,
    fails=lambda condition, error: _returns(condition, "Error::size" if error == "size" else "Error::shape"),
    real="static_cast<double>({})".format,
)


def cpp_header(plan: LibraryPlan, file: str) -> str:
    """Return the header's text; ``file`` is its name. It does not need the C header, and may be included beside it."""
    methods = method_names(plan, _MEMBERS)
    reserved = (*_LOCALS, *(name for m in methods for name in (m.run, m.sizes, m.record)))
    entries = [_entry(plan, binding_entry(e, reserved), m) for e, m in zip(plan.entries, methods, strict=True)]
    body = "".join(entries)
    names: dict[str, Any] = {
        "name": plan.name,
        "space": "std_" if plan.name == "std" else plan.name,
        "upper": plan.upper,
        "version": plan.version,
        "target": plan.target_name,
        "file": file,
        "digest": plan.digest.hex(),
        "alignment": ALIGNMENT,
        "signatures": "\n".join(f" * {line}" for line in signatures(plan)),
        "made": f'("{plan.name}.weights")' if plan.is_beside else "",
        "declarations": _declarations(plan),
        "errors": "".join(_error(code, s.name, s.text) for code, s in enumerate(STATUSES)),
        "functions": helper_functions(body, _FUNCTIONS),
        "entries": body,
        "state_size": HEADER_BYTES + plan.state_bytes,
        "context": plan.context_bytes,
        "arena": largest_fixed_arena(plan),
    }
    mapping = _MAPPING.substitute(names) if plan.is_beside else ""
    model = _MODEL.substitute(names, **_choices(plan))
    return _HEAD.substitute(names) + _VIEWS.substitute(names) + mapping + model


def _choices(plan: LibraryPlan) -> dict[str, str]:
    """Return the pieces of the class that depend on the location of the weights, and on threads."""
    beside = plan.is_beside
    return {
        "constructors": _BESIDE if beside else _INSIDE,
        "moved": ", mapping_(std::move(other.mapping_))" if beside else "",
        "assigned": "        mapping_ = std::move(other.mapping_);\n" if beside else "",
        "members": "    detail::Mapping mapping_;\n" if beside else "",
        "start_parameters": "const void *weights, std::size_t weights_size" if beside else "",
        "init": "net(), context_.size()" + (", weights, weights_size" if beside else ""),
        "threads": _THREADS.substitute(name=plan.name) if plan.threads else "",
    }


def _error(code: int, name: str, text: str) -> str:
    return f"    {name.removeprefix('ERROR_').lower()} = {code}, /* {text} */\n"


def _declarations(plan: LibraryPlan) -> str:
    """Declare the functions of the library as its C header does."""
    n = plan.name
    init = ", const void *weights, size_t weights_size" if plan.is_beside else ""
    lines = [
        f"const char *{n}_digest(void);",
        f"const char *{n}_error_text(int code);",
        f"int {n}_init({n}_t *net, size_t size{init});",
        f"int {n}_save_state(const {n}_t *net, void *buffer, size_t size);",
        f"int {n}_load_state({n}_t *net, const void *buffer, size_t size);",
        f"int {n}_reset_state({n}_t *net);",
    ]
    if plan.is_beside:
        lines.append(f"int {n}_open_weights(const char *path, const void **weights, size_t *size);")
        lines.append(f"int {n}_close_weights(const void *weights, size_t size);")
    if plan.threads:
        lines += [f"int {n}_set_threads({n}_t *net, int64_t count);", f"int {n}_forget_threads(void);"]
    for entry in plan.entries:
        dims = ", ".join(f"int64_t {d}" for d in entry.dim_identifiers)
        lines.append(f"size_t {n}_{entry.name}_arena_size({dims or 'void'});")
        lines.append(f"int {n}_{entry.name}({', '.join(parameters(plan, entry))});")
    return "".join(f"{line}\n" for line in lines)


def _entry(plan: LibraryPlan, entry: BindingEntry, names: MethodNames) -> str:
    """Return the member functions of an entry, and the record of its sizes if it has named dimensions."""
    symbol = plan.symbol(entry.plan.name)
    lines = [line for a in entry.arguments if a.is_fixed for line in _returns(f"!{a.name}.is_valid()", "Error::shape")]
    if entry.dims:
        passed = [*(entry.dims[d] for d in entry.parameters), *(f"{a.name}.shape()" for a in entry.sized_inputs)]
        lines += [
            f"{names.record} sizes;",
            f"const Error error = {names.sizes}({', '.join([*passed, 'sizes'])});",
            *_returns("error != Error::ok", "error"),
        ]
        invalid = [f"!{a.name}.is_valid()" for a in entry.sized_inputs]
        invalid += [f"{a.name}.size() != sizes.{a.name}.count()" for a in entry.sized_outputs]
        lines += [line for condition in invalid for line in _returns(condition, "Error::shape")]
        dims = ", ".join(f"sizes.{name}" for name in entry.dims.values())
        lines.append(f"const std::size_t need = ::{symbol}_arena_size({dims});")
        lines += _returns("need == SIZE_MAX", "Error::size")
        lines += _returns("!arena_.reserve(need)", "Error::memory")
    values = [f"sizes.{name}" for name in entry.dims.values()] + [f"{a.name}.data()" for a in entry.arguments]
    call = ", ".join(["net()", *values, "arena_.data()", "arena_.size()"])
    lines.append(f"return static_cast<Error>(::{symbol}({call}));")
    given = [f"std::int64_t {entry.dims[d]}" for d in entry.parameters]
    views = [f"{_view_type(a, a in entry.outputs)} {a.name}" for a in entry.arguments]
    function = _ENTRY.substitute(
        comment=_comment(_documentation(entry, names)),
        method=names.run,
        parameters=", ".join([*given, *views]),
        body="".join(f"        {line}\n" for line in lines),
    )
    return (_sizes(entry, names) if entry.dims else "") + function


def _element(argument: BindingArgument) -> str:
    """Return the C++ type of its elements."""
    kind = argument.plan.ctype
    return f"std::{kind}" if kind.endswith("_t") else kind


def _view_type(argument: BindingArgument, is_output: bool) -> str:
    """Return the type of a parameter: Fixed for known sizes, else View for inputs and Span for outputs."""
    element = _element(argument) if is_output else f"const {_element(argument)}"
    if argument.is_fixed:
        return f"Fixed<{element}, {int(argument.count)}>"
    return f"Span<{element}>" if is_output else f"View<{element}, {argument.rank}>"


def _returns(condition: str, error: str) -> list[str]:
    return [f"if ({condition}) {{", f"    return {error};", "}"]


def _documentation(entry: BindingEntry, names: MethodNames) -> list[str]:
    """Return the comment of a member function, with an example of its call."""
    example, passed = [], [entry.dims[d] for d in entry.parameters]
    for a in entry.arguments:
        count = entry.expression(a.count)
        fixed, sized = (
            f"std::array<{_element(a)}, {count}> {a.name}{{}};",
            f"std::vector<{_element(a)}> {a.name}({count});",
        )
        example.append(fixed if a.is_fixed else sized)
        shape = ", ".join(map(entry.expression, a.shape))
        passed.append(a.name if a.is_fixed or a in entry.outputs else f"{{{a.name}, {{{shape}}}}}")
    call = f"Error error = model.{names.run}({', '.join(passed)});"
    return [f"Call {entry.plan.name}.", *entry.documentation(), "", *(f"    {line}" for line in [*example, call])]


def _comment(lines: Sequence[str]) -> str:
    return "\n".join([f"    /* {lines[0]}", *(f"     * {line}".rstrip() for line in lines[1:])]) + " */\n"


def _sizes(entry: BindingEntry, names: MethodNames) -> str:
    """Return the record of the named dimensions and output shapes of a call, and the function that computes it."""
    fields = [f"std::int64_t {name} = 0;" for name in entry.dims.values()]
    fields += [f"Shape<{a.rank}> {a.name};" for a in entry.sized_outputs]
    given = [f"std::int64_t {entry.dims[d]}" for d in entry.parameters]
    given += [f"const std::array<std::int64_t, {a.rank}> &{a.name}" for a in entry.sized_inputs]
    lines = size_lines(entry, _DIALECT)
    lines += [f"sizes.{name} = {name};" for name in entry.dims.values()]
    for a in entry.sized_outputs:
        lines += [f"sizes.{a.name}.sizes[{axis}] = {entry.expression(size)};" for axis, size in enumerate(a.shape)]
    return _SIZES.substitute(
        about_record=_comment([f"Sizes of a call of {entry.plan.name}."]),
        about=_comment([f"Compute the sizes of a call of {entry.plan.name} from the shapes of its inputs."]),
        record=names.record,
        fields="".join(f"        {field}\n" for field in fields),
        method=names.sizes,
        given=", ".join([*given, f"{names.record} &sizes"]),
        body="".join(f"        {line}\n" for line in [*lines, "return Error::ok;"]),
    )
