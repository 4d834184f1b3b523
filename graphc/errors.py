"""Public import path of graphc's exceptions."""

from graphc.base.errors import *  # noqa: F403
from graphc.base.errors import __all__ as __all__
