"""JavaScript module that loads and calls a WebAssembly library, and its TypeScript types."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from graphc.base.errors import ArgumentError
from graphc.base.sizes.size import is_size
from graphc.base.sizes.size_terms import Atom, Dimension, Positive
from graphc.c_library.bindings import comment_text, signatures
from graphc.c_library.plan import HEADER_BYTES, STATUSES, EntryPlan, LibraryArgument, LibraryPlan, shape_text
from graphc.files.container import ALIGNMENT

_ARRAYS = {
    **{"f64": "Float64Array", "f32": "Float32Array", "i64": "BigInt64Array", "i32": "Int32Array", "i16": "Int16Array"},
    **{"i8": "Int8Array", "u8": "Uint8Array", "bool": "Uint8Array", "u16": "Uint16Array", "u32": "Uint32Array"},
    **{"u64": "BigUint64Array", "f16": "Uint16Array", "bf16": "Uint16Array"},
}
"""Class of the arrays of each element type; f16 and bf16 are passed as their bits."""
_METHODS = ("saveState", "loadState", "resetState", "constructor", "then", "__proto__")
"""Properties that entries cannot be called: of the class Model, of every object, and of promises, as ``await`` would
call ``then`` of a model."""
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)

_RUNTIME = """\
const align = (size) => Math.ceil(size / ALIGNMENT) * ALIGNMENT;

/** An error of the library: `code` is its name, such as "ERROR_INDEX". */
export class LibraryError extends Error {
  constructor(code, text) {
    super(text);
    this.name = "LibraryError";
    this.code = code;
  }
}

/** The model with its states, in a memory of its own. */
export class Model {
  #functions;
  #memory;
  #context;
  #free;

  constructor(instance, weights) {
    this.#functions = instance.exports;
    this.#memory = instance.exports.memory;
    const digest = `${PREFIX}_digest` in this.#functions && this.#text(this.#call("digest"));
    if (!MODULES.some((module) => module.digest === digest)) {
      throw new Error(`${FILE} and its loader are of different builds`);
    }
    const start = align(instance.exports.heap.value >>> 0);
    this.#context = align(start + (weights?.length ?? 0));
    this.#free = align(this.#context + CONTEXT_BYTES);
    this.#reserve(this.#free);
    if (weights) this.#bytes(start, weights.length).set(weights);
    const block = weights ? [start, BigInt(weights.length)] : [];
    this.#check(this.#call("init", this.#context, BigInt(CONTEXT_BYTES), ...block));
    for (const [name, entry] of Object.entries(ENTRIES)) {
      const call = this.#functions[`${PREFIX}_${name}`];
      const bound = { ...entry, call, arenaSize: this.#functions[`${PREFIX}_${name}_arena_size`] };
      this[name] = (inputs) => this.#run(name, bound, inputs);
    }
  }

  /** Copies the states, for `loadState` of any build of the same model. */
  saveState() {
    const end = this.#free + STATE_BYTES;
    this.#reserve(end);
    this.#check(this.#call("save_state", this.#context, this.#free, BigInt(STATE_BYTES)));
    return new Uint8Array(this.#memory.buffer.slice(this.#free, end));
  }

  /** Restores the states that `saveState` has returned. */
  loadState(state) {
    if (classOf(state) !== "Uint8Array") throw new TypeError("loadState takes the Uint8Array that saveState returns");
    this.#reserve(this.#free + state.length);
    this.#bytes(this.#free, state.length).set(state);
    this.#check(this.#call("load_state", this.#context, this.#free, BigInt(state.length)));
  }

  /** Restores the states that the model has at first. */
  resetState() {
    this.#check(this.#call("reset_state", this.#context));
  }

  #run(name, entry, inputs) {
    const sizes = sizesOf(name, entry, inputs);
    const arrays = [
      ...entry.inputs.map((argument) => checked(name, argument, sizes, inputs[argument.name])),
      ...entry.outputs.map((argument) => ({ argument, bytes: bytesOf(argument, sizes) })),
    ];
    const dims = entry.dims.map((dim) => BigInt(sizes[dim]));
    const arenaBytes = entry.arenaSize(...dims);
    if (arenaBytes < 0n) this.#check(STATUSES.indexOf("ERROR_SIZE"));
    const arena = this.#free;
    let end = align(arena + Number(arenaBytes));
    for (const array of arrays) {
      array.address = end;
      end = align(end + array.bytes);
    }
    this.#reserve(end);
    for (const { data, address, bytes } of arrays) {
      if (data) this.#bytes(address, bytes).set(new Uint8Array(data.buffer, data.byteOffset, bytes));
    }
    const addresses = arrays.map((array) => array.address);
    this.#check(entry.call(this.#context, ...dims, ...addresses, arena, arenaBytes));
    const results = {};
    for (const { argument, address, bytes, data } of arrays) {
      if (!data) results[argument.name] = new argument.type(this.#memory.buffer.slice(address, address + bytes));
    }
    return results;
  }

  #call(name, ...values) {
    return this.#functions[`${PREFIX}_${name}`](...values);
  }

  #check(code) {
    if (code) throw new LibraryError(STATUSES[code], this.#text(this.#call("error_text", code)));
  }

  #bytes(address, size) {
    return new Uint8Array(this.#memory.buffer, address, size);
  }

  #text(address) {
    const bytes = new Uint8Array(this.#memory.buffer, address >>> 0);
    return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
  }

  #reserve(end) {
    const missing = end - this.#memory.buffer.byteLength;
    if (missing <= 0) return;
    try {
      this.#memory.grow(Math.ceil(missing / 65536));
    } catch {
      throw new LibraryError("ERROR_MEMORY", `the memory cannot grow to ${end} bytes`);
    }
  }
}

