"""C++ header of a library: compiled without exceptions, and called."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from graphc.c_library.build import Library
from tests.c_library.binding_cases import all_cases, assert_same_bits, awkward_library, case_library
from tests.c_library.conftest import run_tool, tool_or_skip

FLAGS = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-fno-exceptions", "-O1")
_PRELUDE = """
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>
#include "NAME.hpp"
#if __cplusplus >= 202002L
#include <span>
#endif

using namespace graphc::NAME;

template <class T> std::vector<T> read(const char *name, std::size_t count) {
    std::vector<T> elements(count);
    std::FILE *file = std::fopen(name, "rb");
    if (file == nullptr || std::fread(elements.data(), sizeof(T), count, file) != count) {
        std::exit(2);
    }
    std::fclose(file);
    return elements;
}

template <class T> void write(const char *name, const T *data, std::size_t count) {
    std::FILE *file = std::fopen(name, "wb");
    std::fwrite(data, sizeof(T), count, file);
    std::fclose(file);
}

void check(Error error) {
    if (error != Error::ok) {
        std::fprintf(stderr, "%s\\n", message(error));
        std::exit(1);
    }
}

void expect(Error error, Error expected) {
    if (error != expected) {
        std::fprintf(stderr, "%s, expected %s\\n", message(error), message(expected));
        std::exit(1);
    }
}

int main() {
BODY
    return 0;
}
"""
_BODIES = {
    "policy": """
    Model first;
    check(first.status());
    Model model(std::move(first));
    const auto input = read<float>("in0", 17);
    std::array<float, 6> output;
    check(model.run({input.data(), input.size()}, output));
    write("out0", output.data(), output.size());
    expect(model.run({input.data(), 16}, output), Error::shape);
    float fixed[17] = {};
    check(model.run(fixed, output));
    expect(first.run(fixed, output), Error::context);
    first = std::move(model);
    check(first.run(fixed, output));
#if __cplusplus >= 202002L
    check(first.run(std::span<float, 17>(fixed), std::span(output)));
