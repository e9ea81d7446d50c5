"""The options of ``arb data``, as declared in `options.toml`."""

import tomllib
from pathlib import Path
from typing import Any, Final

import typer

from arb.core.cli import file_option, new_file_option, new_folder_option

_DECLARED: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_PATHS: Final = {"file": file_option, "new_file": new_file_option, "new_folder": new_folder_option}


def option(name: str, **more: Any) -> Any:
    """Return the option that `options.toml` declares under a name."""
    declared = dict(_DECLARED[name])
    kind: Any = _PATHS.get(declared.pop("path", ""), typer.Option)
    panel = declared.pop("panel", None)
    return kind(*declared.pop("names", ()), rich_help_panel=panel, **declared, **more)
