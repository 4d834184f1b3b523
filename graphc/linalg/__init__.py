"""Linear algebra of matrices and batches of them, as ``torch.linalg`` names it.

Small matrices are computed by native code, large ones by numpy's LAPACK; docs/linalg.md says which.
"""

from graphc.base.lazy import collect
from graphc.linalg.checks import *
from graphc.linalg.norms import *
from graphc.linalg.products import *
from graphc.linalg.reflections import *
from graphc.linalg.spectra import *
from graphc.linalg.systems import *

__all__: list[str]
collect(__name__)
