"""Rust methods of entries: what callers read and what is checked."""

from __future__ import annotations

from pathlib import Path

from graphc.c_library.bindings import binding_entry, method_names
from graphc.c_library.rust_entries import rust_methods, rust_records
from tests.c_library.test_bindings import plan_of


def text_of(name: str, folder: Path) -> str:
    plan = plan_of(name, folder)
    entry, names = binding_entry(plan.entries[0], ()), method_names(plan, ())[0]
    return rust_methods(plan, name, entry, names, "new()") + rust_records(entry, names)


def test_inputs_of_known_sizes_are_slices_and_allocate_nothing(tmp_path: Path):
    text = text_of("policy", tmp_path)
    assert "pub fn run_into(&mut self, input: &[f32], output: &mut [f32]) -> Result<(), Error>" in text
    assert 'check_length("input", input.len(), 17)?;' in text and "This allocates nothing." in text
    assert "RunSizes" not in text and "reserve(" not in text


def test_inputs_with_named_dimensions_are_views(tmp_path: Path):
    text = text_of("sizes", tmp_path)
    assert "pub fn run(&mut self, x: View<'_, f32, 3>) -> Result<RunOutputs, Error>" in text
    assert "pub fn run_sizes(x: [usize; 3]) -> Result<RunSizes, Error>" in text
    assert "    pub batch: usize,\n    pub time: usize,\n" in text and "reserve(&mut self.arena, need)?;" in text
    assert "sizes::View::new(&x, [" in text


def test_each_type_of_elements_has_a_type_of_rust(tmp_path: Path):
    text = text_of("types", tmp_path)
    for kind in ("f64", "u16", "i8", "i16", "i32", "u32", "i64", "u8"):
        assert f": &[{kind}]" in text and f": &mut [{kind}]" in text
