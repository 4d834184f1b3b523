"""Rust crate of a library: a folder with a static archive, which depends on no other crate."""

from __future__ import annotations

from string import Template

from graphc.c_library.bindings import (
    binding_entry,
    camel_case,
    helper_functions,
    largest_fixed_arena,
    method_names,
    signatures,
)
from graphc.c_library.plan import HEADER_BYTES, STATUSES, LibraryPlan
from graphc.c_library.rust_entries import RUST_TYPES, rust_methods, rust_records
from graphc.files.container import ALIGNMENT

_CARGO = Template("""\
[package]
name = "$crate"
version = "0.1.0"
edition = "2021"
rust-version = "1.64"
description = "A neural network, written by graphc $version"
links = "$name"
build = "build.rs"
""")
_BUILD = Template("""\
//! Links the static archive of this folder.

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    println!("cargo:rustc-link-search=native={folder}");
    println!("cargo:rustc-link-lib=static=$name");
    println!("cargo:rerun-if-changed=lib$name.a");
}
""")
_LIB = Template("""\
//! $name: a neural network as a Rust crate, written by graphc $version for $target.
//!
//! ```text
$signatures
//! ```
//!
//! ```no_run
//! let mut model = $crate::Model::$make.unwrap();
//! let state = model.save_state();
//! model.load_state(&state).unwrap();
//! ```
//!
//! A model owns its states and the memory of its calls. Threads may call at the same time, each with a model of its
//! own. Arrays are slices in C order. A bool is a byte that is 0 or 1; f16 and bf16 are their bits.
#![allow(non_snake_case, unused_parens)]
#![allow(clippy::all)]

use std::ffi::CStr;
use std::fmt;

mod c {
    use std::ffi::{c_char, c_int, c_void};

    extern "C" {
$declarations    }
}

/// Version of graphc that wrote this crate.
pub const VERSION: &str = "$version";
/// Digest of code and weights.
pub const DIGEST: &str = "$digest";
/// Bytes of a saved state.
pub const STATE_SIZE: usize = $state_size;

/// Reason why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
$errors    /// The library is of another build than this file.
    Build,
    /// An argument has another number of elements than its type or shape says.
    Length {
        argument: &'static str,
        expected: usize,
        actual: usize,
    },
    /// An argument does not have the shape that the model takes.
    Shape { argument: &'static str },
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
$messages            Error::Build => formatter.write_str("the library is of another build than this crate"),
            Error::Length { argument, expected, actual } => {
                write!(formatter, "{argument} has {actual} elements, not {expected}")
            }
            Error::Shape { argument } => write!(formatter, "{argument} does not have the shape that the model takes"),
        }
    }
}

impl std::error::Error for Error {}

fn check(code: i32) -> Result<(), Error> {
    match code {
        0 => Ok(()),
$codes        _ => Err(Error::Build),
    }
}

fn check_length(argument: &'static str, actual: usize, expected: usize) -> Result<(), Error> {
    if actual == expected {
        return Ok(());
    }
    Err(Error::Length { argument, expected, actual })
}

fn product(shape: &[usize]) -> usize {
    shape.iter().fold(1, |count: usize, &size| count.saturating_mul(size))
}
$functions
/// Elements in C order with their shape.
#[derive(Clone, Copy, Debug)]
pub struct View<'a, T, const RANK: usize> {
    pub data: &'a [T],
    pub shape: [usize; RANK],
}

impl<'a, T, const RANK: usize> View<'a, T, RANK> {
    /// Join elements and a shape; calls check that they fit.
    pub fn new(data: &'a [T], shape: [usize; RANK]) -> Self {
        View { data, shape }
    }
}

/// Result of a call: elements in C order with their shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor<T, const RANK: usize> {
    pub data: Vec<T>,
    pub shape: [usize; RANK],
}

impl<T: Clone + Default, const RANK: usize> Tensor<T, RANK> {
    /// Allocate zeros.
    pub fn zeros(shape: [usize; RANK]) -> Result<Self, Error> {
        let (mut data, count) = (Vec::new(), product(&shape));
        data.try_reserve_exact(count).map_err(|_| Error::Memory)?;
        data.resize(count, T::default());
        Ok(Tensor { data, shape })
    }

    /// Return its elements as an input of another call.
    pub fn view(&self) -> View<'_, T, RANK> {
        View::new(&self.data, self.shape)
    }
}

#[allow(dead_code)]
#[derive(Clone, Copy)]
#[repr(C, align($alignment))]
struct Block([u8; $alignment]);

/// Grow memory to at least so many bytes.
fn reserve(memory: &mut Vec<Block>, size: usize) -> Result<(), Error> {
    let count = size / $alignment + usize::from(size % $alignment != 0);
    if memory.len() < count {
        memory.try_reserve_exact(count - memory.len()).map_err(|_| Error::Memory)?;
        memory.resize(count, Block([0; $alignment]));
    }
    Ok(())
}
$weights
/// The network with its states and the memory of its calls.
pub struct Model {
    context: Vec<Block>,
    arena: Vec<Block>,
$field}

impl fmt::Debug for Model {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Model").field("digest", &DIGEST).finish_non_exhaustive()
    }
}

impl Model {
$constructors    /// Return the states.
    pub fn save_state(&self) -> Vec<u8> {
        let mut buffer = vec![0; STATE_SIZE];
        let (net, data) = (self.context.as_ptr().cast(), buffer.as_mut_ptr().cast());
        // SAFETY: the context is valid, and the buffer has the size that is passed.
        let code = unsafe { c::${name}_save_state(net, data, STATE_SIZE) };
        debug_assert_eq!(code, 0);
        buffer
    }

    /// Set the states to saved ones, also of another build of the same model.
    pub fn load_state(&mut self, state: &[u8]) -> Result<(), Error> {
        let net = self.context.as_mut_ptr().cast();
        // SAFETY: the context is valid, and the library checks the size of the state.
        check(unsafe { c::${name}_load_state(net, state.as_ptr().cast(), state.len()) })
    }

    /// Set the states to their initial values.
    pub fn reset_state(&mut self) -> Result<(), Error> {
        // SAFETY: the context is valid.
        check(unsafe { c::${name}_reset_state(self.context.as_mut_ptr().cast()) })
    }
$threads$entries}
$records""")
_START = Template("""\
        // SAFETY: the library returns a text that lives as long as the program.
        let digest = unsafe { CStr::from_ptr(c::${name}_digest()) };
        if digest.to_bytes() != DIGEST.as_bytes() {
            return Err(Error::Build);
        }
        let (mut context, mut arena) = (Vec::new(), Vec::new());
        reserve(&mut context, $context)?;
        reserve(&mut arena, $arena)?;
""")
_INSIDE = Template("""\
    /// Create a model with its initial states.
    pub fn new() -> Result<Self, Error> {
$start        // SAFETY: the context has the size that is passed.
        check(unsafe { c::${name}_init(context.as_mut_ptr().cast(), $context) })?;
        Ok(Model { context, arena })
    }

""")
_BESIDE = Template("""\
    /// Create a model with its initial states, and map its file of weights into memory.
    pub fn open(path: impl AsRef<std::path::Path>) -> Result<Self, Error> {
        use std::os::unix::ffi::OsStrExt;
        let path = std::ffi::CString::new(path.as_ref().as_os_str().as_bytes()).map_err(|_| Error::File)?;
        let (mut data, mut size) = (std::ptr::null(), 0);
        // SAFETY: the path ends with a zero, and the function writes an address and a size.
        check(unsafe { c::${name}_open_weights(path.as_ptr(), &mut data, &mut size) })?;
        Self::start(Weights::Mapped { data, size })
    }

    /// Create a model with its initial states from the contents of its file of weights, which are copied.
    pub fn from_bytes(contents: &[u8]) -> Result<Self, Error> {
        let mut blocks = Vec::new();
        reserve(&mut blocks, contents.len())?;
        for (block, bytes) in blocks.iter_mut().zip(contents.chunks($alignment)) {
            block.0[..bytes.len()].copy_from_slice(bytes);
        }
        Self::start(Weights::Owned { blocks, size: contents.len() })
    }

    fn start(weights: Weights) -> Result<Self, Error> {
$start        let (data, size) = match &weights {
            Weights::Mapped { data, size } => (*data, *size),
            Weights::Owned { blocks, size } => (blocks.as_ptr().cast(), *size),
        };
        // SAFETY: the context has the size that is passed; the model owns the weights as long as it uses the context.
        check(unsafe { c::${name}_init(context.as_mut_ptr().cast(), $context, data, size) })?;
        Ok(Model { context, arena, _weights: weights })
    }

""")
_WEIGHTS = Template("""
/// File of weights in memory.
enum Weights {
    Mapped { data: *const std::ffi::c_void, size: usize },
    Owned { blocks: Vec<Block>, size: usize },
}

// SAFETY: nothing writes to the memory after its creation.
unsafe impl Send for Weights {}
// SAFETY: nothing writes to the memory after its creation.
unsafe impl Sync for Weights {}

impl Drop for Weights {
    fn drop(&mut self) {
        if let Weights::Mapped { data, size } = self {
            // SAFETY: the library mapped this memory, and no model uses it any more.
            unsafe { c::${name}_close_weights(*data, *size) };
        }
    }
}
""")
_THREADS = Template("""
    /// Share calls among so many threads; 1 at first.
    pub fn set_threads(&mut self, count: usize) -> Result<(), Error> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        // SAFETY: the context is valid.
        check(unsafe { c::${name}_set_threads(self.context.as_mut_ptr().cast(), count) })
    }

    /// Forget the threads of the parent process.
    ///
    /// # Safety
    ///
    /// Call it once in the child of a fork, before other calls. No call may run at the same time.
    pub unsafe fn forget_threads() {
        // SAFETY: the caller promises that no call runs.
        unsafe { c::${name}_forget_threads() };
    }
""")
_FUNCTIONS = {
    "floor_of": """
fn floor_of(a: i64, b: i64) -> i64 {
    a / b - i64::from(a % b != 0 && (a < 0) != (b < 0))
}
""",
    "positive_part": """
fn positive_part(a: i64) -> i64 {
    a.max(0)
}
""",
}
_WORDS = """\
    abstract as async await become box break const continue crate do dyn else enum extern false final fn for gen if impl
    in let loop macro match mod move mut override priv pub ref return self static struct super trait true try type
    typeof unsafe unsized use virtual where while yield Ok Err Some None std core alloc test c"""
