"""The leaderboard's web server: pages, REST, Gradio and MCP. The rules of submitting are in `submissions`."""

import arb.core  # noqa: F401 - refuses a Python that is too old, before a missing library does
