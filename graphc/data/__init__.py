"""Datasets, samplers, loaders that prefetch, and readers of common file formats."""

from graphc.base.lazy import collect
from graphc.data import transforms
from graphc.data.collate import *
from graphc.data.csv_file import *
from graphc.data.dataset import *
from graphc.data.fetch import *
from graphc.data.idx_file import *
from graphc.data.loader import *
from graphc.data.sampler import *
from graphc.files.numpy_file import *

__all__: list[str]
collect(__name__, "transforms")
