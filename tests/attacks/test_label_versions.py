"""Label versions, withdrawals and new names give nobody more figures than one year's budget."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

import numpy as np
import pytest

from arb.core.settings import Settings
from leaderboard.report import score_report
from submissions.app import SubmissionsApp
from submissions.errors import RateLimited, SubmissionError
from submissions.intake.accounts import Actor
from submissions.privacy.disclosure import DisclosurePolicy, digests_of, disclose, hidden_half
from submissions.records.database import ScoreRow
from submissions.scoring.rescore import rescore
from submissions.scoring.scorer import score_of
from tests.attacks.oracle import GeneratedOracle
from tests.attacks.service_oracle import Clock
from tests.attacks.world import World, make_world
from tests.support.submissions import declaration, send, settings_for, verdicts, write_suite
from tests.support.verdict_tables import verdict_table

MALLORY, KEEPER = Actor("Mallory"), Actor("Keeper", is_maintainer=True)
VERSIONS = 12
RULES = (
    'labels = "private"\n[rules]\nfewest_positives = 1\nfiles_a_day = 9\nfiles_a_year = 3\nround_days = 1\n'
)


@pytest.fixture(autouse=True)
def _few_resamples(monkeypatch):
    """Intervals of exact counts are shown to nobody here: 20 resamples are enough."""
    monkeypatch.setattr("submissions.scoring.scorer.score_report", partial(score_report, n_resamples=20))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A private suite that takes 3 files and 2 public rows a year; the rest as it is by default."""
    folder = tmp_path_factory.mktemp("versions")
    (write_suite(folder) / "suite.toml").write_text(RULES)
    return folder


@pytest.fixture
def settings(folder, tmp_path) -> Settings:
    return settings_for(folder, tmp_path / "state", secret="244743c0676a52704dec7742e95ee8c1")


def under_versions(settings, folder, clock):
    """The service under one label version after another, 30 days each: of each the next two labels are
    corrected, and everything is scored again."""
    lines = (folder / "labels.csv").read_text().splitlines()
    for version in range(VERSIONS):
        for place in (2 * version + 1, 2 * version + 2) if version else ():
            before = "Successful" if ",Successful," in lines[place] else "Unsuccessful"
            after = "Unsuccessful" if before == "Successful" else "Successful"
            lines[place] = lines[place].replace(f",{before},", f",{after},")
        path = settings.state_dir.parent / f"labels-{version}.csv"
        path.write_text("\n".join(lines) + "\n")
        service = SubmissionsApp(settings.model_copy(update={"labels": f"csv:{path}"}), clock=clock)
        rescore(service, KEEPER)
        yield service
        clock.now += timedelta(days=30)


def figures_of(report) -> tuple:
    """What a report shows of hidden labels, and under which version: the same twice tells nothing new."""
    labels = report["labels"].items()
    return report.get("label_version"), *((name, each["overall"]["tp"]) for name, each in labels if each)


@pytest.mark.slow
def test_twelve_rescorings_show_each_file_once(settings, folder):
    seen: dict[str, set] = {}
    rows: dict[str, set] = {}
    for service in under_versions(settings, folder, Clock()):
        if not seen:
            for misses in (1, 2):
                content = verdicts(service.suite, misses=misses, false_alarms=7)
                seen[send(service, content, account="Mallory").submission_id] = set()
            service.moderation.publish(next(iter(seen)), MALLORY)
        for name, figures in seen.items():
            figures.add(figures_of(service.records.submission(name, MALLORY).report))
        for row in service.records.board().rows:
            ranked = {label: found and found["rank"] for label, found in row.labels.items()}
            rows.setdefault(row.id, set()).add((figures_of({"labels": row.labels}), repr(ranked)))
    assert [len(figures) for figures in seen.values()] == [1, 1]
    assert [len(figures) for figures in rows.values()] == [1]


