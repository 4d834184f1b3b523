"""The version of graphc."""

VERSION = "0.2.0"
