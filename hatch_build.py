"""Ships the documentation where it was built (`make docs`): the wheel has it as ``arb/site``.

Building it takes the runtime's packages and mkdocs, several hundred MB that `pip install .` does not fetch.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class DocumentationHook(BuildHookInterface):
    """For wheel and sdist; `hatchling` finds it by this file's name."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if (Path(self.root) / "site").is_dir():
            build_data["force_include"]["site"] = "arb/site" if self.target_name == "wheel" else "site"
