"""The report of a memory budget."""

from graphc.compiler.memory_report import MemoryReport, ModuleMemory


def test_the_text_names_modules_bytes_and_time():
    again = (ModuleMemory("blocks.0", ("exp", "mul"), 2_000_000, 1.5e6), ModuleMemory("", ("sum",), 10, 1e3))
    report = MemoryReport(
        "step", 6_000_000, 9_000_000, 5_500_000, (ModuleMemory("blocks.1", ("matmul",), 3000),), again
    )
    text = str(report)
    assert text.startswith("step: 5.5 MB of temporary memory, 9.0 MB without a budget, 6.0 MB allowed")
    assert "blocks.0: exp, mul" in text and "(no module): sum" in text and "3.0 kB" in text
    assert report.nanoseconds == 1.501e6


def test_a_program_that_fits_computes_nothing_again():
    assert str(MemoryReport("step", 10, 5, 5)).endswith("nothing is computed again")


def test_long_tables_are_cut():
    again = tuple(ModuleMemory(f"m{i}", ("exp",), 100) for i in range(60))
    assert "in 20 more" in str(MemoryReport("step", 1, 3, 1, (), again))
