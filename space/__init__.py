"""The leaderboard's web server: pages, REST, Gradio and MCP. `submissions` has the rules of submitting."""

import arb.core  # noqa: F401 - refuses a Python that is too old, before a missing library does
