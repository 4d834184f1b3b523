"""Calls of a WebAssembly library in Node, through its loader in JavaScript."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphc.c_library.build import Library
from graphc.c_library.js_loader import file_url
from tests.c_library.conftest import tool_or_skip

ARRAYS = {
    **{"float64": "Float64Array", "float32": "Float32Array", "int64": "BigInt64Array", "int32": "Int32Array"},
    **{"int16": "Int16Array", "int8": "Int8Array", "uint8": "Uint8Array", "bool": "Uint8Array"},
    **{"uint16": "Uint16Array", "float16": "Uint16Array", "uint32": "Uint32Array", "uint64": "BigUint64Array"},
}
RELAXED = """
import v8 from "node:v8";
if (!WebAssembly.validate(new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 8, 1, 96, 3, 123, 123, 123, 1, 123, 3, 2, 1, 0, 10, 13, 1, 11, 0, 32, 0, 32, 1, 32, 2,
  253, 133, 2, 11]))) v8.setFlagsFromString("--experimental-wasm-relaxed-simd");
"""
"""Turns relaxed SIMD on, which needs a flag in Node 20."""
CALLS = (
    RELAXED.replace("{", "{{").replace("}", "}}")
    + """
import {{ readFile, writeFile }} from "node:fs/promises";
import {{ load }} from {loader};
const net = await load({source});
const results = [];
for (const [entry, inputs] of JSON.parse(await readFile({calls}, "utf8"))) {{
  const given = {{}};
  for (const [name, [type, data]] of Object.entries(inputs)) {{
    const bytes = Buffer.from(data, "base64");
    given[name] = new globalThis[type](bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  }}
  const outputs = Object.values(net[entry](given));
  results.push(outputs.map((o) => Buffer.from(o.buffer, o.byteOffset, o.byteLength).toString("base64")));
}}
await writeFile({results}, JSON.stringify(results));
"""
)


def run_script(text: str, folder: Path) -> str:
    """Return the output of a script for Node, an ES module in the folder; skip the test without Node."""
    node = tool_or_skip("node", "nodejs")
    (folder / "script.mjs").write_text(text)
    done = subprocess.run([node, "script.mjs"], capture_output=True, text=True, cwd=folder, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def call_in_node(
    library: Library, calls: Sequence[tuple[str, Mapping[str, np.ndarray]]], source: str = ""
) -> list[list[bytes]]:
    """Return the bytes of the outputs of calls (entry, inputs by name), one after the other.

    ``source`` is the expression of the module to load.
    """
    folder = library.files["js"].parent
    encoded: list[Any] = [(entry, {n: _encoded(a) for n, a in inputs.items()}) for entry, inputs in calls]
    (folder / "calls.json").write_text(json.dumps(encoded))
    names = {"loader": file_url(library.files["js"].name), "calls": "calls.json", "results": "results.json"}
    run_script(CALLS.format(source=source, **{key: json.dumps(name) for key, name in names.items()}), folder)
    results = json.loads((folder / "results.json").read_text())
    return [[base64.b64decode(output) for output in outputs] for outputs in results]


def _encoded(array: np.ndarray) -> tuple[str, str]:
    return ARRAYS[str(array.dtype)], base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
