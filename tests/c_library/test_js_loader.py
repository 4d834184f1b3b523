"""The loader in JavaScript: errors by name, states, named dimensions, sources, and its types."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.base.errors import ArgumentError
from graphc.c_library.build import build_library
from graphc.codegen.machine.target import host_target
from tests.c_library.conftest import Built, run_tool, tool_or_skip
from tests.c_library.node import RELAXED, call_in_node, run_script

HEAD = """
import {{ load, LibraryError }} from "./{name}.js";
const net = await load();
const results = [];
const fails = (action) => {{
  try {{ action(); }} catch (e) {{ results.push(`${{e.name}}: ${{e.message}}`); return; }}
  results.push("no error");
}};
"""
END = "\nconsole.log(JSON.stringify(results));"


def run(library: Any, body: str, before: str = "") -> list[Any]:
    """Return the entries of ``results`` that the body of a script has pushed."""
    path = library.files["js"]
    return json.loads(run_script(before + HEAD.format(name=path.stem) + body + END, path.parent))


def wasm(built: Built, name: str) -> Any:
    return built(name, ("wasm", "js", "d.ts"), target="wasm")


def test_wrong_inputs_are_refused_by_name(built: Built):
    results = run(
        wasm(built, "policy"),
        """
        fails(() => net.run({ input: new Float32Array(16) }));
        fails(() => net.run({ input: new Float64Array(17) }));
        fails(() => net.run({ input: [1, 2] }));
        fails(() => net.run({ x: new Float32Array(17) }));
        fails(() => net.run({}));
        fails(() => net.run());
        """,
    )
    what = "run: input is f32[1,17], a Float32Array of length 17, not"
    assert results == [
        f"RangeError: {what} of length 16",
        f"TypeError: {what} Float64Array",
        f"TypeError: {what} object",
        "TypeError: run has no input x, only input",
        f"TypeError: {what} undefined",
        "TypeError: run: pass an object with input",
    ]


def test_errors_of_the_library_have_its_text_and_code(built: Built):
    results = run(
        wasm(built, "bag"),
        """
        fails(() => net.run({ index: new BigInt64Array(8).fill(99n) }));
        try { net.run({ index: new BigInt64Array(8).fill(-51n) }); }
        catch (e) { results.push(e instanceof LibraryError, e.code); }
        results.push(net.run({ index: new BigInt64Array(8) }).output.length);
        """,
    )
    assert results[0].startswith("LibraryError: an index or label is out of range")
    assert results[1:] == [True, "ERROR_INDEX", 16]


def test_named_dimensions_follow_from_lengths_or_are_passed(built: Built):
    results = run(
        wasm(built, "sizes"),
        """
        const x = new Float32Array(2 * 3 * 8);
        results.push(net.run({ x, batch: 2 })["output.0"].length, net.run({ x, time: 1 })["output.0"].length);
        results.push(net.run({ x, batch: 2, time: 3 })["output.1"].length);
        fails(() => net.run({ x }));
        fails(() => net.run({ x, batch: 5 }));
        fails(() => net.run({ x, batch: 3, time: 3 }));
        fails(() => net.run({ x: new Float32Array(65 * 8), batch: 65 }));
        """,
    )
    assert results[:3] == [6, 18, 32]
    assert "do not determine batch; pass batch as a whole number" in results[3]
    assert "do not determine time" in results[4] and results[5].startswith("RangeError: run: x is f32[3,3,8]")
    assert results[6].startswith("LibraryError: the size of a named dimension is out of its range")


def test_a_later_input_determines_a_dimension_of_an_earlier_one(tmp_path: Path):
    rows, columns = graphc.Dim("rows", max=64), graphc.Dim("columns", max=64)
    options: Any = {"path": tmp_path / "add.wasm", "target": "wasm", "dims": [(rows, columns), (rows,)]}
    library = build_library(lambda x, y: x + y[:, None], graphc.zeros(2, 3), graphc.zeros(2), **options)
    inputs = {"x": np.arange(20, dtype="f4").reshape(4, 5), "y": np.arange(4, dtype="f4")}
    ((output,),) = call_in_node(library, [("run", inputs)])
    assert np.array_equal(np.frombuffer(output, "f4").reshape(4, 5), inputs["x"] + inputs["y"][:, None])


def test_the_memory_grows_with_the_sizes_of_a_call(built: Built):
    results = run(
        wasm(built, "sizes"),
        """
        const small = net.run({ x: new Float32Array(8), batch: 1 });
        net.run({ x: new Float32Array(64 * 500 * 8), batch: 64 });
        const again = net.run({ x: new Float32Array(8), batch: 1 });
        results.push(String(small["output.0"]) === String(again["output.0"]));
        """,
    )
    assert results == [True]


def test_states_are_saved_and_restored(built: Built):
    results = run(
        wasm(built, "decoder"),
        """
        const next = (token, model = net) => String(model.run({ token: new BigInt64Array([token]) }).output);
        const first = next(7n), state = net.saveState(), second = next(3n), third = next(9n);
        net.loadState(state);
        results.push(next(3n) === second, next(9n) === third, next(9n) !== third);
        net.resetState();
        results.push(next(7n) === first);
        const other = await load();
        other.loadState(state);
        results.push(next(3n, other) === second);
        state[40] ^= 1;
        fails(() => net.loadState(state));
        fails(() => net.loadState(state.slice(0, 10)));
        """,
    )
    assert results[:5] == [True] * 5
    assert results[5] == "LibraryError: the saved state is not one of this model"
    assert results[6] == "LibraryError: a context, arena or buffer is smaller than its size function says"


def test_sources_are_files_bytes_modules_and_responses(built: Built):
    results = run(
        wasm(built, "policy"),
        """
        import { readFile } from "node:fs/promises";
        const bytes = await readFile("policy.wasm");
        const body = () => new Response(bytes, { headers: { "content-type": "application/wasm" } });
        const sources = ["policy.wasm", new URL("policy.wasm", import.meta.url), bytes, bytes.buffer.slice(
          bytes.byteOffset, bytes.byteOffset + bytes.length), new WebAssembly.Module(bytes), body(),
          Promise.resolve(body()), Promise.resolve(bytes), new Response(bytes), new Blob([bytes])];
        const input = new Float32Array(17).fill(0.5), expected = String(net.run({ input }).output);
        for (const source of sources) results.push(String((await load(source)).run({ input }).output) === expected);
        await load(new Response("", { status: 404 })).catch((e) => results.push(e.message));
        await load(7).catch((e) => results.push(e.message));
        """,
    )
    messages = [": the server answers 404", "load takes an address, a Response or bytes, not number"]
    assert results == [True] * 10 + messages


def test_a_module_is_compiled_while_it_arrives_if_the_server_names_its_type(built: Built):
    results = run(
        wasm(built, "policy"),
        """
        import { readFile } from "node:fs/promises";
        const bytes = await readFile("policy.wasm");
        const streaming = WebAssembly.instantiateStreaming;
        let streamed = 0;
        WebAssembly.instantiateStreaming = (...values) => { streamed++; return streaming(...values); };
        for (const type of ["application/wasm", "application/wasm; x=1", "text/plain"]) {
          await load(new Response(bytes, { headers: { "content-type": type } }));
          results.push(streamed);
        }
        """,
    )
    assert results == [1, 1, 1]


def test_a_server_sends_the_module(built: Built):
    results = run(
        wasm(built, "policy"),
        """
        import { readFile } from "node:fs/promises";
        import { createServer } from "node:http";
        const bytes = await readFile("policy.wasm");
        const server = createServer((request, response) => {
          response.statusCode = request.url === "/policy.wasm" ? 200 : 404;
          response.end(bytes);
        });
        await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
        const address = `http://127.0.0.1:${server.address().port}`;
        const input = new Float32Array(17).fill(0.5);
        const other = await load(`${address}/policy.wasm`);
        results.push(String(other.run({ input }).output) === String(net.run({ input }).output));
        await load(`${address}/absent.wasm`).catch((e) => results.push(e.message.replace(address, "")));
        server.close();
        server.closeAllConnections();
        """,
    )
    assert results == [True, "/absent.wasm: the server answers 404"]


def test_names_of_files_are_any_text(tmp_path: Path):
    path = tmp_path / "a#b?c%20 d.wasm"
    emit = ("wasm", "js", "html")
    library = build_library(nn.ReLU(), graphc.zeros(3), path=path, target="wasm", emit=emit, weights="beside")
    assert library.files["weights"].name == "a#b?c%20 d.weights"
    assert '"./a%23b%3Fc%2520%20d.js"' in library.files["html"].read_text()
    ((output,),) = call_in_node(library, [("run", {"input": np.array([-1, 2, 3], "f4")})])
    assert np.frombuffer(output, "f4").tolist() == [0, 2, 3]


def beside(built: Built) -> Any:
    return built("policy", ("wasm", "relaxed", "scalar", "js", "d.ts"), target="wasm", weights="beside")


def test_the_best_module_that_the_engine_runs_is_loaded(built: Built):
    library = beside(built)
    results = run(
        library,
        """
        const validate = WebAssembly.validate;
        const loaded = async () => {
          const asked = [];
          const files = (await import("node:module")).createRequire(import.meta.url)("node:fs/promises");
          const read = files.readFile;
          files.readFile = (url, ...rest) => { asked.push(url.href.split("/").at(-1)); return read(url, ...rest); };
          (await import("node:module")).syncBuiltinESMExports();
          await load();
          files.readFile = read;
          return asked.find((name) => name.endsWith("wasm"));
        };
        results.push(await loaded());
        WebAssembly.validate = () => false;
        results.push(await loaded());
        WebAssembly.validate = (bytes) => bytes.length < 40;
        results.push(await loaded());
        """,
        RELAXED,
    )
    relaxed = "policy.relaxed.wasm" if host_target().fma else "policy.wasm"
    assert results == [relaxed, "policy.scalar.wasm", "policy.wasm"]


def test_an_engine_without_vectors_is_told(built: Built):
    script = """
    WebAssembly.validate = () => false;
    await load().catch((e) => results.push(e.message));
    """
    assert run(wasm(built, "policy"), script) == ["this engine lacks instructions that policy.wasm needs"]


def test_weights_are_in_a_file_that_is_checked(built: Built):
    results = run(
        beside(built),
        """
        import { readFile } from "node:fs/promises";
        const bytes = await readFile("policy.weights"), module = await readFile("policy.wasm");
        const input = new Float32Array(17).fill(0.5), expected = String(net.run({ input }).output);
        for (const weights of [bytes, new Uint8Array(bytes).buffer, "policy.weights", new Response(bytes),
            Promise.resolve(new Response(bytes))]) {
          results.push(String((await load(module, weights)).run({ input }).output) === expected);
        }
        const damaged = (action) => { const copy = new Uint8Array(bytes); action(copy); return copy; };
        for (const weights of [bytes.subarray(0, 1000), new Uint8Array(0), damaged((b) => (b[1000] ^= 1)),
            damaged((b) => (b[3] ^= 1)), new Response("", { status: 404 }), "absent.weights"]) {
          await load(module, weights).then(() => results.push("none"), (e) => results.push(`${e.name}: ${e.message}`));
        }
        """,
    )
    size = 22_848 + 64
    assert results[:5] == [True] * 5
    assert results[5] == f"RangeError: policy.weights has {size} bytes, and here are 1000"
    assert results[6] == f"RangeError: policy.weights has {size} bytes, and here are 0"
    assert results[7].startswith("Error: policy.weights is damaged or of another build: its SHA-256 is ")
    assert results[8] == "LibraryError: the weights are not those that this library was built with"
    assert results[9] == "Error: : the server answers 404" and "absent.weights" in results[10]


def test_an_engine_without_cryptography_checks_size_and_header(built: Built):
    results = run(
        beside(built),
        """
        import { readFile } from "node:fs/promises";
        const bytes = new Uint8Array(await readFile("policy.weights"));
        Object.defineProperty(globalThis, "crypto", { value: {} });
        await load(undefined, bytes);
        bytes[20] ^= 1;
        await load(undefined, bytes).catch((e) => results.push(e.message));
        """,
    )
    assert results == ["the weights are not those that this library was built with"]


def test_damaged_files_are_refused_with_a_message(built: Built):
    results = run(
        beside(built),
        """
        import { readFile } from "node:fs/promises";
        const module = new Uint8Array(await readFile("policy.wasm"));
        const weights = new Uint8Array(await readFile("policy.weights"));
        let seed = 1;
        const random = (limit) => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) % limit;
        const cut = (bytes) => bytes.slice(0, random(bytes.length));
        const changed = (bytes) => {
          const copy = bytes.slice();
          copy[random(copy.length)] ^= 1 << random(8);
          return copy;
        };
        const longer = (bytes) => Uint8Array.of(...bytes, ...new Uint8Array(1 + random(100)));
        const makes = [
          () => [module, cut(weights)],
          () => [module, changed(weights)],
          () => [module, longer(weights)],
          () => [cut(module), weights],
          () => [new Response(cut(module), { headers: { "content-type": "application/wasm" } }), weights],
        ];
        for (let i = 0; i < 500; i++) {
          await load(...makes[i % makes.length]()).then(
            () => results.push(`${i}: not refused`),
            (e) => results.push(e instanceof WebAssembly.RuntimeError ? `${i}: trap` : e.message),
          );
        }
        const input = new Float32Array(17).fill(0.5);
        results.push(String((await load(module, weights)).run({ input }).output) === String(net.run({ input }).output));
        """,
    )
    *messages, is_equal = results
    known = ("policy.weights has", "policy.weights is damaged", "policy.wasm is damaged", "the weights are not")
    assert len(messages) == 500 and is_equal
    assert not [message for message in messages if not message.startswith(known)]
    assert {next(k for k in known if message.startswith(k)) for message in messages} >= {*known[:3]}


def test_the_module_of_another_build_is_refused(built: Built, tmp_path: Path):
    policy, bag = wasm(built, "policy"), wasm(built, "bag")
    shutil.copy(policy.files["wasm"], tmp_path / "policy.wasm")
    text = policy.files["js"].read_text()
    (tmp_path / "policy.js").write_text(text.replace(policy.digest, bag.digest))
    script = 'import { load } from "./policy.js"; await load().catch((e) => console.log(e.message));'
    assert run_script(script, tmp_path).strip() == "policy.wasm and its loader are of different builds"


def test_sizes_may_be_expressions_of_dimensions(tmp_path: Path):
    n = graphc.Dim("n", min=2, max=64)
    net = nn.Sequential(nn.Conv1d(1, 2, 3, stride=2), nn.Flatten(1))
    library = build_library(
        net.eval(), graphc.zeros(1, 1, 9), path=tmp_path / "c.wasm", target="wasm", dims=[(1, 1, 2 * n + 1)]
    )
    assert "2 * d.n" in library.files["js"].read_text()
    x = np.random.default_rng(0).standard_normal((1, 1, 21)).astype("f4")
    ((output,),) = call_in_node(library, [("run", {"input": x, "n": np.int64(10)})])
    with graphc.no_grad():
        np.testing.assert_allclose(np.frombuffer(output, "f4"), net(graphc.tensor(x)).numpy().ravel(), 1e-5, 1e-6)


def test_types_are_those_of_the_entries(built: Built):
    text = wasm(built, "sizes").files["d.ts"].read_text()
    assert "export interface RunInputs {\n  /** f32[batch,time,8] */\n  x: Float32Array;\n" in text
    assert '  "output.0": Float32Array;' in text and "  batch?: number;" in text
    assert "  run(inputs: RunInputs): RunOutputs;" in text


def test_names_of_a_model_stay_inside_of_comments(tmp_path: Path):
    def odd(x: Any) -> Any:
        return {"a\n*/ b": x + 1}

    dims = [(graphc.Dim("n */ m"),)]
    library = build_library(odd, graphc.rand(3), path=tmp_path / "odd.wasm", target="wasm", dims=dims)
    assert "//   run(x: f32[`n * / m`]) -> (a * / b: f32[`n * / m`])\n" in library.files["js"].read_text()
    assert "  /** f32[`n * / m`] */\n" in library.files["d.ts"].read_text()
    x = np.arange(2, dtype="f4")
    ((output,),) = call_in_node(library, [("run", {"x": x})])
    assert output == (x + 1).tobytes()


def test_typescript_accepts_the_types(built: Built, tmp_path: Path):
    compiler = tool_or_skip("tsc")
    for name, library in (("sizes", wasm(built, "sizes")), ("policy", beside(built))):
        shutil.copy(library.files["d.ts"], tmp_path / f"{name}.d.ts")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "use.ts").write_text(
        """\
        import { load, LibraryError } from "./sizes.js";
        import { load as loadPolicy } from "./policy.js";
        const net = await load(fetch("sizes.wasm"));
        const y: Float32Array = net.run({ x: new Float32Array(8), batch: 1 })["output.0"];
        const module = await WebAssembly.compile(new ArrayBuffer(8));
        const policies = [await loadPolicy(), await loadPolicy(module, new Uint8Array(8)),
          await loadPolicy(new URL("https://example.org"), fetch("policy.weights"))];
        // @ts-expect-error
        net.run({ x: new Float64Array(8) });
        // @ts-expect-error
        loadPolicy(module, 7);
        // @ts-expect-error
        load("sizes.wasm", new Uint8Array(8));
        export const code = (e: LibraryError): boolean => e.code === "ERROR_SIZE";
        export { y, policies };
        """
    )
    options = ("--noEmit", "--strict", "--target", "es2022", "--module", "nodenext")
    run_tool(compiler, *options, tmp_path / "use.ts", cwd=tmp_path)


@pytest.mark.parametrize("name", ["saveState", "then"])
def test_entries_have_no_name_of_the_loader(name: str, tmp_path: Path):
    entries = {name: graphc.Entry(nn.ReLU(), graphc.zeros(3))}
    with pytest.raises(ArgumentError, match=f"'{name}', which the loader in JavaScript defines"):
        build_library(entries, path=tmp_path / "net.wasm", target="wasm")


def test_an_input_and_a_dimension_have_different_names(tmp_path: Path):
    with pytest.raises(ArgumentError, match="has an input and a dimension called 'input'"):
        build_library(
            nn.ReLU(), graphc.zeros(3), path=tmp_path / "net.wasm", target="wasm", dims=[(graphc.Dim("input", max=8),)]
        )


def test_names_of_dimensions_are_any_text(tmp_path: Path):
    for name in ("constructor", "*/ rows"):
        dims = [(graphc.Dim(name, max=8),)]
        library = build_library(nn.ReLU(), graphc.zeros(3, 2), path=tmp_path / "n.wasm", target="wasm", dims=dims)
        (result,) = run(library, "results.push(net.run({ input: new Float32Array(4) }).output.length);")
        assert result == 4 and "f32[*/" not in library.files["d.ts"].read_text()


def test_states_and_modules_of_other_kinds_are_refused(built: Built):
    results = run(
        wasm(built, "policy"),
        """
        fails(() => net.loadState(net.saveState().buffer));
        const empty = new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0));
        await load(empty).catch((e) => results.push(e.message));
        """,
    )
    assert results == [
        "TypeError: loadState takes the Uint8Array that saveState returns",
        "policy.wasm and its loader are of different builds",
    ]
