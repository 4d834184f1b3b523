"""Foundations: errors, element types, options, locks; imports nothing else of graphc."""
