"""Generated pages: the stored ones are up to date, old ones are told, and tables are complete."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from graphc.base import config
from graphc.cli.main import COMMANDS
from graphc.interop.aten.table import TABLE as ATEN
from graphc.interop.onnx.registry import TABLE as ONNX
from graphc.interop.onnx.table import families
from graphc.interop.onnx_export.table import ENTRIES, RULES
from graphc.ir.graph.graph import CONSTANT
from graphc.ir.op import REGISTRY
from tools.pages import aten_ops, cli, onnx_domains, onnx_ops, onnx_out_ops, ops, page_command, torch_names
from tools.pages.page_command import NAMES, ROOT, main


@pytest.mark.parametrize("name", NAMES)
def test_stored_pages_are_up_to_date(name: str, request: pytest.FixtureRequest):
    if name == "torch_names":
        request.getfixturevalue("torch")
    for path, text in page_command.build(name).items():
        assert path.read_text(encoding="utf-8") == text, f"run: python -m tools.pages {name} --write"


def test_old_pages_are_told_and_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    monkeypatch.setattr(page_command, "ROOT", tmp_path)
    assert main(["options", "--check"]) == 1
    assert "run: python -m tools.pages options --write" in capsys.readouterr().err
    assert main(["options", "--write"]) == 0 and main(["options", "--check"]) == 0
    assert main(["options"]) == 0
    assert capsys.readouterr().out == config.document()
    with pytest.raises(SystemExit) as caught:
        main(["poems"])
    assert caught.value.code == 2


@pytest.mark.parametrize(("name", "absent"), [("aten_ops", "torch"), ("onnx_ops", "onnx"), ("onnx_out_ops", "onnx")])
def test_pages_need_no_other_framework(name: str, absent: str):
    code = f"import sys; sys.modules[{absent!r}] = None; from tools.pages import {name}; {name}.build_page()"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_every_line_of_the_aten_table_is_on_its_page():
    text = aten_ops.build_page()
    rows = [
        [c.strip() for c in line.split("|")[1:4]]
        for line in text.partition("## Without a rule")[0].splitlines()
        if line.startswith("| `")
    ]
    listed: set[str] = set()
    for name, overloads, _ in rows:
        plain = name.strip("`")
        names = [o.strip("` ") for o in overloads.split(",")]
        listed |= {f"{plain}.{o or 'default'}" if plain.startswith("aten.") else plain for o in names}
    assert listed == set(ATEN)
    assert "| `aten.conv2d` | `default`, `padding` | `graphc.conv2d` |" in text
    assert "| `operator.add` |  | Python |" in text and "<" not in text


def test_every_entry_of_the_onnx_table_is_on_its_page():
    assert families()
    text = onnx_ops.build_page()
    rows = [[c.strip() for c in line.split("|")[1:3]] for line in text.splitlines() if "| `" in line[:3]]
    expected = [
        (f"{domain}.{name}" if domain else name, str(e.since) if e.since > 1 else "")
        for (domain, name), entries in ONNX.items()
        for e in entries
    ]
    assert sorted((name.strip("`"), since) for name, since in rows) == sorted(expected)
    assert "| `Sigmoid` |  | `graphc.sigmoid` |" in text and "<locals>" not in text
    reshape = "`shapes.reshape`: Change the shape. A size of 0 keeps the operand's size of that dimension"
    assert f"| `Reshape` | 5 | {reshape}, unless ``allowzero``. |\n" in text


def test_shares_of_onnx_domains_count_computed_operators():
    first, second = onnx_domains.OPERATORS["com.microsoft.nchwc"].split()[:2]
    table = onnx_domains.share_table([("", "Abs"), ("", "NoSuch"), ("com.microsoft.nchwc", first)])
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    assert [row[0] for row in rows] == list(onnx_domains.OPERATORS) and rows[0][2] == "1"
    assert rows[3][2] == "1" and rows[3][3].startswith(f"`{second}`, ") and f"`{first}`" not in rows[3][3]


@pytest.mark.skipif(find_spec("onnxruntime") is None, reason="onnxruntime is not installed")
def test_operators_of_onnxruntime_are_those_that_it_registers():
    if import_module("onnxruntime").__version__ not in onnx_domains.RUNTIME:
        pytest.skip("another version of onnxruntime")
    assert onnx_domains.installed() == {d: set(text.split()) for d, text in onnx_domains.OPERATORS.items()}


def test_every_exported_function_and_op_has_a_row():
    text = onnx_out_ops.build_page()
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    heads = [line for line in rows if line.startswith(("| op ", "| function "))]
    assert len(rows) - len(heads) == len(ENTRIES) + len(RULES)
    assert "| `F.layer_norm` | LayerNormalization | 18 |" in text
    assert "| `matmul` | MatMul |" in text


def test_every_op_has_a_row_of_its_own():
    rows = [line for line in ops.build_page().splitlines() if line.startswith("| `")]
    names = [row.removeprefix("| `").partition("(")[0] for row in rows]
    own = {name for name, op in REGISTRY.items() if not op.module}
    assert sorted(names) == sorted(own - {CONSTANT.name})


def test_there_is_a_page_for_each_command_and_no_other():
    assert {path.stem for path in (ROOT / cli.FOLDER).glob("*.md")} == set(COMMANDS)
    assert "[`graphc run`](cli/run.md)" in (ROOT / cli.INDEX).read_text(encoding="utf-8")


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize("space", torch_names.SPACES)
def test_each_name_that_is_missing_has_a_reason(space: str):
    assert not [name for name in torch_names.missing(space) if not torch_names.reason(space, name)]


@pytest.mark.usefixtures("torch")
def test_reasons_are_looked_up_in_order_and_names_are_listed():
    assert torch_names.reason("torch", "sparse_coo_tensor") == "tensors are dense"
    assert torch_names.reason("torch", "no_such_name") == ""
    assert {"conv2d", "add", "Tensor"} <= set(torch_names.names_of("torch"))
    assert "add_" in torch_names.names_of("torch.Tensor") and "nn" not in torch_names.names_of("torch")
