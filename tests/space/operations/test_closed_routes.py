"""What Gradio serves beside our pages is closed where no page needs it."""

import pytest

from space.operations.closed_routes import is_closed


@pytest.mark.parametrize(
    "path",
    [
        "/monitoring", "/monitoring/summary", "/logout", "/login", "/login/", "/gradio_api/dev/reload",
        "/gradio_api/proxy=https://example.org", "/gradio_api/vibe-code", "/gradio_api/undo-vibe-edit",
        "/gradio_api/stream/x/close", "/gradio_api/runs", "/gradio_api/component_server",
    ],
)  # fmt: skip
def test_addresses_that_no_page_uses_are_closed(path):
    assert is_closed(path)


@pytest.mark.parametrize(
    "path",
    [
        "/", "/login/start", "/login/callback", "/gradio_api/queue/join", "/gradio_api/upload",
        "/trajectories/list", "/gradio_api/run/predict", "/gradio_api/info", "/config", "/api/maintain/log",
    ],
)  # fmt: skip
def test_addresses_that_pages_use_are_open(path):
    assert not is_closed(path)