const classOf = (data) => (ArrayBuffer.isView(data) ? data[Symbol.toStringTag] : typeof data);

const bytesOf = ({ type, shape }, sizes) => shape(sizes).reduce((a, b) => a * b, 1) * type.BYTES_PER_ELEMENT;

/** The named dimensions of a call: passed by name, or computed from the lengths of inputs. */
function sizesOf(name, entry, inputs) {
  const names = () => [...entry.inputs.map((argument) => argument.name), ...entry.dims].join(", ");
  if (inputs === null || typeof inputs !== "object") throw new TypeError(`${name}: pass an object with ${names()}`);
  const sizes = Object.create(null);
  for (const key of Object.keys(inputs)) {
    if (entry.dims.includes(key)) {
      if (inputs[key] !== undefined) sizes[key] = Number(inputs[key]);
    } else if (!entry.inputs.some((argument) => argument.name === key)) {
      throw new TypeError(`${name} has no input ${key}, only ${names()}`);
    }
  }
  for (const _ of entry.dims) { // a dimension of a later input may complete the shape of an earlier one
    for (const { dim, input, others } of entry.lengths) {
      const count = inputs[input]?.length / others(sizes);
      if (sizes[dim] === undefined && Number.isInteger(count)) sizes[dim] = count;
    }
  }
  for (const dim of entry.dims) {
    if (!Number.isSafeInteger(sizes[dim])) {
      throw new TypeError(`${name}: the lengths of the inputs do not determine ${dim}; pass ${dim} as a whole number`);
    }
  }
  return sizes;
}

function checked(name, argument, sizes, data) {
  const bytes = bytesOf(argument, sizes);
  const actual = classOf(data);
  if (actual !== argument.type.name) throw new TypeError(`${describe(name, argument, sizes)}, not ${actual}`);
  if (data.byteLength !== bytes) {
    throw new RangeError(`${describe(name, argument, sizes)}, not of length ${data.length}`);
  }
  return { argument, data, bytes };
}

function describe(name, argument, sizes) {
  const length = bytesOf(argument, sizes) / argument.type.BYTES_PER_ELEMENT;
  const shape = argument.shape(sizes);
  return `${name}: ${argument.name} is ${argument.kind}[${shape}], a ${argument.type.name} of length ${length}`;
}

const isBytes = (data) => ArrayBuffer.isView(data) || data instanceof ArrayBuffer;
const inNode = () => globalThis.process?.versions?.node !== undefined;

/** The first module that this engine can run. */
function chosen() {
  const module = MODULES.find(({ runs }) => runs());
  if (!module) throw new Error(`this engine lacks instructions that ${MODULES.at(-1).file} needs`);
  return module.address();
}

