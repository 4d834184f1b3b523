"""DLPack capsules: elements shared with PyTorch, also of types that numpy lacks, strides, lifetimes, refusals."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import graphc
from graphc.base import dlpack
from graphc.errors import ArgumentError, DTypeError, GradientError

SHARED = ["bfloat16", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"]
SHARED += ["uint64", "bool", "complex64", "complex128"]
CREATE = {
    "from_dlpack": graphc.from_dlpack,
    "tensor": graphc.tensor,
    "as_tensor": graphc.as_tensor,
    "asarray": graphc.asarray,
    "in a list": lambda y: graphc.tensor([y])[0],
    "compiled": lambda y: graphc.compile(lambda x: x.clone())(y),
    "written": lambda y: graphc.zeros(2, dtype=graphc.from_dlpack(y).dtype).copy_(graphc.tensor(y)),
}


@pytest.mark.parametrize("way", CREATE)
@pytest.mark.parametrize("name", SHARED)
def test_tensors_of_pytorch_keep_their_element_type(torch, name, way):
    theirs = torch.tensor([1.0, 2.5]).to(getattr(torch, name))
    ours = CREATE[way](theirs)
    assert ours.dtype is getattr(graphc, "bool_" if name == "bool" else name) and ours.tolist() == theirs.tolist()
    back = torch.from_dlpack(ours)
    assert back.dtype is theirs.dtype and torch.equal(back, theirs)


@pytest.mark.parametrize("name", ["bfloat16", "float64"])
def test_memory_is_shared_both_ways(torch, name):
    theirs = torch.arange(12.0).to(getattr(torch, name)).reshape(3, 4)
    for view in (theirs, theirs.T, theirs[1:, ::2], theirs[0, 0]):
        for create in (graphc.from_dlpack, graphc.as_tensor):
            ours = create(view)
            ours.add_(1)
            assert ours.tolist() == view.tolist()
            torch.from_dlpack(ours).mul_(2)
            assert ours.tolist() == view.tolist()
    assert graphc.tensor(theirs).add_(1).tolist() != theirs.tolist()


def test_tensors_without_elements(torch):
    ours = graphc.from_dlpack(torch.zeros(0, 3, dtype=torch.bfloat16))
    assert ours.shape == (0, 3) and ours.dtype is graphc.bfloat16
    assert torch.from_dlpack(ours).shape == (0, 3)


def test_memory_of_bf16_lives_as_long_as_it_is_shared(torch):
    theirs = torch.ones(3, dtype=torch.bfloat16)
    ours = graphc.from_dlpack(theirs)
    del theirs
    gc.collect()
    assert ours.tolist() == [1, 1, 1]
    exported = torch.from_dlpack(ours)
    del ours
    gc.collect()
    assert dlpack._exported and exported.tolist() == [1, 1, 1]
    del exported
    gc.collect()
    assert not dlpack._exported


@pytest.mark.parametrize("name", ["complex32", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_other_element_types_are_refused(torch, name):
    theirs = torch.ones(2).to(getattr(torch, name))
    for way in ("from_dlpack", "tensor", "compiled"):
        with pytest.raises(DTypeError, match=r"from_dlpack: Unsupported dtype|are not supported"):
            CREATE[way](theirs)


@pytest.mark.parametrize("name", ["bfloat16", "float32"])
def test_tensors_with_gradients_are_refused(torch, name):
    with pytest.raises(DTypeError, match="detach a tensor with gradients"):
        graphc.from_dlpack(torch.ones(2, dtype=getattr(torch, name), requires_grad=True))
    with pytest.raises(GradientError, match="would lose its history"):
        graphc.ones(2, dtype=name).requires_grad_().__dlpack__()


def test_requests_of_consumers():
    tensor = graphc.ones(2, dtype=graphc.bfloat16)
    memory = dlpack.imported(tensor)
    assert (memory.shape, memory.strides, memory.device) == ((2,), (2,), (dlpack.CPU, 0))
    copied = dlpack.host_array(dlpack.HostArray(dlpack.host_array(tensor)))
    assert np.shares_memory(copied, tensor._data)
    with pytest.raises(BufferError, match="in host memory"):
        tensor.__dlpack__(dl_device=(dlpack.CUDA, 0))
    with pytest.raises(BufferError, match="DLPack cannot describe"):
        dlpack.exported(memory._replace(strides=(3,)), (1, 0))
    with pytest.raises(BufferError, match="read-only"):
        dlpack.exported(memory._replace(writeable=False), None)
    read_only = np.ones(2, np.uint16).view(graphc.bfloat16.numpy)
    read_only.flags.writeable = False
    assert not dlpack.host_array(dlpack.HostArray(read_only)).flags.writeable
    with pytest.raises(ArgumentError, match="has no __dlpack__"):
        dlpack.imported([1, 2])


def test_a_capsule_is_consumed_once():
    class Source:
        """Hands out the same capsule each time, as exporters before DLPack 1.0 call for."""

        capsule = graphc.ones(2, dtype=graphc.bfloat16).__dlpack__()

        def __dlpack__(self):
            return self.capsule

    assert dlpack.host_array(Source()).shape == (2,)
    with pytest.raises(ArgumentError, match="consumed before"):
        dlpack.host_array(Source())
