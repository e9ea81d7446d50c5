"""What people and programs see: pages, REST, Gradio, MCP. Rules of submitting are in `submissions`."""