@pytest.mark.slow
def test_a_year_of_withdrawals_and_new_names_over_versions_gives_one_years_files(settings, folder):
    """Before each version's end: whatever can be sent, made public, taken back and named anew."""
    seen, public, sent = set(), set(), 0
    for service in under_versions(settings, folder, Clock()):
        for _ in range(3):
            sent += 1
            content = verdicts(service.suite, misses=1 + sent % 9, false_alarms=5 + sent // 9)
            upload = service.intake.check(content, "verdicts.jsonl", "test")
            said = declaration(account="Mallory", judge=f"Judge {sent}")
            try:
                name = service.intake.submit(upload, said, MALLORY).receipt.submission_id
            except RateLimited:
                break
            seen.add((name, figures_of(service.records.submission(name, MALLORY).report)))
            try:
                service.moderation.publish(name, MALLORY)
                public.add(name)
            except SubmissionError:
                pass
            service.moderation.withdraw(name, MALLORY)
            service.moderation.rename("Mallory", f"Judge {sent}", f"Renamed {sent}", MALLORY)
            with pytest.raises(SubmissionError):  # withdrawn for good: no newer figures either
                service.moderation.publish(name, MALLORY)
    assert (len(seen), len(public)) == (3, 2)


def test_no_label_of_the_half_that_ranks_moves_a_figure_that_is_shown(settings):
    """Of a suite that says nothing of it: half of the tasks rank, and all that is shown is of the others."""
    service = SubmissionsApp(settings, clock=Clock())
    upload = service.intake.check(verdicts(service.suite, misses=2, false_alarms=7), "verdicts.jsonl", "test")
    labels, key = service.labels.test, service.half_key
    assert key is not None
    hidden = hidden_half(labels.trajectories, key)
    assert 0.4 < hidden.mean() < 0.7
    shown = [_figures(service.disclosure_policy, score_of(upload.check.aligned, labels, key))]
    generator = np.random.default_rng(1)
    for _ in range(5):
        column = labels.primary["success"].copy()
        column[hidden] = generator.integers(0, 2, hidden.sum())
        other = replace(labels, primary={**labels.primary, "success": column})
        shown.append(_figures(service.disclosure_policy, score_of(upload.check.aligned, other, key)))
    assert shown == [shown[0]] * 6


def _figures(policy: DisclosurePolicy, body) -> list:
    score = ScoreRow(report=body["report"], digests=body["digests"], halves=body["halves"])
    return [policy.report(score, "owner"), policy.report(score, "public")]


def test_a_disputed_label_does_not_follow_from_how_many_are_positive_before_and_after():
    """One label is disputed, and nothing else changes with the next version. Exact totals rise by 1 if it
    became a success, and fall by 1 if it became none; those that are shown say little: noise of 3 on both,
    3 x sqrt(2) = 4.2 on a difference of 1.
    """
    world = make_world(0)
    changes: dict[int, list[int]] = {1: [], -1: []}
    for number in range(40):
        for change, place in ((1, np.argmin(world.truth)), (-1, np.argmax(world.truth))):
            truth = world.truth.copy()
            truth[place] += change
            before, after = (
                _positives(replace(world, truth=labels), bytes([number]) * 32, version)
                for version, labels in (("v1", world.truth), ("v2", truth))
            )
            changes[change].append(after - before)
    rise, fall = np.array(changes[1]), np.array(changes[-1])
    assert (rise < 0).any() and (fall > 0).any()
    # Whoever guesses by the sign is right in Phi(1 / 4.2) = 59 % of cases.
    assert np.mean(np.concatenate([rise > 0, fall < 0])) < 0.8


def _positives(world: World, key: bytes, label_version: str) -> int:
    """The number of successes that an owner sees under a label version."""
    oracle = GeneratedOracle(world, key=key)
    report = {**oracle.exact_report(world.votes[0]), "label_version": label_version}
    digests = digests_of(verdict_table(success=world.votes[0]), world.trajectories)
    return disclose(report, digests, oracle.rules, key, "owner")["labels"]["success"]["overall"]["positives"]