#endif""",
    "sizes": """
    Model model;
    const auto x = read<float>("in0", 2 * 12 * 8);
    Model::RunSizes sizes;
    check(Model::run_sizes({2, 12, 8}, sizes));
    std::vector<float> scores(sizes.output_0.count()), h(sizes.output_1.count());
    check(model.run({x, {2, 12, 8}}, scores, h));
    write("out0", scores.data(), scores.size());
    write("out1", h.data(), h.size());
    expect(model.run({x, {2, 11, 8}}, scores, h), Error::shape);
    expect(model.run({x, {2, 8, 12}}, scores, h), Error::shape);
    expect(model.run({x, {65, 1, 8}}, scores, h), Error::size);
    scores.pop_back();
    expect(model.run({x, {2, 12, 8}}, scores, h), Error::shape);""",
    "decoder": """
    Model model("decoder.weights");
    check(model.status());
    const auto token = read<std::int64_t>("in0", 1);
    std::vector<float> first(40), second(40), again(40);
    check(model.run({token.data(), 1}, {first.data(), 40}));
    write("out0", first.data(), first.size());
    unsigned char state[Model::state_size];
    check(model.save_state(state, sizeof state));
    const std::int64_t other[1] = {token[0] ^ 1};
    check(model.run(other, {second.data(), 40}));
    check(model.load_state(state, sizeof state));
    check(model.run(other, {again.data(), 40}));
    if (second != again || second == first) {
        return 3;
    }
    check(model.reset_state());
    check(model.run({token.data(), 1}, {again.data(), 40}));
    if (again != first) {
        return 4;
    }
    const std::int64_t large[1] = {40};
    expect(model.run(large, {again.data(), 40}), Error::index);
    state[0] = 0;
    expect(model.load_state(state, sizeof state), Error::state);
    expect(model.load_state(state, 8), Error::memory);
    Model missing("missing.weights");
    expect(missing.status(), Error::file);
    expect(missing.run({token.data(), 1}, {again.data(), 40}), Error::file);
    alignas(64) unsigned char damaged[128] = {};
    expect(Model(damaged, sizeof damaged).status(), Error::weights);""",
    "wide": """
    Model model;
    check(model.set_threads(2));
    expect(model.set_threads(0), Error::threads);
    const auto input = read<float>("in0", 256 * 512);
    std::vector<float> output(256 * 512);
    check(model.run({input.data(), input.size()}, {output.data(), output.size()}));
    write("out0", output.data(), output.size());
    check(Model::forget_threads());""",
    "types": """
    Model model;
    const auto a = read<double>("in0", 2);
    const auto b = read<std::uint16_t>("in1", 2);
    const auto c = read<std::int8_t>("in2", 2);
    const auto d = read<std::int16_t>("in3", 2);
    const auto e = read<std::uint16_t>("in4", 2);
    const auto f = read<std::int32_t>("in5", 2);
    const auto g = read<std::uint32_t>("in6", 2);
    const auto h = read<std::int64_t>("in7", 2);
    const auto i = read<std::uint8_t>("in8", 2);
    double p[2];
    std::int8_t r[2];
    std::uint16_t q[2], t[2];
    std::int16_t s[2];
    std::int32_t u[2];
    std::uint32_t v[2];
    std::int64_t w[2];
    std::uint8_t x[2];
    check(model.run({a.data(), 2}, {b.data(), 2}, {c.data(), 2}, {d.data(), 2}, {e.data(), 2}, {f.data(), 2},
                    {g.data(), 2}, {h.data(), 2}, {i.data(), 2}, p, q, r, s, t, u, v, w, x));
    write("out0", p, 2); write("out1", q, 2); write("out2", r, 2); write("out3", s, 2); write("out4", t, 2);
    write("out5", u, 2); write("out6", v, 2); write("out7", w, 2); write("out8", x, 2);""",
    "pooled": """
    Model model;
    const auto x = read<float>("in0", 54);
    const auto scale = read<float>("in1", 1);
    std::vector<float> means(24);
    float more[1];
    check(model.run({x, {2, 3, 9}}, {scale.data(), 1}, means, more));
    write("out0", means.data(), means.size());
    write("out1", more, 1);
    expect(model.run({x, {2, 3, 101}}, {scale.data(), 1}, means, more), Error::size);""",
    "repeats": """
    Model model;
    const auto x = read<float>("in0", 4);
    std::vector<float> rows(20);
    check(model.run(5, {x.data(), 4}, rows));
    write("out0", rows.data(), rows.size());
    expect(model.run(6, {x.data(), 4}, rows), Error::shape);
    expect(model.run(101, {x.data(), 4}, rows), Error::size);
    expect(model.run(-1, {x.data(), 4}, rows), Error::size);""",
    "learner": """
    Model model;
    const auto x = read<float>("in0", 64);
    const auto y = read<std::int64_t>("in1", 16);
    std::vector<float> scores(32), later(32);
    float loss[1], last[1];
    check(model.infer({x.data(), 64}, {scores.data(), 32}));
    write("out0", scores.data(), scores.size());
    check(model.train_step({x.data(), 64}, {y.data(), 16}, loss));
    for (int i = 0; i < 50; i++) {
        check(model.train_step({x.data(), 64}, {y.data(), 16}, last));
    }
    check(model.infer({x.data(), 64}, {later.data(), 32}));
    return last[0] < loss[0] && later != scores ? 0 : 5;""",
}


def program(name: str, library: Library, standard: str, body: str | None = None) -> Path:
    """Compile the program of a case."""
    folder = library.files["hpp"].parent
    source, binary = folder / f"{name}.cpp", folder / f"{name}.{standard}"
    source.write_text(_PRELUDE.replace("NAME", name).replace("BODY", _BODIES[name] if body is None else body))
    compiler = tool_or_skip("g++", "clang++")
    run_tool(compiler, f"-std={standard}", *FLAGS, source, library.files["so"], f"-Wl,-rpath,{folder}", "-o", binary)
    return binary


