"""Names of ``graphc.llm``: each loads from its module, and no module hides one."""

from __future__ import annotations

from pathlib import Path

from graphc import llm


def test_every_name_loads_from_a_module_of_the_package():
    assert {"Generator", "load", "perplexity"} <= {*llm.__all__}
    assert {getattr(llm, name).__module__.rpartition(".")[0] for name in llm.__all__} == {"graphc.llm"}


def test_no_module_hides_a_name():
    # Importing ``graphc.llm.x`` sets the attribute x of the package.
    modules = {path.stem for path in Path(llm.__path__[0]).glob("*.py")}
    assert not modules.intersection(llm.__all__)
