"""Named endpoints, the same functions over MCP, and the page /submit, made with Gradio."""
