"""The leaderboard's web server: pages, REST API, Gradio app and MCP server.

`submissions` has the rules of submitting.
"""
