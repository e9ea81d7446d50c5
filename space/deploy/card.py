"""The README of the Space: how the Hub runs it, and what it is. A pure function of the deployment."""

from typing import Final

from space.deploy.deployment import Deployment

PYTHON: Final = "3.11"
SESSION_MINUTES: Final = 480

_WORDS: Final = """# AgentRewardBench

Which automatic judges of web agents can be trusted: verdicts evaluated against expert labels. This Space
takes prediction files for the suite `{suite}` and keeps its leaderboard.

Trajectories: [{data}](https://huggingface.co/datasets/{data}). {board}REST: `/api`.

Written by `python -m space deploy`: change the code, not this repository.
"""
_BOARD: Final = "The board as files: [{board}](https://huggingface.co/datasets/{board}). "


def render_card(deployment: Deployment, gradio: str) -> str:
    """README.md with its YAML block; ``gradio`` is the version that the Hub shall install."""
    import yaml

    card = {
        "title": "AgentRewardBench",
        "short_description": "Judges of web agents, evaluated on expert labels",
        "colorFrom": "green",
        "colorTo": "gray",
        "sdk": "gradio",
        "sdk_version": gradio,
        "python_version": PYTHON,
        "app_file": "app.py",
        "pinned": False,
        "license": "apache-2.0",
        "hf_oauth": True,
        "hf_oauth_expiration_minutes": SESSION_MINUTES,
        "datasets": [deployment.data],
        "tags": ["leaderboard", "web-agents", "llm-as-a-judge", "reward-models", "evaluation"],
    }
    block = yaml.safe_dump(card, sort_keys=False, allow_unicode=True, width=110)
    board = _BOARD.format(board=deployment.board) if deployment.board else ""
    return f"---\n{block}---\n\n" + _WORDS.format(suite=deployment.suite, data=deployment.data, board=board)
