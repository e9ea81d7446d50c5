"""The leaderboard's web server: pages, REST, Gradio and MCP. `submissions` has the rules of submitting."""
