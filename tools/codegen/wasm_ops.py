"""Programs of ``tools.codegen.cross_ops`` as one WebAssembly module, and the script that calls them in Node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphc.codegen.link.wasm_module import link_wasm
from graphc.codegen.llvm.build import build_object
from graphc.codegen.llvm.module import Function, Item, LlvmModule, prefixed
from graphc.codegen.machine.linkage import ENTRY
from graphc.codegen.machine.target import Target
from graphc.compiler.linking import builtins_for
from graphc.files.object_archive import split_objects

RUNNER = """
const { readFileSync, writeFileSync } = require("fs");
const input = readFileSync("in"), results = [];
const align = (size) => Math.ceil(size / 64) * 64;
let position = 0;
const word = () => { position += 8; return Number(input.readBigInt64LE(position - 8)); };
const code = readFileSync("cases.wasm");
if (!WebAssembly.validate(code)) require("v8").setFlagsFromString("--experimental-wasm-relaxed-simd"); // Node 20
WebAssembly.instantiate(code).then(({ instance: { exports } }) => {
  const cases = word();
  for (let i = 0; i < cases; i++) {
    const count = word(), table = align(exports.heap.value), blocks = [];
    let end = align(table + 8 * (count + 1));
    for (let k = 0; k < count; k++) {
      const bytes = word(), isResult = word();
      blocks.push({ bytes, isResult, address: end, data: input.subarray(position, position + bytes) });
      position += bytes;
      end = align(end + bytes);
    }
    const missing = end - exports.memory.buffer.byteLength;
    if (missing > 0) exports.memory.grow(Math.ceil(missing / 65536));
    const memory = new Uint8Array(exports.memory.buffer), slots = new DataView(exports.memory.buffer);
    blocks.forEach((block, k) => {
      memory.set(block.data, block.address);
      slots.setUint32(table + 8 * k, block.address, true);
    });
    exports[`case_${i}`](table);
    for (const { bytes, isResult, address } of blocks) {
      if (isResult) results.push(Buffer.from(memory.slice(address, address + bytes)));
    }
  }
  writeFileSync("out", Buffer.concat(results));
});
"""
"""Script with the meaning of ``cross_ops.RUNNER``. A slot of the table has 8 bytes, of which an address takes 4."""


def object_of(module: LlvmModule, name: str, target: Target) -> bytes:
    """Return the object code of a program, whose entry is called ``name``, and its other functions after it."""
    renamed = prefixed(module, f"{name}.")
    items: list[Item] = []
    for item in renamed.items:
        if isinstance(item, Function) and item.name == f"{name}.{ENTRY}":
            item = replace(item, name=name, local=False)
        items.append(item)
    return build_object(LlvmModule(tuple(items)), target)


def module_of(objects: Sequence[bytes], names: Sequence[str], target: Target) -> bytes:
    """Return the module that exports the entries with these names."""
    pieces = [piece for code in objects for piece in split_objects(code)]
    return link_wasm(pieces, names, supply=builtins_for(target))
