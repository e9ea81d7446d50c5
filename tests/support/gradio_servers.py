"""Gradio without the servers that it makes for nobody: three of the five of a Space."""

from types import SimpleNamespace

import gradio.blocks


def leave_out_unused_servers() -> None:
    """Blocks make a server as they begin and at the end of every ``with``, and forget it with the next one.

    Used are those of `queue`, called on finished blocks, and of mounting or launching.
    """
    make = gradio.blocks.App.create_app

    def make_when_finished(blocks: gradio.blocks.Blocks, **options) -> object | None:
        return make(blocks, **options) if getattr(blocks, "exited", False) else None

    gradio.blocks.App = SimpleNamespace(create_app=make_when_finished)
