"""Datasets, samplers, loaders that prefetch, and readers of common file formats."""

from graphc.data.collate import default_collate, default_convert
from graphc.data.csv_file import Table, read_csv
from graphc.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    MapDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from graphc.data.fetch import WorkerInfo, get_worker_info
from graphc.data.idx_file import MNIST, read_idx
from graphc.data.loader import DataLoader
from graphc.data.sampler import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from graphc.files.numpy_file import read_npy, read_npz

__all__ = [
    "MNIST",
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "MapDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "Table",
    "TensorDataset",
    "WeightedRandomSampler",
    "WorkerInfo",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
    "read_csv",
    "read_idx",
    "read_npy",
    "read_npz",
]
