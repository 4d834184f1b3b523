"""A peer whose library is not installed."""

import a_library_that_nobody_installs

VERSION = a_library_that_nobody_installs.__version__