async function instantiate(source) {
  const code = await opened(source);
  try {
    if (code instanceof WebAssembly.Module) return await WebAssembly.instantiate(code);
    const type = code.headers?.get("content-type"); // engines compile no other type while it arrives
    if (type === "application/wasm" && WebAssembly.instantiateStreaming) {
      return (await WebAssembly.instantiateStreaming(code)).instance;
    }
    return (await WebAssembly.instantiate(await contentOf(code))).instance;
  } catch (error) {
    throw new Error(`${FILE} is damaged, or this engine lacks its instructions: ${error.message}`, { cause: error });
  }
}

/** The response of an address, or what else is not an address. */
async function opened(promise) {
  let source = await promise;
  if (typeof source === "string" || source instanceof URL) {
    const url = new URL(source, import.meta.url);
    if (url.protocol === "file:" && inNode()) {
      const files = await import(/* webpackIgnore: true */ /* @vite-ignore */ "node:fs/promises");
      return files.readFile(url);
    }
    source = await fetch(url).catch((error) => {
      throw new Error(`${url}: ${error.message}`, { cause: error });
    });
  }
  if (source?.ok === false) throw new Error(`${source.url}: the server answers ${source.status}`);
  if (isBytes(source) || source instanceof WebAssembly.Module || source?.arrayBuffer) return source;
  throw new TypeError(`load takes an address, a Response or bytes, not ${classOf(source)}`);
}

const contentOf = (source) => (isBytes(source) ? source : source.arrayBuffer());
"""
_RUNS = {
    "relaxed-simd": """\
/** Module with a function of three numbers: their multiply-add by relaxed SIMD, in vectors of them. */
const multiplyAdd = (type, splat, code, lane) =>
  Uint8Array.of(
    ...[0, 97, 115, 109, 1, 0, 0, 0, 1, 8, 1, 96, 3, type, type, type, 1, type, 3, 2, 1, 0, 7, 5, 1, 1, 102, 0, 0],
    ...[10, 22, 1, 20, 0, 32, 0, 253, splat, 32, 1, 253, splat, 32, 2, 253, splat, 253, code, 2, 253, lane, 0, 11],
  );

/** Whether the engine has relaxed SIMD, and rounds multiply-adds of f32 and f64 once. */
const fuses = () =>
  [
    [multiplyAdd(125, 19, 133, 31), 2 ** -12],
    [multiplyAdd(124, 20, 135, 33), 2 ** -27],
  ].every(([code, x]) => {
    if (!WebAssembly.validate(code)) return false;
    const { f } = new WebAssembly.Instance(new WebAssembly.Module(code)).exports;
    return f(1 + x, 1 + x, -1 - 2 * x) === x * x;
  });
""",
    "simd128": """\
/** Whether the engine has SIMD128: it takes a module that makes a vector. */
const vectors = () =>
  WebAssembly.validate(
    Uint8Array.of(
      ...[0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 15, 11],
    ),
  );
""",
}
"""Definition of a function that checks whether the engine has a feature, by the feature. A module needs the first of
these that it has."""
_NAMES = {"relaxed-simd": "fuses", "simd128": "vectors", "": "() => true"}
"""Name of that function."""
_WEIGHTS = """\
/** The bytes of the file of weights, of which size and digest are checked. */
async function weightsOf(source) {
  const content = await contentOf(await opened(source));
  const bytes = ArrayBuffer.isView(content)
    ? new Uint8Array(content.buffer, content.byteOffset, content.byteLength)
    : new Uint8Array(content);
  const { file, size, sha256 } = WEIGHTS;
  if (bytes.length !== size) throw new RangeError(`${file} has ${size} bytes, and here are ${bytes.length}`);
  const subtle = await webCrypto();
  const digest = subtle && new Uint8Array(await subtle.digest("SHA-256", bytes.subarray(HEADER_BYTES)));
  const text = digest && Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  if (text && text !== sha256) throw new Error(`${file} is damaged or of another build: its SHA-256 is ${text}`);
  return bytes;
}

