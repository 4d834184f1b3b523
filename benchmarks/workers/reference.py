"""Write one workload's weights, reference numbers and ONNX file into a folder; run as its own process.

``python -m benchmarks.workers.reference WORKLOAD FOLDER [--onnx]``. The reference is eager torch, or eager graphc where
torch is not installed. The last line of stdout is JSON: ``{"framework": "torch", "onnx": null}``, or the reason for a
missing ONNX file instead of null.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import sys
import warnings
from pathlib import Path
from types import ModuleType

from benchmarks.harness import framework as fw
from benchmarks.workloads import WORKLOADS, Workload


def export_onnx(torch: ModuleType, workload: Workload, folder: Path) -> str | None:
    """Write the model as ONNX; return None, or the first line of the reason why it can not be written."""
    model = fw.build_model(torch, workload, folder)
    inputs = tuple(fw.convert_inputs(torch, workload))
    try:
        torch.onnx.export(model, inputs, folder / fw.ONNX, dynamo=True, external_data=False, verbose=False)
    except Exception as error:  # the exporter's many layers can raise anything
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return None


def main(argv: list[str] | None = None) -> int:
    """Write the files; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--onnx", action="store_true")
    options = parser.parse_args(argv)
    name = "torch" if importlib.util.find_spec("torch") else "graphc"
    framework = importlib.import_module(name)
    workload = WORKLOADS[options.workload]
    fw.write_reference(framework, workload, options.folder)
    missing = "not asked for"
    if options.onnx:
        warnings.simplefilter("ignore")
        missing = export_onnx(framework, workload, options.folder) if name == "torch" else "torch is not installed"
    print(json.dumps({"framework": name, "onnx": missing}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