_KEYWORDS = frozenset(_WORDS.lower().split())
_METHODS = (
    "new",
    "open",
    "from_bytes",
    "start",
    "save_state",
    "load_state",
    "reset_state",
    "set_threads",
    "main",
    "fmt",
    *_FUNCTIONS,
)
_LOCALS = """\
    sizes need net outputs model check check_length product reserve floor_of positive_part version digest state_size"""


def rust_crate(plan: LibraryPlan) -> dict[str, str]:
    """Return the texts of the crate by path; its archive ``libNAME.a`` lies beside ``Cargo.toml``."""
    methods = method_names(plan, (*_KEYWORDS, *_METHODS), ("_sizes", "_into"))
    entries = [
        (binding_entry(e, (*_KEYWORDS, *_LOCALS.split())), m) for e, m in zip(plan.entries, methods, strict=True)
    ]
    crate = crate_name(plan.name)
    names = {
        "name": plan.name,
        "crate": crate,
        "version": plan.version,
        "target": plan.target_name,
        "digest": plan.digest.hex(),
        "alignment": str(ALIGNMENT),
        "state_size": str(HEADER_BYTES + plan.state_bytes),
        "context": str(plan.context_bytes),
        "arena": str(largest_fixed_arena(plan)),
        "make": f'open("{plan.name}.weights")' if plan.is_beside else "new()",
    }
    names["start"] = _START.substitute(names)
    methods_text = "".join(rust_methods(plan, crate, entry, m, names["make"]) for entry, m in entries)
    text = _LIB.substitute(
        names,
        signatures="\n".join(f"//! {line}" for line in signatures(plan)),
        declarations="".join(f"        {line}\n" for line in _declarations(plan)),
        errors="".join(f"    /// {s.text}\n    {_variant(s.name)},\n" for s in STATUSES[1:]),
        messages="".join(
            f'            Error::{_variant(s.name)} => formatter.write_str("{s.text}"),\n' for s in STATUSES[1:]
        ),
        codes="".join(f"        {n} => Err(Error::{_variant(s.name)}),\n" for n, s in enumerate(STATUSES) if n),
        functions=helper_functions(methods_text, _FUNCTIONS),
        weights=_WEIGHTS.substitute(names) if plan.is_beside else "",
        field="    _weights: Weights,\n" if plan.is_beside else "",
        constructors=(_BESIDE if plan.is_beside else _INSIDE).substitute(names),
        threads=_THREADS.substitute(names) if plan.threads else "",
        entries=methods_text,
        records="".join(rust_records(entry, m) for entry, m in entries),
    )
    return {"Cargo.toml": _CARGO.substitute(names), "build.rs": _BUILD.substitute(names), "src/lib.rs": text}


