"""The pages, REST, Gradio and MCP of the leaderboard. The rules of submitting are in `submissions`."""
