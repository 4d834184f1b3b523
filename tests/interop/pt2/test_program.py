"""``.pt2`` files as modules: the numbers are PyTorch's, torch is not imported, and damaged files are typed errors."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.errors import ArgumentError, ArtifactError, DTypeError, GraphcError, ShapeError, UnsupportedError
from graphc.interop.pt2.program import read_tree
from graphc.tensors.structure import LEAF, Structure, unflatten
from tests.interop.pt2 import kept
from tests.interop.pt2.kept import FILES, NAMES, edited, field
from tools.damage import pt2_files as net
from tools.nets.run import BAD, EQUAL, REFUSED

LIMIT = 1e-5
RUN = Path(__file__).parent / "without_torch.py"


def distances(folder: Path) -> dict[str, Any]:
    done = subprocess.run([sys.executable, str(RUN), str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_files_run_without_torch_as_in_pytorch():
    found = distances(FILES)
    assert set(found) == {f"{n}{c}" for n in NAMES for c in ("", " compiled")}
    assert {n: d for n, d in found.items() if not isinstance(d, float | int) or d > LIMIT} == {}


def test_a_file_is_read_without_importing_torch_or_a_compiler():
    code = f"import sys, graphc; graphc.from_pt2({str(FILES / 'tied.pt2')!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "llvmlite", "sympy"} & set(done.stdout.split())


def test_names_are_those_of_the_model_and_tied_weights_are_one():
    model = gc.from_pt2(FILES / "tied.pt2")
    assert list(model.state_dict()) == ["tokens.weight", "norm.weight", "norm.bias", "head.weight"]
    assert [n for n, _ in model.named_parameters()] == ["tokens.weight", "norm.weight", "norm.bias"]
    assert model.head.weight is model.tokens.weight and model.tokens.weight.requires_grad
    assert [type(m).__name__ for m in model.modules()] and repr(model).startswith("Tied(")
    assert model.dims is not None and str(model.dims["tokens"][0]).startswith("size_")


def test_buffers_that_are_not_in_the_state_are_buffers_still():
    model = gc.from_pt2(FILES / "counting_decomposed.pt2")
    assert list(model.state_dict()) == ["calls"] and {n for n, _ in model.named_buffers()} == {"calls", "mean"}
    model(gc.ones(4, 3))
    assert model.calls.item() == 1


def test_views_share_the_memory_of_their_base():
    model = gc.from_pt2(FILES / "views.pt2")
    model.turned.zero_()
    assert model.part.abs().sum().item() == 0 and model.mask.shape == (4, 6)


def test_a_model_trains():
    model = gc.from_pt2(FILES / "tied.pt2")
    loss = gc.nn.functional.nll_loss(model(gc.ones(2, 5, dtype=gc.int64)).reshape(10, 11), gc.zeros(10, dtype=gc.int64))
    loss.backward()
    assert model.tokens.weight.grad is not None and model.tokens.weight.grad.abs().sum().item() > 0


def test_calls_are_checked_against_the_export():
    model = gc.from_pt2(FILES / "twice.pt2")
    model(gc.ones(5, 2), gc.ones(10, 2))
    for x, y, kind in (
        (gc.ones(5, 2), gc.ones(9, 2), ShapeError),
        (gc.ones(5, 3), gc.ones(10, 3), ShapeError),
        (gc.ones(33, 2), gc.ones(66, 2), (ArgumentError, ShapeError)),
        (gc.ones(5, 2, dtype=gc.float64), gc.ones(10, 2), DTypeError),
    ):
        with pytest.raises(kind):
            model(x, y)
    with pytest.raises(ArgumentError, match="lacks y"):
        model(gc.ones(5, 2))
    nested = gc.from_pt2(FILES / "nested.pt2")
    with pytest.raises(ArgumentError, match=r"scale was 3\.0"):
        nested({"pair": (gc.ones(3, 4), gc.ones(3, 4))}, scale=2.0)


def test_sizes_for_which_the_export_does_not_hold_are_refused():
    model = gc.from_pt2(FILES / "even.pt2")
    for call in (model, gc.compile(model, dims=model.dims)):
        assert call(gc.ones(8, 3))[7, 0].item() == 8
        with pytest.raises(ShapeError, match="% 2"):
            call(gc.ones(7, 3))


def test_examples_fit_the_call():
    for name in NAMES:
        model = gc.from_pt2(FILES / f"{name}.pt2")
        with gc.no_grad():
            model(*model.examples())


def test_a_model_is_exported_with_its_dimensions(tmp_path: Path):
    model = gc.from_pt2(FILES / "convolution.pt2")
    gc.export(model, *model.examples(), path=tmp_path / "a.gcm", dims=model.dims)
    x = np.random.default_rng(0).standard_normal((3, 2, 5, 5)).astype(np.float32)
    expected = model(gc.tensor(x)).detach().numpy()
    assert np.abs(gc.load(tmp_path / "a.gcm")(x) - expected).max() < LIMIT


# Wrong descriptions


def set_version(tree: Any) -> None:
    tree["schema_version"]["major"] = 9


def lose_parameter(tree: Any) -> None:
    tree["graph_module"]["signature"]["input_specs"][0]["parameter"]["parameter_name"] = "other"


def lose_input(tree: Any) -> None:
    del tree["graph_module"]["graph"]["inputs"][0]


def lose_output(tree: Any) -> None:
    del tree["graph_module"]["signature"]["output_specs"][0]


def lose_call(tree: Any) -> None:
    tree["graph_module"]["module_call_graph"] = []


def other_call(tree: Any) -> None:
    signature = tree["graph_module"]["module_call_graph"][0]["signature"]
    signature["in_spec"] = signature["out_spec"]


def odd_names(tree: Any) -> None:
    tree["graph_module"]["module_call_graph"][0]["signature"]["forward_arg_names"] = ["not a name"]


def odd_result(tree: Any) -> None:
    tree["graph_module"]["signature"]["output_specs"][0] = {"other": {}}


def gradient(tree: Any) -> None:
    spec = {"arg": {"name": "x"}, "parameter_name": "norm.bias"}
    tree["graph_module"]["signature"]["output_specs"][0] = {"gradient_to_parameter": spec}


def token(tree: Any) -> None:
    tree["graph_module"]["signature"]["input_specs"][0] = {"token": {"arg": {"name": "t"}}}


def newer_field(tree: Any) -> None:
    tree["graph_module"]["graph"]["nodes"][0]["stream"] = 3


def unknown_operator(tree: Any) -> None:
    tree["graph_module"]["graph"]["nodes"][0]["target"] = "torch.ops.mylib.secret.default"


def odd_guard(tree: Any) -> None:
    tree["guards_code"] = ["open(L['tokens'])"]


def complex_input(tree: Any) -> None:
    tree["graph_module"]["graph"]["tensor_values"]["tokens"]["dtype"] = 9


@pytest.mark.parametrize(
    ("edit", "kind", "text"),
    [
        (set_version, ArtifactError, r"version 9\.\d+ \(PyTorch 2\.13"),
        (lose_parameter, ArtifactError, "lacks the tensor 'other'"),
        (lose_input, ArtifactError, "nowhere before|inputs"),
        (lose_output, ArtifactError, "results"),
        (lose_call, ArtifactError, "how the model is called"),
        (other_call, ArtifactError, "not a tuple of positional"),
        (odd_names, ArtifactError, "identifiers"),
        (odd_result, ArtifactError, "not one of the results"),
        (gradient, UnsupportedError, "gradient_to_parameter"),
        (token, UnsupportedError, "token"),
        (newer_field, UnsupportedError, "'stream' is newer"),
        (unknown_operator, UnsupportedError, "mylib.secret"),
        (complex_input, UnsupportedError, "complex32"),
        (odd_guard, UnsupportedError, "not a condition on sizes"),
    ],
)
def test_wrong_descriptions_are_refused(
    tmp_path: Path, edit: Callable[[Any], None], kind: type[GraphcError], text: str
):
    path = edited(tmp_path / "a.pt2", "tied", edit)
    with pytest.raises(kind, match=text) as error:
        gc.from_pt2(path)
    assert str(path) in str(error.value)


def test_names_that_make_no_module_are_refused(tmp_path: Path):
    def rename(tree: Any) -> None:
        tree["config"]["norm.bias.inner"] = tree["config"]["norm.bias"]

    path = edited(tmp_path / "a.pt2", "tied", rename, "data/weights/model_weights_config.json")
    with pytest.raises(ArtifactError, match="do not form a module"):
        gc.from_pt2(path)


# The net of damaged files


def test_damaged_files_are_read_or_are_typed_errors():
    cases = list(itertools.islice(net.cases(0), 100))
    outcomes = {case: net.judge(case) for case in cases}
    assert {case: o for case, o in outcomes.items() if o.kind in BAD} == {}
    assert {o.kind for o in outcomes.values()} == {EQUAL, REFUSED}


def test_a_case_is_the_same_file_whatever_came_before():
    cases = [case for case in itertools.islice(net.cases(7), 300) if case.startswith("edit/")]
    first = [net.damaged(case) for case in cases]
    assert [net.damaged(case) for case in cases] == first


@pytest.mark.parametrize("kind", net.DAMAGES)
def test_each_kind_of_damage_changes_files(kind: str):
    assert net.damaged(f"{kind}/0") not in net.files()


def test_the_net_sees_other_errors(monkeypatch: pytest.MonkeyPatch):
    def fail(path: Any) -> Any:
        raise KeyError(path)

    monkeypatch.setattr(gc, "from_pt2", fail)
    assert net.judge("edit/0").kind in BAD


def test_files_are_small():
    assert NAMES and all((FILES / f"{n}.pt2").stat().st_size <= 30_000 for n in NAMES) and kept.FILES == FILES


LEAF_TREE = {"type": None, "context": None, "children_spec": []}


def tree(kind: str, context: Any, *children: Any) -> dict[str, Any]:
    return {"type": kind, "context": context, "children_spec": list(children) or [LEAF_TREE, LEAF_TREE]}


def read(value: Any, records: Any = None, protocol: int = 1) -> Structure:
    return read_tree(field(json.dumps([protocol, value])), records or {})


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        (LEAF_TREE, 1),
        (tree("builtins.tuple", "null"), (1, 2)),
        (tree("builtins.list", "null", LEAF_TREE, tree("builtins.tuple", "null")), [1, (2, 3)]),
        (tree("builtins.dict", '["b", "a"]'), {"b": 1, "a": 2}),
        (tree("builtins.dict", "[0, true]"), {0: 1, True: 2}),
        (tree("collections.OrderedDict", '["b", "a"]'), OrderedDict(b=1, a=2)),
        (tree("some.library.Output", '["loss", "logits"]'), {"loss": 1, "logits": 2}),
        (tree("some.library.Output", '[["loss", "logits"], null]'), {"loss": 1, "logits": 2}),
    ],
)
def test_values_are_nested_as_the_text_says(spec: Any, found: Any):
    leaves = json.dumps(spec).count('"type": null')
    result = unflatten(read(spec), list(range(1, leaves + 1)))
    assert result == found and type(result) is type(found)


def test_named_tuples_have_the_fields_that_the_file_names():
    found = unflatten(read(tree("collections.namedtuple", "x.Pair"), {"x.Pair": ("low", "high")}), [1, 2])
    assert (type(found).__name__, found.low, found.high) == ("Pair", 1, 2)


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        (tree("builtins.dict", '["a"]'), ArtifactError),
        (tree("builtins.dict", '["a", "a"]'), ArtifactError),
        (tree("builtins.dict", "[[1], 2]"), UnsupportedError),
        (tree("builtins.dict", "{"), ArtifactError),
        (tree("builtins.dict", None), UnsupportedError),
        (tree("collections.namedtuple", "x.Other"), UnsupportedError),
        (tree("collections.namedtuple", "x.Bad"), ArtifactError),
        (tree("some.library.Output", '{"a": 1}'), UnsupportedError),
        (tree("some.library.Output", "3"), UnsupportedError),
        ({**LEAF_TREE, "children_spec": [LEAF_TREE]}, ArtifactError),
        ({"type": 3, "context": None, "children_spec": []}, ArtifactError),
        ([], ArtifactError),
    ],
)
def test_wrong_texts_are_refused(spec: Any, kind: type[GraphcError]):
    with pytest.raises(kind):
        read(spec, {"x.Bad": ("a", "import")})


def test_other_protocols_and_deep_nesting_are_refused():
    with pytest.raises(UnsupportedError, match="newer"):
        read(LEAF_TREE, protocol=2)
    deep: Any = LEAF_TREE
    for _ in range(100):
        deep = tree("builtins.tuple", "null", deep)
    with pytest.raises(UnsupportedError, match="64 levels deep"):
        read(deep)
    assert read(LEAF_TREE) is LEAF
