"""The suites that a Space serves, and the settings of each: a further suite has its own records and data."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from sqlalchemy import URL

from arb.core.settings import Settings
from arb.core.suite import EXAMPLES, Suite, SuiteError, load_suite, shipped_suites
from dataset_script.sources.published import MANIFEST
from submissions.records.database import parse_url

FOLDER: Final = "suites"
"""The folder in ARB_STATE_DIR, in ARB_DATA_DIR and on the Hub that contains a folder per further suite."""
_WITH_TRAJECTORIES: Final = frozenset(("trajectories", "errors", "disputes"))
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_SOURCE: Final = re.compile(r"none|wheel|csv:.+|hub:[^/]+/.+|records(:.+)?")
_SOURCES: Final = "csv:PATH, hub:OWNER/REPO[/FILE], records[:VERSION] or none"


class ServedSuite(NamedTuple):
    """A suite, and the settings for its records, labels and data."""

    suite: Suite
    settings: Settings


def served_suites(settings: Settings) -> dict[str, ServedSuite]:
    """Return the suites that a Space with these settings serves, keyed by name, the default suite first.

    These are the suites in ARB_SUITES, or the one in ARB_SUITE. If neither is set, they are the default suite
    and the other shipped suites with public labels. Raises SuiteError with every problem, and
    DatabaseUnavailable if DATABASE_URL is not an address.
    """
    places = settings.suite_places or (settings.suite,)
    are_chosen = bool(settings.suite_places or "suite" in settings.model_fields_set)
    if not are_chosen:
        places += tuple(name for name in shipped_suites() if name not in (*places, *EXAMPLES))
    found: dict[str, ServedSuite] = {}
    problems = []
    for place in places:
        try:
            suite = load_suite(place)
        except SuiteError as problem:
            problems.append(f"{place}: {problem}")
            continue
        if found and not (are_chosen or suite.labels_are_public):
            continue
        if suite.name in found:
            problems.append(f"{place}: there are two suites named {suite.name}; rename one of their folders")
        elif len(places) > 1 and not _NAME.fullmatch(suite.name):
            problems.append(
                f"{place}: rename the folder; addresses need a name of at most 40 letters, digits, -, _ and ."
            )
        main = next(iter(found.values())).settings if found else None
        own = settings.model_copy(update={"suite": place})
        found[suite.name] = _further(main, place, suite) if main else ServedSuite(suite, own)
    if problems and settings.suite_places:
        problems = [f"ARB_SUITES: {'; '.join(problems)}"]
    if problems := problems or source_problems(settings, list(found)[1:]):
        raise SuiteError("; ".join(problems))
    return found


def source_problems(settings: Settings, further: Sequence[str]) -> list[str]:
    """Return what is wrong with the sources of labels; ``further`` are the suites except the default one."""
    problems = []
    if not _SOURCE.fullmatch(settings.labels):
        problems.append(f"ARB_LABELS is {settings.labels!r}; use wheel, {_SOURCES}")
    for name, source in settings.labels_by_suite.items():
        if name not in further:
            known = f"; use one of {', '.join(further)}" if further else ""
            problems.append(
                f"ARB_SUITE_LABELS: {name} is not one of the other suites in ARB_SUITES{known} (ARB_LABELS "
                "is the source of the default suite's labels)"
            )
        elif not _SOURCE.fullmatch(source):
            problems.append(f"ARB_SUITE_LABELS: {name} has the source {source!r}; use {_SOURCES}")
    return problems


def settings_of_chosen(settings: Settings) -> Settings:
    """Return the settings for the records of the suite in ARB_SUITE, as a Space with ARB_SUITES keeps them.

    Raises SuiteError if the suite cannot be loaded, or if ARB_SUITES is set and does not have it.
    """
    name = load_suite(settings.suite).name
    if not settings.suite_places:
        return settings
    served = served_suites(settings)
    if name not in served:
        raise SuiteError(f"ARB_SUITE: ARB_SUITES has no suite {name}; use one of {', '.join(served)}")
    return served[name].settings


def _further(main: Settings, place: str, suite: Suite) -> ServedSuite:
    """Return a further suite, with its own folders and database.

    Its labels are those that ARB_SUITE_LABELS names, else those in the suite if they are public, else the
    label set in its records. Pages that show its trajectories are off if it has no dataset.
    """
    changes = {
        "suite": place,
        "state_dir": main.state_dir / FOLDER / suite.name,
        "data_dir": main.data_dir / FOLDER / suite.name,
        "database_url": main.database_url and _database_of(parse_url(main.database_url), suite.name),
        "labels": main.labels_by_suite.get(suite.name) or ("wheel" if suite.labels_are_public else "records"),
        "paper_verdicts": None,
        "board_repo": None,
    }
    settings = main.model_copy(update=changes).under(main)
    if not (settings.data_dir / MANIFEST).is_file():
        profile = replace(suite.profile, pages=suite.profile.pages - _WITH_TRAJECTORIES)
        suite = replace(suite, profile=profile)
    return ServedSuite(suite, settings)


def _database_of(url: URL, name: str) -> str:
    """Return the address of a suite's own SQLite file (next to the main one) or PostgreSQL schema."""
    if url.get_backend_name() == "sqlite":
        file = Path(url.database or "")
        if file.name not in ("", ":memory:"):
            url = url.set(database=str(file.with_name(f"{file.stem}-{name}{file.suffix}")))
    else:
        others = url.query.get("options", "")
        options = others if isinstance(others, str) else " ".join(others)
        url = url.update_query_dict({"options": f'{options} -csearch_path="suite-{name}"'.strip()})
    return url.render_as_string(hide_password=False)
