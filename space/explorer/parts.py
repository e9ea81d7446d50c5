"""The trajectories page's content as HTML, from a query string: the list, or a story."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from markupsafe import Markup

from space.disputes.form import DisputeForm, dispute_form
from space.explorer.browse_view import BrowseView, browse
from space.explorer.choice import Choice, choose, given_in, known_values, refused
from space.explorer.explorer import Explorer
from space.explorer.index import Entry
from space.explorer.shown import Shown, TrajectoriesUnavailable
from space.explorer.story_view import view_story
from space.templating import render

UNAVAILABLE = (
    "The trajectories cannot be read now.",
    "Try again in a minute; whoever runs this Space finds the reason in its log.",
)
UNKNOWN = (
    "There is no such trajectory.",
    "The address may be cut off, or the run is not in the dataset that is shown here.",
)


@dataclass(frozen=True)
class Part:
    """A piece of the page with its title, and the status of the answer that carries it."""

    html: Markup
    status: int = 200
    title: str = ""


def story_id(query: str) -> str:
    """The trajectory that an address names; empty when it names none."""
    return given_in(query).get("id", "")


def browse_part(explorer: Explorer, query: str) -> Part:
    """The whole list with its form."""
    try:
        view, shown = _browsed(explorer, query)
    except TrajectoriesUnavailable:
        return _problem(503, *UNAVAILABLE)
    unknown = refused(query, _known(explorer, shown))
    html = render("trajectories_browse.html", view=view, is_sample=shown.is_sample, unknown=unknown)
    return Part(Markup(html))


def story_part(explorer: Explorer, query: str) -> Part:
    """The story that an address names, at its step, with its neighbours in the list of its choice."""
    try:
        trajectory_id = story_id(query)
        shown = explorer.holding(trajectory_id)
        choice = _choice(explorer, shown, query)
        vote_counts = explorer.vote_counts(shown)
        chosen = choose(shown.index.entries, choice, vote_counts)
        view = view_story(
            explorer.story(trajectory_id), choice, chosen, vote_counts, given_in(query).get("step", "")
        )
    except KeyError:
        return _problem(404, *UNKNOWN)
    except TrajectoriesUnavailable:
        return _problem(503, *UNAVAILABLE)
    dispute = _dispute(explorer, shown, view.story.entry)
    html = render("trajectories_story.html", view=view, story=view.story, dispute=dispute)
    return Part(Markup(html), title=view.title)


def _dispute(explorer: Explorer, shown: Shown, entry: Entry) -> DisputeForm | None:
    """The form to dispute a label; None where the suite that is served does not have the run."""
    suite = explorer.served
    known = suite.find(entry.trajectory_id) if shown.suite == suite.name else None
    if known is None:
        return None
    return dispute_form(known.trajectory_id, known.split, entry.labels, suite.labels_are_public)


def _browsed(explorer: Explorer, query: str) -> tuple[BrowseView, Shown]:
    shown = explorer.of_suite(given_in(query).get("suite", ""))
    choice = _choice(explorer, shown, query)
    suites = [dataset.suite for dataset in explorer.datasets()]
    return browse(shown.index, choice, explorer.vote_counts(shown), suites, shown.version), shown


def _choice(explorer: Explorer, shown: Shown, query: str) -> Choice:
    """The choice of an address, its suite left out where it is the one that is shown unasked."""
    choice = Choice.of_query(query, _known(explorer, shown))
    return replace(choice, suite="" if shown.suite == explorer.of_suite().suite else shown.suite)


def _known(explorer: Explorer, shown: Shown) -> Mapping[str, Collection[str]]:
    return known_values([dataset.suite for dataset in explorer.datasets()], shown.index)


def _problem(status: int, title: str, advice: str) -> Part:
    return Part(Markup(render("trajectories_problem.html", title=title, advice=advice)), status, title)
