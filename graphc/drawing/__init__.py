"""Pictures of graphs, drawn without other programs: diagrams, their layout, SVG and pages."""

from graphc.drawing.show import notebook, picture

__all__ = ["notebook", "picture"]
