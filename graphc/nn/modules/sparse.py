"""Embedding: a table of vectors looked up by index."""

from __future__ import annotations

from typing import Any

from graphc.base.errors import ShapeError
from graphc.nn import functional as F
from graphc.nn import init
from graphc.nn.functional.sparse import padding_index
from graphc.nn.module import Module
from graphc.nn.parameter import Parameter, empty_parameter
from graphc.tape.grad_mode import no_grad
from graphc.tensors.tensor import Tensor

__all__ = ["Embedding", "EmbeddingBag"]


def _reset(table: Any) -> None:
    init.normal_(table.weight)
    if table.padding_idx is not None:
        with no_grad():
            table.weight[table.padding_idx].fill_(0)


class Embedding(Module):
    """Table of vectors ``weight`` [num_embeddings, embedding_dim], read at integer indices; row ``padding_idx`` stays
    0.

    Example:
        >>> import graphc as gc
        >>> gc.nn.Embedding(10, 4)(gc.tensor([[1, 2, 3]])).shape
        (1, 3, 4)
    """

    weight: Parameter

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = None if padding_idx is None else padding_index(padding_idx, num_embeddings)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if _weight is None:
            self.weight = empty_parameter((num_embeddings, embedding_dim), dtype, device)
            self.reset_parameters()
        else:
            if tuple(_weight.shape) != (num_embeddings, embedding_dim):
                raise ShapeError(f"Embedding: weight {list(_weight.shape)} is not {[num_embeddings, embedding_dim]}")
            self.weight = Parameter(_weight)
        self.weight.requires_grad_(not _freeze)

    def reset_parameters(self) -> None:
        """Draw normal values, and set row ``padding_idx`` to 0."""
        _reset(self)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """Create a layer with the given table [count, size], not trained when ``freeze``."""
        if len(embeddings.shape) != 2:
            raise ShapeError(f"Embedding.from_pretrained: expected a matrix, got shape {list(embeddings.shape)}")
        count, size = embeddings.shape
        options = (padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
        return cls(count, size, *options, _weight=embeddings, _freeze=freeze)

    def forward(self, input: Tensor) -> Tensor:
        """Map integers of any shape to [*shape, embedding_dim]."""
        options = (self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)
        return F.embedding(input, self.weight, *options)

    def extra_repr(self) -> str:
        options = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.padding_idx is not None:
            options.append(f"padding_idx={self.padding_idx}")
        if self.max_norm is not None:
            options.append(f"max_norm={self.max_norm}")
        return ", ".join(options)


class EmbeddingBag(Module):
    """Table of vectors ``weight`` [num_embeddings, embedding_dim], combined per bag of indices by sum, mean or max."""

    weight: Parameter

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self.padding_idx = None if padding_idx is None else padding_index(padding_idx, num_embeddings)
        if _weight is None:
            self.weight = empty_parameter((num_embeddings, embedding_dim), dtype, device)
            self.reset_parameters()
        else:
            self.weight = Parameter(_weight)

    def reset_parameters(self) -> None:
        """Draw normal values, and set row ``padding_idx`` to 0."""
        _reset(self)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """Create a layer with the given table [count, size], not trained when ``freeze``."""
        if len(embeddings.shape) != 2:
            raise ShapeError(f"EmbeddingBag.from_pretrained: expected a matrix, got shape {list(embeddings.shape)}")
        options = (max_norm, norm_type, scale_grad_by_freq, mode, sparse)
        keywords = {"include_last_offset": include_last_offset, "padding_idx": padding_idx}
        count, size = embeddings.shape
        layer = cls(count, size, *options, _weight=embeddings, **keywords)
        layer.weight.requires_grad_(not freeze)
        return layer

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """Map [bags, length], or a vector and the ``offsets`` at which bags begin, to [bags, embedding_dim]."""
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}"
