"""Add the documentation to the wheel as ``arb/site``, if it was built with `make docs`.

Building it takes the requirements and mkdocs, several hundred MB that `pip install .` does not fetch.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class DocumentationHook(BuildHookInterface):
    """The hook for wheel and sdist, which hatchling finds by the name of this file."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if (Path(self.root) / "site").is_dir():
            build_data["force_include"]["site"] = "arb/site" if self.target_name == "wheel" else "site"
