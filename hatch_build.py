"""Add files of the checkout to the wheel's package ``arb``: what a deployment sends, and the documentation.

`arb.core.files.project_file` finds the files in the wheel as well as in a checkout. The documentation is
added as ``arb/site`` if it was built with `make docs`. Building it takes the requirements and mkdocs, several
hundred MB that `pip install .` does not fetch. An editable installation finds everything in the checkout.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILES = ("CHANGELOG.md", "LICENSE", "requirements.txt")


class DocumentationHook(BuildHookInterface):
    """The hook for wheel and sdist, which hatchling finds by the name of this file."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        is_wheel = self.target_name == "wheel"
        included = build_data["force_include"]
        if is_wheel:
            included |= {name: f"arb/{name}" for name in FILES}
        if (Path(self.root) / "site").is_dir():
            included["site"] = "arb/site" if is_wheel else "site"
