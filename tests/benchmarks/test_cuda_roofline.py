"""Lower bounds: bytes and operations of known kernels, and no row below the time of its bytes."""

from __future__ import annotations

import json

import pytest

from benchmarks import cuda_roofline
from benchmarks.cuda_roofline import H200, Ceilings, sheet_of
from benchmarks.workloads import WORKLOADS
from tools.cuda.programs import device_program, workload_graph


def test_a_chain_of_elementwise_operations_reads_and_writes_each_array_once():
    sheet = sheet_of(device_program("pointwise_64K", workload_graph(WORKLOADS["pointwise_64K"])))
    assert sheet.total("bytes") == 3 * 256 * 256 * 4
    assert sheet.total("launches") == 1
    assert sheet.total("seconds") == max(sheet.total("bytes") / H200.copy, H200.kernel)


def test_products_do_two_operations_for_each_multiply_add():
    sheet = sheet_of(device_program("policy_b1", workload_graph(WORKLOADS["policy_b1"])))
    multiply_adds = 17 * 64 + 64 * 64 + 64 * 6
    assert 2 * multiply_adds <= sheet.total("flops") < 3 * multiply_adds, "products, and tanh"


def test_a_product_of_the_library_counts_by_its_sizes():
    program = device_program("mlp_b64", workload_graph(WORKLOADS["mlp_b64"]))
    sheet = sheet_of(program)
    assert program.products, "a large product is the library's"
    assert sheet.total("flops") == pytest.approx(2 * 64 * (1024 * 4096 + 4096 * 4096 + 4096 * 1000), rel=0.02)


def test_rates_are_those_of_the_type():
    assert H200.rate("f32", True, True) == H200.tf32
    assert H200.rate("f32", False, True) == H200.rate("f32", True, False) == H200.f32
    assert H200.rate("bf16", True, False) == H200.bf16
    assert Ceilings(copy=1.0).copy == 1.0


def test_the_command_prints_a_row_for_each_workload(capsys: pytest.CaptureFixture[str]):
    assert cuda_roofline.main(["policy_b1", "--kernels", "2"]) == 0
    assert "| policy_b1 |" in capsys.readouterr().out
    assert cuda_roofline.main(["policy_b1", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["workloads"]
    assert row["workload"] == "policy_b1" and row["totals"]["launches"] >= 3