@all_cases
def test_calls_give_the_bits_of_the_loader(name: str, tmp_path: Path):
    library = case_library(name, ("hpp",), tmp_path)
    standard = "c++20" if name == "policy" else "c++17"
    binary = program(name, library, standard)
    assert_same_bits(name, library, tmp_path, lambda: run_tool(binary, cwd=tmp_path))


def test_the_compiler_refuses_an_array_of_another_size(tmp_path: Path):
    library = case_library("policy", ("hpp",), tmp_path)
    body = "Model model; std::array<float, COUNT> x{}; float y[6]; check(model.run(x, y));"
    program("policy", library, "c++17", body.replace("COUNT", "17"))
    with pytest.raises(AssertionError, match="Fixed<const float, 17>"):
        program("policy", library, "c++17", body.replace("COUNT", "18"))


def test_a_call_with_static_sizes_allocates_nothing(tmp_path: Path):
    library = case_library("policy", ("hpp",), tmp_path)
    body = """
    Model model;
    float x[17] = {}, y[6];
    const std::size_t before = allocations;
    for (int i = 0; i < 10; i++) {
        check(model.run(x, y));
    }
    return before > 0 && allocations == before ? 0 : 1;"""
    counting = """
    std::size_t allocations = 0;
    void *operator new(std::size_t size, std::align_val_t align, const std::nothrow_t &) noexcept {
        allocations++;
        return std::aligned_alloc(static_cast<std::size_t>(align), (size + 63) / 64 * 64);
    }
    void operator delete(void *memory, std::align_val_t) noexcept { std::free(memory); }
    int main() {"""
    source = _PRELUDE.replace("NAME", "policy").replace("int main() {", counting).replace("BODY", body)
    (tmp_path / "count.cpp").write_text(source)
    flags = [f for f in FLAGS if f != "-Werror"]
    binary = tmp_path / "count"
    libraries = library.files["so"], f"-Wl,-rpath,{tmp_path}"
    run_tool(tool_or_skip("g++"), "-std=c++17", *flags, tmp_path / "count.cpp", *libraries, "-o", binary)
    run_tool(binary)


def test_a_library_of_another_build_is_refused(tmp_path: Path):
    library = case_library("policy", ("hpp",), tmp_path)
    header = library.files["hpp"]
    header.write_text(header.read_text().replace(f'"{library.digest}"', f'"{"0" * 64}"'))
    binary = program("policy", library, "c++17", "check(Model().status());")
    done = subprocess.run([binary], capture_output=True, text=True)
    assert done.returncode == 1 and "different builds" in done.stderr


def test_it_may_be_included_beside_the_c_header(tmp_path: Path):
    case_library("sizes", ("hpp",), tmp_path)
    (tmp_path / "both.cpp").write_text('#include "sizes.h"\n#include "sizes.hpp"\n#include "sizes.h"\n')
    run_tool(tool_or_skip("g++"), "-std=c++17", *FLAGS, "-c", tmp_path / "both.cpp", "-o", tmp_path / "both.o")


def test_names_of_the_language_are_no_obstacle(tmp_path: Path):
    awkward_library("std", ("hpp",), tmp_path)
    (tmp_path / "std.cpp").write_text('#include "std.hpp"\ngraphc::std_::Error error;\n')
    run_tool(tool_or_skip("g++"), "-std=c++17", *FLAGS, "-c", tmp_path / "std.cpp", "-o", tmp_path / "std.o")


def test_entries_have_comments_with_shapes_and_an_example(tmp_path: Path):
    text = case_library("sizes", ("hpp",), tmp_path).files["hpp"].read_text()
    assert "- input x: f32[batch,time,8]" in text and "- size batch: 1 to 64, from dimension 0 of x" in text
    assert "Error error = model.run({x, {batch, time, 8}}, output_0, output_1);" in text
