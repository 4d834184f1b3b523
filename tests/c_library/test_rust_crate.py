"""Rust crate of a library: built without warnings by a crate that depends on it, and called."""

from __future__ import annotations

import os
from pathlib import Path

from graphc.c_library.build import Library
from graphc.c_library.rust_crate import crate_name
from tests.c_library.binding_cases import all_cases, assert_same_bits, awkward_library, case_library
from tests.c_library.conftest import run_tool, tool_or_skip

_PRELUDE = """
#![allow(dead_code)]
use std::fs;
use CRATE::*;

trait Element: Sized { fn of(bytes: &[u8]) -> Self; fn bytes(&self) -> Vec<u8>; }
macro_rules! element { ($($t:ty),*) => { $(impl Element for $t {
    fn of(bytes: &[u8]) -> Self { <$t>::from_ne_bytes(bytes.try_into().unwrap()) }
    fn bytes(&self) -> Vec<u8> { self.to_ne_bytes().to_vec() }
})* } }
element!(f64, f32, i64, i32, i16, i8, u32, u16, u8);

fn read<T: Element>(number: usize) -> Vec<T> {
    let bytes = fs::read(format!("in{number}")).unwrap();
    bytes.chunks(std::mem::size_of::<T>()).map(T::of).collect()
}

fn write<T: Element>(number: usize, elements: &[T]) {
    let bytes: Vec<u8> = elements.iter().flat_map(|e| e.bytes()).collect();
    fs::write(format!("out{number}"), bytes).unwrap();
}

fn is_send<T: Send + Sync>(_: &T) {}

fn main() -> Result<(), Box<dyn std::error::Error>> {
BODY
    Ok(())
}
"""
_BODIES = {
    "policy": """
    let mut model = Model::new()?;
    is_send(&model);
    let input = read::<f32>(0);
    let outputs = model.run(&input)?;
    assert_eq!(outputs.output.shape, [1, 6]);
    write(0, &outputs.output.data);
    let error = model.run(&input[1..]).unwrap_err();
    assert_eq!(error, Error::Length { argument: "input", expected: 17, actual: 16 });
    assert_eq!(error.to_string(), "input has 16 elements, not 17");
    let mut again = [0.0; 6];
    let moved = std::thread::spawn(move || { model.run_into(&input, &mut again).unwrap(); again });
    assert_eq!(moved.join().unwrap().to_vec(), outputs.output.data);""",
    "sizes": """
    let mut model = Model::new()?;
    let x = read::<f32>(0);
    let outputs = model.run(View::new(&x, [2, 12, 8]))?;
    assert_eq!(outputs.output_1.shape, [1, 2, 16]);
    write(0, &outputs.output_0.data);
    write(1, &outputs.output_1.data);
    let sizes = Model::run_sizes([2, 12, 8])?;
    assert_eq!((sizes.batch, sizes.time, sizes.output_0), (2, 12, [2, 3]));
    assert!(matches!(model.run(View::new(&x, [2, 11, 8])), Err(Error::Length { argument: "x", .. })));
    assert_eq!(model.run(View::new(&x, [2, 8, 12])), Err(Error::Shape { argument: "x" }));
    assert_eq!(model.run(View::new(&x, [65, 1, 8])), Err(Error::Size));
    assert_eq!(model.run(View::new(&x, [usize::MAX, 1, 8])), Err(Error::Size));
    let (mut scores, mut h) = (vec![0.0; 5], vec![0.0; 32]);
    let error = model.run_into(View::new(&x, [2, 12, 8]), &mut scores, &mut h).unwrap_err();
    assert_eq!(error, Error::Length { argument: "output_0", expected: 6, actual: 5 });""",
    "decoder": """
    let mut model = Model::open("decoder.weights")?;
    is_send(&model);
    let token = read::<i64>(0);
    let first = model.run(&token)?;
    write(0, &first.output.data);
    let state = model.save_state();
    assert_eq!(state.len(), STATE_SIZE);
    let other = [token[0] ^ 1];
    let second = model.run(&other)?;
    assert_ne!(first, second);
    assert_ne!(model.run(&other)?, second);
    model.load_state(&state)?;
    assert_eq!(model.run(&other)?, second);
    model.reset_state()?;
    assert_eq!(model.run(&token)?, first);
    assert_eq!(model.run(&[40]), Err(Error::Index));
    assert_eq!(model.load_state(&state[1..]), Err(Error::Memory));
    assert_eq!(model.load_state(&vec![0; STATE_SIZE]), Err(Error::State));
    let contents = fs::read("decoder.weights")?;
    let mut copied = Model::from_bytes(&contents)?;
    drop(contents);
    assert_eq!(copied.run(&token)?, first);
    assert_eq!(Model::from_bytes(&[0; 128]).unwrap_err(), Error::Weights);
    assert_eq!(Model::open("missing.weights").unwrap_err(), Error::File);""",
    "wide": """
    let mut model = Model::new()?;
    model.set_threads(2)?;
    assert_eq!(model.set_threads(0), Err(Error::Threads));
    assert_eq!(model.set_threads(usize::MAX), Err(Error::Threads));
    write(0, &model.run(&read::<f32>(0))?.output.data);
    drop(model);
    unsafe { Model::forget_threads() };""",
    "types": """
    let mut model = Model::new()?;
    let o = model.run(&read(0), &read(1), &read(2), &read(3), &read(4), &read(5), &read(6), &read(7), &read(8))?;
    write(0, &o.output_0.data);
    write(1, &o.output_1.data);
    write(2, &o.output_2.data);
    write(3, &o.output_3.data);
    write(4, &o.output_4.data);
    write(5, &o.output_5.data);
    write(6, &o.output_6.data);
    write(7, &o.output_7.data);
    write(8, &o.output_8.data);""",
    "pooled": """
    let mut model = Model::new()?;
    let (x, scale) = (read::<f32>(0), read::<f32>(1));
    let outputs = model.run(View::new(&x, [2, 3, 9]), &scale)?;
    assert_eq!(outputs.output_0.shape, [2, 3, 4]);
    write(0, &outputs.output_0.data);
    write(1, &outputs.output_1.data);
    assert_eq!(outputs.output_0.view().shape, [2, 3, 4]);""",
    "repeats": """
    let mut model = Model::new()?;
    let x = read::<f32>(0);
    write(0, &model.run(5, &x)?.output.data);
    assert_eq!(model.run(101, &x), Err(Error::Size));
    assert_eq!(model.run_into(6, &x, &mut [0.0; 20]).unwrap_err().to_string(), "output has 20 elements, not 24");""",
    "learner": """
    let mut model = Model::new()?;
    let (x, y) = (read::<f32>(0), read::<i64>(1));
    let before = model.infer(&x)?;
    write(0, &before.output.data);
    let first = model.train_step(&x, &y)?.output.data[0];
    let mut last = first;
    for _ in 0..50 {
        last = model.train_step(&x, &y)?.output.data[0];
    }
    assert!(last < first);
    assert_ne!(model.infer(&x)?, before);""",
}


