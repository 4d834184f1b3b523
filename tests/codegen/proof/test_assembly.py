"""Assembly is read as functions, labels and instructions; directives and comments are none of them."""

from __future__ import annotations

from graphc.codegen.proof.assembly import read_assembly, split_operands

TEXT = """\t.text
\t.p2align\t4
\t.type\tk0,@function
k0:                                     # @k0
\txorl\t%eax, %eax
\t.p2align\t4, , 8
.LBB0_1:                                # =>This Inner Loop Header
\tvbroadcastss\t148(%rdi,%rax,4), %ymm7   # a comment
\tlock\t\tincq\t(%rdi)
\tjb\t.LBB0_1
\tretq
.Lfunc_end0:
\t.size\tk0, .Lfunc_end0-k0
\t.globl\tnet
\t.type\tnet,@function
net:
\tjmp\tk0@PLT                           # TAILCALL
"""


def test_functions_have_their_instructions_and_labels():
    first, second = read_assembly(TEXT)
    assert [str(line) for line in first.lines] == [
        *("xorl %eax, %eax", "vbroadcastss 148(%rdi,%rax,4), %ymm7", "lock incq (%rdi)", "jb .LBB0_1", "retq"),
    ]
    assert first.labels == {".LBB0_1": 1, ".Lfunc_end0": 5}
    assert (second.name, [line.mnemonic for line in second.lines]) == ("net", ["jmp"])
    assert first.lines[0].number == 5


def test_aligned_places_say_how_far_they_go():
    assert read_assembly(TEXT)[0].aligned == {0: (4, 16), 1: (4, 8)}


def test_numbers_of_aarch64_are_no_comments():
    text = "\t.type\tk,@function\nk:\n\tadd\tx0, x1, #16              // =16\n\tret\n"
    assert [str(line) for line in read_assembly(text, "//")[0].lines] == ["add x0, x1, #16", "ret"]


def test_commas_in_brackets_part_nothing():
    assert split_operands("{ v0.4s, v1.4s }, [x0, #16], #4") == ["{ v0.4s, v1.4s }", "[x0, #16]", "#4"]