def crate_name(name: str) -> str:
    """Return the name of the crate, which must not be a keyword or a crate of Rust itself."""
    return f"{name}_" if name.lower() in _KEYWORDS else name


def _variant(status: str) -> str:
    return camel_case(status.removeprefix("ERROR_").lower())


def _declarations(plan: LibraryPlan) -> list[str]:
    """Declare the functions of the library."""
    n = plan.name
    state = "buffer: *{} c_void, size: usize) -> c_int;"
    init = ", weights: *const c_void, weights_size: usize" if plan.is_beside else ""
    lines = [
        f"pub fn {n}_digest() -> *const c_char;",
        f"pub fn {n}_init(net: *mut c_void, size: usize{init}) -> c_int;",
        f"pub fn {n}_save_state(net: *const c_void, {state.format('mut')}",
        f"pub fn {n}_load_state(net: *mut c_void, {state.format('const')}",
        f"pub fn {n}_reset_state(net: *mut c_void) -> c_int;",
    ]
    if plan.is_beside:
        lines.append(
            f"pub fn {n}_open_weights(path: *const c_char, data: *mut *const c_void, size: *mut usize) -> c_int;"
        )
        lines.append(f"pub fn {n}_close_weights(data: *const c_void, size: usize) -> c_int;")
    if plan.threads:
        lines.append(f"pub fn {n}_set_threads(net: *mut c_void, count: i64) -> c_int;")
        lines.append(f"pub fn {n}_forget_threads() -> c_int;")
    for entry in plan.entries:
        dims = ["_: i64"] * len(entry.dims)
        arrays = [f"_: *const {RUST_TYPES[a.ctype]}" for a in entry.inputs] + [
            f"_: *mut {RUST_TYPES[a.ctype]}" for a in entry.outputs
        ]
        if dims:
            lines.append(f"pub fn {n}_{entry.name}_arena_size({', '.join(dims)}) -> usize;")
        parameters = ", ".join(["net: *mut c_void", *dims, *arrays, "arena: *mut c_void", "arena_size: usize"])
        lines.append(f"pub fn {n}_{entry.name}({parameters}) -> c_int;")
    return lines
