"""The Gradio app: the named endpoints and the page /submit. The same functions are served over MCP."""