def cargo(folder: Path, *arguments: str) -> str:
    """Run cargo without a network and with warnings as errors."""
    environment = {**os.environ, "RUSTFLAGS": "-D warnings", "CARGO_NET_OFFLINE": "true", "CARGO_BUILD_JOBS": "1"}
    environment["CARGO_TARGET_DIR"] = str(folder / "target")
    return run_tool(tool_or_skip("cargo"), *arguments, cwd=folder, env=environment)


def program(name: str, library: Library, text: str | None = None) -> Path:
    """Build a crate that depends on the library's crate, and return its program."""
    folder, crate = library.files["rs"].parent / "user", crate_name(name)
    (folder / "src").mkdir(parents=True)
    manifest = '[package]\nname = "user"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\n'
    (folder / "Cargo.toml").write_text(f'{manifest}{crate} = {{ path = "../{name}-rs" }}\n')
    source = _PRELUDE.replace("CRATE", crate).replace("BODY", _BODIES[name]) if text is None else text
    (folder / "src" / "main.rs").write_text(source)
    cargo(folder, "build", "--quiet")
    return folder / "target" / "debug" / "user"


@all_cases
def test_calls_give_the_bits_of_the_loader(name: str, tmp_path: Path):
    tool_or_skip("cargo")
    library = case_library(name, ("rs",), tmp_path)
    binary = program(name, library)
    assert_same_bits(name, library, tmp_path, lambda: run_tool(binary, cwd=tmp_path))


def test_examples_of_its_documentation_compile(tmp_path: Path):
    tool_or_skip("rustdoc")
    for name in ("sizes", "decoder"):
        folder = case_library(name, ("rs",), tmp_path).files["rs"]
        assert "2 passed; 0 failed" in cargo(folder, "test", "--doc")


def test_a_library_of_another_build_is_refused(tmp_path: Path):
    tool_or_skip("cargo")
    library = case_library("policy", ("rs",), tmp_path)
    source = library.files["rs"] / "src" / "lib.rs"
    source.write_text(source.read_text().replace(f'"{library.digest}"', f'"{"0" * 64}"'))
    text = "fn main() { assert_eq!(policy::Model::new().unwrap_err(), policy::Error::Build); }"
    run_tool(program("policy", library, text))


def test_names_of_the_language_are_no_obstacle(tmp_path: Path):
    tool_or_skip("cargo")
    cargo(awkward_library("match", ("rs",), tmp_path).files["rs"], "build", "--quiet")


def test_the_folder_holds_all_that_cargo_needs(tmp_path: Path):
    folder = case_library("policy", ("rs",), tmp_path).files["rs"]
    assert folder.name == "policy-rs"
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert files == ["Cargo.toml", "build.rs", "libpolicy.a", "src/lib.rs"]
    text = (folder / "src" / "lib.rs").read_text()
    assert "/// - input input: f32[1,17]\n    /// - output output: f32[1,6]" in text


def test_names_of_crates_are_no_keywords():
    assert [crate_name(n) for n in ("policy", "match", "std", "Type")] == ["policy", "match_", "std_", "Type_"]
