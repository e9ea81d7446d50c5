"""What the address of the leaderboard says: ``/?label=repetition&figure=recall&sort=-cost``."""

from dataclasses import dataclass

from dataset_script.vocabulary import LABEL_TITLES
from leaderboard.board import Board
from space.address import QueryParam, choices_in, link_to
from space.board_view import FIGURES, PROVENANCES, Choice, agents_of, inputs_of, kinds_of, sorts_of

LONGEST_SEARCH = 80


@dataclass(frozen=True)
class Options:
    """What can be chosen on a board: values with their titles, in the order of the menus."""

    labels: dict[str, str]
    figures: dict[str, str]
    agents: dict[str, str]
    kinds: dict[str, str]
    inputs: dict[str, str]
    provenances: dict[str, str]
    sorts: tuple[str, ...]


def options_of(board: Board) -> Options:
    """What the rows of this board can be chosen by."""
    return Options(
        labels=dict(LABEL_TITLES),
        figures=dict(FIGURES),
        agents=agents_of(board),
        kinds={kind: kind for kind in kinds_of(board)},
        inputs={inputs: inputs for inputs in inputs_of(board)},
        provenances={name: title for name, title in PROVENANCES.items() if name != "reference"},
        sorts=sorts_of(board),
    )


def controls(options: Options) -> list[QueryParam]:
    """The names and values that the address may hold."""
    return [
        QueryParam("label", "one", "success", tuple(options.labels)),
        QueryParam("figure", "one", "precision", tuple(options.figures)),
        QueryParam("agent", "one", "", ("", *options.agents)),
        QueryParam("kind", "many", [], tuple(options.kinds)),
        QueryParam("inputs", "many", [], tuple(options.inputs)),
        QueryParam("from", "many", [], tuple(options.provenances)),
        QueryParam("q", "text", "", max_length=LONGEST_SEARCH),
        QueryParam("every", "flag", False),
        QueryParam("sort", "one", "", ("", *options.sorts)),
    ]


def choice_in(query: str, options: Options) -> tuple[Choice, list[str]]:
    """The choice that a query string makes, and the names that it sets to no valid value."""
    values, refused = choices_in(query, controls(options))
    choice = Choice(
        label=values["label"],
        figure=values["figure"],
        search=values["q"],
        kinds=tuple(sorted(values["kind"])),
        provenances=tuple(sorted(values["from"])),
        every_submission=values["every"],
        agent=values["agent"],
        inputs=tuple(sorted(values["inputs"])),
        sort=values["sort"],
    )
    return choice, refused


def address_of_choice(choice: Choice, **changes: str) -> str:
    """The address that shows the board at a choice, with some of it changed; defaults are left out."""
    values = {
        "label": "" if choice.label == "success" else choice.label,
        "figure": "" if choice.figure == "precision" else choice.figure,
        "agent": choice.agent,
        "kind": choice.kinds,
        "inputs": choice.inputs,
        "from": choice.provenances,
        "q": choice.search,
        "every": choice.every_submission,
        "sort": choice.sort,
    }
    return link_to("/", **{**values, **changes})
