import asyncio
from contextlib import asynccontextmanager
from pathlib import Path

import gradio as gr
import pytest
from gradio.exceptions import InvalidPathError
from gradio.state_holder import SessionState

from space.gradio_app.app import admit_calls, make_calls_cheap, take_uploads_only
from space.gradio_app.endpoints import CallRefused


@pytest.fixture
def part(tmp_path, monkeypatch) -> gr.File:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "uploads"))
    return take_uploads_only(gr.File(label="File"))


def take(part: gr.File, path: str | Path | None) -> str | None:
    return asyncio.run(part.async_move_resource_to_block_cache(path))


def test_a_file_in_the_folder_for_uploads_is_taken_where_it_lies(part, tmp_path):
    uploaded = tmp_path / "uploads" / "ab" / "verdicts.jsonl"
    uploaded.parent.mkdir(parents=True)
    uploaded.write_text("{}")
    assert take(part, uploaded) == take(part, str(uploaded)) == str(uploaded)
    assert take(part, None) is None


@pytest.mark.parametrize(
    "sent",
    [
        "secret.txt",
        "uploads/../secret.txt",
        "uploads/link.txt",
        "/etc/passwd",
        "http://example.org/x",
        "https://x",
        "file:///etc/passwd",
        "",
        "uploads-not/x",
    ],
)
def test_any_other_path_and_every_address_is_refused_and_not_copied(part, tmp_path, sent, monkeypatch):
    (tmp_path / "uploads").mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "uploads" / "link.txt").symlink_to(tmp_path / "secret.txt")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidPathError):
        take(part, sent)
    assert [path.name for path in (tmp_path / "uploads").iterdir()] == ["link.txt"]


def test_another_part_is_as_it_was(part, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    assert Path(take(gr.File(), tmp_path / "mine.txt")).read_text() == "mine"


@pytest.fixture
def blocks() -> gr.Blocks:
    with gr.Blocks(analytics_enabled=False) as found:
        box = gr.Textbox(label="Name", value="as it was")
        box.change(lambda text: text, box, box, api_name="same")
    return found.queue()


def test_a_session_describes_no_part_again_and_shares_no_value_with_another(blocks, monkeypatch):
    (number,) = [key for key, part in blocks.blocks.items() if isinstance(part, gr.Textbox)]
    expected = SessionState(blocks).config_values
    make_calls_cheap(blocks)
    monkeypatch.setattr("inspect.signature", lambda *_: pytest.fail("a part is described again"))
    first, second = SessionState(blocks), SessionState(blocks)
    assert first.config_values == expected
    first._update_value_in_config(number, "of one session")
    values = [state.config_values[number]["props"]["value"] for state in (first, second)]
    assert values == ["of one session", "as it was"]


def test_a_call_runs_in_its_slot_and_without_one_it_ends_with_a_message(blocks):
    held = []

    class Endpoints:
        @asynccontextmanager
        async def slot(self, request):
            if request == "refused":
                raise CallRefused("too many files wait")
            held.append(request)
            yield
            held.append("released")

    async def process(**options):
        held.append("called")
        return options

    blocks.process_api = process
    admit_calls(blocks, Endpoints())
    assert asyncio.run(blocks.process_api(request="ada", inputs=[])) == {"request": "ada", "inputs": []}
    assert held == ["ada", "called", "released"]
    with pytest.raises(gr.Error, match="too many files wait"):
        asyncio.run(blocks.process_api(request="refused"))
