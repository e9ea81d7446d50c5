"""The form by which a label is disputed: on dev with the labels, on test blind. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from leaderboard.annotations import QUESTION_TITLES
from space.address import link_to
from space.explorer.index import Labels

PATH: Final = "/disputes"
API: Final = "/api/disputes"


@dataclass(frozen=True)
class DisputeForm:
    """The form for one trajectory. ``questions`` are (value, words); only on dev the words tell the label.

    ``is_told`` says whether everybody will read what is written here.
    """

    trajectory_id: str
    questions: Sequence[tuple[str, str]]
    is_told: bool

    @property
    def api(self) -> str:
        """Where it is sent."""
        return API

    @property
    def list_address(self) -> str:
        """The disputes of this trajectory."""
        return link_to(PATH, trajectory_id=self.trajectory_id)


def dispute_form(
    trajectory_id: str, split: str, labels: Labels | None, labels_are_public: bool
) -> DisputeForm:
    """The form for a trajectory; labels of a test trajectory are left out, whoever passes them."""
    shown = labels if split == "dev" else None
    questions = [
        (question, title if shown is None else f"{title} (labelled: {_word(getattr(shown, question))})")
        for question, title in QUESTION_TITLES.items()
    ]
    return DisputeForm(trajectory_id, questions, split == "dev" or labels_are_public)


def _word(answer: bool | int | None) -> str:
    if answer is None:
        return "unsure"
    return {True: "yes", False: "no"}[answer] if isinstance(answer, bool) else f"{answer} of 4"
