"""Shows figures of hidden labels again after the server's secret was replaced.

A new secret gives new noise, new names of label versions and a new hidden half. Showing a file's figures
again therefore reveals as much about the labels as showing them the first time, so they stay withdrawn until
an operator accepts the charge. Then each file whose figures were shown before gets a ``refreshed`` event,
which the leak budget counts as if the owner had asked for new figures.
"""

from typing import Any, Final

from submissions.app import SubmissionsApp
from submissions.errors import SubmissionError
from submissions.intake.accounts import Actor
from submissions.privacy.leak_budget import file_cost, row_cost
from submissions.records.event_log import add_event, recording
from submissions.records.queries import current_statuses, disclosure_histories, find_score

WITHDRAWN: Final = (
    "figures of hidden labels are withdrawn, because the server's secret was replaced; run "
    "`arb submissions accept-charge` to show them again and charge them to the leak budget"
)


def accept_charge(service: SubmissionsApp, actor: Actor) -> tuple[list[str], float]:
    """Score all files with the new secret, show their figures again, and record the charge.

    Returns the ids of the submissions whose figures are shown again, and the charge to the leak budget in
    rho. Raises SubmissionError if no figures are withdrawn, or if there are no labels.
    """
    suite = service.suite
    with service.snapshot() as session:
        are_withdrawn = current_statuses(session).are_figures_withdrawn
    if suite.labels_are_public or not are_withdrawn:
        raise SubmissionError("no figures are withdrawn, so there is nothing to accept")
    if (version := service.label_version) is None:
        raise SubmissionError(f"files cannot be scored again: {service.labels.why_none('test')}")
    service.intake.finish_scoring()
    again, rho = [], 0.0
    with recording(service.engine) as session:
        found = current_statuses(session)
        for history in disclosure_histories(session, suite.name, found):
            name = history[0][0].submission_id
            had_figures = history[0][0].label_version in found.retired_versions
            status = found.of(name)
            if not (had_figures and status.is_on_the_board and find_score(session, name, version)):
                continue
            body: dict[str, Any] = {"submission_id": name, "label_version": version}
            add_event(session, "refreshed", actor.name, service.clock(), body)
            again.append(name)
            rho += file_cost(suite.rules) + (row_cost(suite.rules) if status.published_at else 0.0)
        body = {"label_version": version, "submissions": len(again)}
        add_event(session, "charge_accepted", actor.name, service.clock(), body)
    return again, rho
