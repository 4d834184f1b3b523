"""The import path that users know for the exceptions of graphc."""

from graphc.base.errors import *  # noqa: F403
from graphc.base.errors import __all__ as __all__
