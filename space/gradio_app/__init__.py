"""The Gradio app: the named endpoints and the page /submit. The same functions are served over MCP."""

import inspect
from typing import Any

_getfile = inspect.getfile


def _getfile_without_components(thing: Any) -> str:
    """Do what `inspect.getfile` does, but raise OSError for Gradio's classes as if they had no file."""
    if isinstance(thing, type) and thing.__module__.startswith("gradio."):
        raise OSError
    return _getfile(thing)


# While it is imported, Gradio compares every component with its stub (a .pyi file for editors). That takes
# 40 % of the time of the import. It leaves out components without a file.
inspect.getfile = _getfile_without_components  # type: ignore[assignment]  # takes anything
try:
    import gradio  # noqa: F401
finally:
    inspect.getfile = _getfile