/** WebCrypto; pages that are not served over https have none. */
async function webCrypto() {
  if (globalThis.crypto || !inNode()) return globalThis.crypto?.subtle;
  return (await import(/* webpackIgnore: true */ /* @vite-ignore */ "node:crypto")).webcrypto.subtle;
}
"""

_LOAD = """\
/** Loads the module from its file, or from another address, response, bytes or compiled module. */
export async function load(source = chosen()) {
  return new Model(await instantiate(source));
}
"""
_LOAD_BESIDE = """\
/** Loads module and weights from their files, or from other addresses, responses or bytes. */
export async function load(source = chosen(), weights = WEIGHTS.address()) {
  return new Model(...(await Promise.all([instantiate(source), weightsOf(weights)])));
}
"""


def js_loader(plan: LibraryPlan, modules: Mapping[str, LibraryPlan], weights: str) -> str:
    """Return the text of an ES module.

    ``modules`` are the plans of the WebAssembly files in the same folder, by name, the usual one first; they differ in
    the features of engines alone. ``weights`` is the name of the file of weights, if these are beside.
    """
    _check_names(plan)
    ranks = [*_NAMES]
    needs = {name: next((f for f in _RUNS if f in module.targets[0].features), "") for name, module in modules.items()}
    ordered = sorted(modules, key=lambda name: ranks.index(needs[name]))
    statuses = json.dumps([status.name for status in STATUSES])
    return "\n".join(
        [
            f"// {plan.name}: a neural network as a WebAssembly module and its loader, made by graphc {plan.version}.",
            "//",
            *(f"//   {line}" for line in signatures(plan)),
            "",
            f"const FILE = {json.dumps(next(iter(modules)))}, PREFIX = {json.dumps(plan.name)};",
            f"const CONTEXT_BYTES = {plan.context_bytes}, STATE_BYTES = {HEADER_BYTES + plan.state_bytes};",
            f"const ALIGNMENT = {ALIGNMENT}, HEADER_BYTES = {HEADER_BYTES};",
            f"const STATUSES = {statuses};",
            "const ENTRIES = {",
            *map(_entry, plan.entries),
            "};",
            "",
            *(_RUNS[feature] for feature in _RUNS if feature in needs.values()),
            "const MODULES = [",
            *(_module(name, modules[name], _NAMES[needs[name]]) for name in ordered),
            "];",
            *([_weights(plan, weights)] if plan.is_beside else []),
            "",
            _RUNTIME,
            *([_WEIGHTS, _LOAD_BESIDE] if plan.is_beside else [_LOAD]),
        ]
    )


def file_url(name: str) -> str:
    """Return the relative address of a file in the same folder, whose name may have any letters."""
    return f"./{quote(name)}"


def _address(name: str) -> str:
    return f"address: () => new URL({json.dumps(file_url(name))}, import.meta.url)"


def _module(name: str, plan: LibraryPlan, runs: str) -> str:
    return f'  {{ file: {json.dumps(name)}, digest: "{plan.digest.hex()}", runs: {runs}, {_address(name)} }},'


def _weights(plan: LibraryPlan, name: str) -> str:
    size, digest = HEADER_BYTES + plan.weight_bytes, plan.weight_digest.hex()
    return f'const WEIGHTS = {{ file: {json.dumps(name)}, size: {size}, sha256: "{digest}", {_address(name)} }};'


def js_array(dtype: str) -> str:
    """Return the class of the typed arrays of an element type."""
    return _ARRAYS[dtype]


def _check_names(plan: LibraryPlan) -> None:
    for entry in plan.entries:
        if entry.name in _METHODS:
            raise ArgumentError(
                f"an entry cannot be called {entry.name!r}, which the loader in JavaScript defines",
                remedy="rename the entry",
            )
        shared = {a.spec.name for a in entry.inputs} & {d.name for d in entry.dims}
        if shared:
            raise ArgumentError(
                f"{entry.name!r} has an input and a dimension called {min(shared)!r}, which the loader in JavaScript "
                "takes by name",
                remedy="rename the dimension",
            )


def _key(name: str) -> str:
    """Format the name of a property."""
    return name if _IDENTIFIER.fullmatch(name) else json.dumps(name)


def _entry(entry: EntryPlan) -> str:
    dims = json.dumps([d.name for d in entry.dims])
    lines = [f"  {_key(entry.name)}: {{", f"    dims: {dims},", *_lengths(entry)]
    for title, arguments in (("inputs", entry.inputs), ("outputs", entry.outputs)):
        lines += [f"    {title}: [", *(f"      {_argument(a)}," for a in arguments), "    ],"]
    return "\n".join([*lines, "  },"])


def _argument(argument: LibraryArgument) -> str:
    spec = argument.spec
    shape = ", ".join(map(js_size, spec.shape))
    fields = f"name: {json.dumps(spec.name)}, kind: {json.dumps(spec.dtype)}, type: {js_array(spec.dtype)}"
    return f"{{ {fields}, shape: (d) => [{shape}] }}"


def _lengths(entry: EntryPlan) -> list[str]:
    """Return rules that compute a dimension from the length of an input with the other sizes of its shape.

    A rule whose other sizes are unknown yields NaN, which the loader ignores.
    """
    rules = []
    for argument in entry.inputs:
        shape = argument.spec.shape
        for position, size in enumerate(shape):
            dimension = next((d for d in entry.dims if is_size(size) and str(size) == str(d)), None)
            if dimension is not None:
                others = " * ".join(map(_factor, (*shape[:position], *shape[position + 1 :]))) or "1"
                fields = f"dim: {json.dumps(dimension.name)}, input: {json.dumps(argument.spec.name)}"
                rules.append(f"      {{ {fields}, others: (d) => {others} }},")
    return ["    lengths: [", *rules, "    ],"]


def _factor(size: Any) -> str:
    return f"({js_size(size)})" if " " in js_size(size) else js_size(size)


def js_size(size: Any) -> str:
    """Format a size as an expression of JavaScript, with the dimensions as properties of ``d``."""
    if not is_size(size):
        return str(int(size))
    terms = []
    for monomial, coefficient in size.terms:
        factors = [_atom(atom) for atom, power in monomial for _ in range(power)]
        if coefficient != 1 or not factors:
            factors.insert(0, str(coefficient))
        terms.append(" * ".join(factors))
    return " + ".join(terms)


def _atom(atom: Atom) -> str:
    if isinstance(atom, Dimension):
        return f"d.{atom.name}" if _IDENTIFIER.fullmatch(atom.name) else f"d[{json.dumps(atom.name)}]"
    if isinstance(atom, Positive):
        return f"Math.max({js_size(atom.operand)}, 0)"
    return f"Math.floor(({js_size(atom.operand)}) / ({js_size(atom.divisor)}))"


# ---- types


def js_types(plan: LibraryPlan) -> str:
    """Return the text of the loader's TypeScript declarations."""
    statuses = " | ".join(json.dumps(status.name) for status in STATUSES[1:])
    lines = [f"// Types of the loader of {plan.name}, made by graphc {plan.version}.", ""]
    for entry in plan.entries:
        lines += [*_interface(entry, "Inputs", entry.inputs), *_interface(entry, "Outputs", entry.outputs)]
    lines += ["/** The model with its states, in a memory of its own. */", "export declare class Model {"]
    for entry in plan.entries:
        lines.append(f"  {entry.name}(inputs: {_title(entry)}Inputs): {_title(entry)}Outputs;")
    return "\n".join(
        [
            *lines,
            "  /** Copies the states, for `loadState` of any build of the same model. */",
            "  saveState(): Uint8Array;",
            "  /** Restores the states that `saveState` has returned. */",
            "  loadState(state: Uint8Array): void;",
            "  /** Restores the states that the model has at first. */",
            "  resetState(): void;",
            "}",
            "",
            "/** An error of the library. */",
            "export declare class LibraryError extends Error {",
            f"  readonly code: {statuses};",
            "}",
            "",
            "/** An address, a response, or the bytes of a file. */",
            "export type Source = string | URL | Response | Blob | ArrayBuffer | ArrayBufferView;",
            "",
            "/** Loads the model from its files, or from other sources; a compiled module serves several models. */",
            "export declare function load(",
            "  source?: Source | WebAssembly.Module | Promise<Source | WebAssembly.Module>,",
            *(["  weights?: Source | Promise<Source>,"] if plan.is_beside else []),
            "): Promise<Model>;",
            "",
        ]
    )


def _title(entry: EntryPlan) -> str:
    return "".join(word[:1].upper() + word[1:] for word in entry.name.split("_")) or entry.name


def _interface(entry: EntryPlan, end: str, arguments: Sequence[LibraryArgument]) -> list[str]:
    lines = [f"export interface {_title(entry)}{end} {{"]
    for argument in arguments:
        spec = argument.spec
        lines.append(f"  /** {spec.dtype}[{comment_text(shape_text(spec))}] */")
        lines.append(f"  {_key(spec.name)}: {js_array(spec.dtype)};")
    for dimension in entry.dims if end == "Inputs" else ():
        low, high = dimension.low, dimension.high
        lines.append(f"  /** {low} to {high}; may be left out where the length of an input determines it */")
        lines.append(f"  {_key(dimension.name)}?: number;")
    return [*lines, "}", ""]
