"""The fast oracle of the attacks shows what the scorer and the disclosure show, within the limits."""

import numpy as np
import pytest

from arb.core.suite import SuiteRules
from leaderboard.report import score_report
from submissions.privacy.disclosure import digests_of, disclose
from tests.attacks.findings import Notebook, likely_negatives
from tests.attacks.oracle import KEY, BudgetSpent, FileHeld, GeneratedOracle
from tests.attacks.world import POSITIVES, make_world, precision_of
from tests.support.verdict_tables import verdict_table


@pytest.fixture(scope="module")
def world():
    return make_world(0)


def test_exact_reports_are_those_of_the_scorer(world):
    column = world.votes[0].copy()
    column[:50] = -1
    expected = score_report(verdict_table(success=column), world.labels, n_resamples=0)
    expected["labels"]["success"]["by_agent"] = {}
    assert GeneratedOracle(world).exact_report(column) == expected


def test_the_label_set_has_the_real_shape(world):
    assert len(world.truth) == 1_106
    assert {b: int(world.truth[rows].sum()) for b, rows in world.benchmark_rows().items()} == dict(POSITIVES)
    worlds = [make_world(seed) for seed in range(6)]
    # AER-C, the best judge of the paper whose verdicts are known, has 0.677; the best 300 by three, 0.738.
    single = np.mean([w.truth[votes == 1].mean() for w in worlds for votes in w.votes])
    assert 0.65 < single < 0.70
    assert 70 < np.mean([precision_of(w, w.prior) for w in worlds]) < 76
    # They err together: of two judges' errors more are shared than by chance.
    wrong = world.votes != world.truth
    assert np.corrcoef(wrong[0], wrong[1])[0, 1] > 0.3


def test_five_accounts_have_a_hundred_files_and_ten_public_rows(world):
    oracle = GeneratedOracle(world, rules=SuiteRules(private_noise=6.0, public_noise=3.0))
    notebook = Notebook(world, oracle)
    for row in range(100):
        notebook.ask(np.arange(row, 1_106, 11), is_public=row < 10)
    with pytest.raises(BudgetSpent):
        notebook.ask(np.arange(0, 1_106, 3))
    # 100 owner figures; of 10 of them the public overall figure, and 5 benchmarks each: a digest counts once
    # for its cell, so 100 + 50.
    assert oracle.leak().figures == 150
    # 90 figures at 6, 10 at 3, and in the dearest benchmark 10 at 6: 90/72 + 10/18 + 10/72.
    assert oracle.leak().rho == pytest.approx(90 / 72 + 10 / 18 + 10 / 72)


def test_an_eleventh_public_row_is_refused(world):
    oracle = GeneratedOracle(world)
    notebook = Notebook(world, oracle)
    with pytest.raises(BudgetSpent):
        for row in range(11):
            notebook.ask(np.arange(row, 1_106, 12), is_public=True)


def test_files_of_suspicious_form_show_nothing(world):
    with pytest.raises(FileHeld):
        Notebook(world, GeneratedOracle(world)).ask(likely_negatives(world, 240)[:29])


def test_a_file_sent_again_in_another_dress_shows_the_same_figures(world):
    """Averaging over a hundred of them is averaging one number."""
    verdicts = world.votes[0]
    with_nulls = np.where(verdicts == 1, 1, -1).astype(np.int8)
    cells = []
    for _ in range(50):
        for column in (verdicts, with_nulls):
            oracle = GeneratedOracle(world)
            cells.append(oracle.figures(column)["labels"]["success"]["overall"]["tp"])
    assert set(cells) == {cells[0]}


def test_protected_figures_are_those_of_disclose(world):
    oracle = GeneratedOracle(world)
    report = oracle.exact_report(world.votes[0])
    shown = oracle.figures(world.votes[0])
    digests = digests_of(verdict_table(success=world.votes[0]), world.trajectories)
    assert shown == disclose(report, digests, oracle.rules, KEY, "owner")
