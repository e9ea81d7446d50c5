"""A year of corrections: the oracle of five accounts over label versions, and what it lets them gain.

`python -m tests.attacks.versions --seeds 16` prints the gains, in points of precision, a line a setting.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from statistics import NormalDist
from types import MappingProxyType, SimpleNamespace
from typing import Any, Final, Literal

import numpy as np

from arb.core.suite import SuiteRules
from submissions.privacy.disclosure import digests_of, disclose, hidden_half
from submissions.privacy.leak_budget import disclosures_in
from submissions.records.queries import disclosure_history
from submissions.records.statuses import SubmissionStatuses
from tests.attacks.findings import Notebook
from tests.attacks.gain_attacks import WIDTH, nearest_the_edge
from tests.attacks.observations import Belief, Observation, belief_after, observations_in
from tests.attacks.oracle import ACCOUNTS, GeneratedOracle
from tests.attacks.world import KEPT, World, make_world, precision_of
from tests.support.verdict_tables import verdict_table

CORRECTED = 0.01
"""Of the labels, the share that each new version turns round."""
START = datetime(2026, 3, 1, tzinfo=UTC)


def corrected(world: World, seed: int, version: int) -> World:
    """The world under the next label version: as many successes in each benchmark as before."""
    generator, truth = np.random.default_rng([seed, 11, version]), world.truth.copy()
    for rows in world.benchmark_rows().values():
        pairs = max(1, round(CORRECTED * rows.sum() / 2))
        for label in (0, 1):
            places = np.flatnonzero(rows & (world.truth == label))
            truth[generator.choice(places, min(pairs, len(places)), replace=False)] = 1 - label
    return replace(world, truth=truth)


@dataclass
class VersionsOracle(GeneratedOracle):
    """An oracle whose labels are corrected. Without ``has_budget`` as it was once: every owner sees every
    file's figures anew under each version, with new noise."""

    has_budget: bool = True
    version: int = 1
    scores: list[list[SimpleNamespace]] = field(default_factory=list)

    def _seen(self, verdicts: np.ndarray, audience: str) -> Mapping[str, Any]:
        report = super()._seen(verdicts, audience)
        if audience == "owner":
            self.scores.append([self._score(self.shown[-1][0])])
        return report

    def _score(self, verdicts: np.ndarray) -> SimpleNamespace:
        at = START + timedelta(days=self.version)
        return SimpleNamespace(
            id=self.version, label_version=self.label_version, scored_at=at, verdicts=verdicts
        )

    @property
    def label_version(self) -> str:
        return f"generated-{self.version}"

    def exact_report(self, success: np.ndarray) -> dict[str, Any]:
        return {**super().exact_report(success), "label_version": self.label_version}

    def correct(self, world: World) -> None:
        """A new label version, under which every file is scored."""
        self.world, self.version = world, self.version + 1
        for scores in self.scores:
            scores.append(self._score(scores[0].verdicts))

    def look_again(self) -> list[tuple[np.ndarray, Mapping[str, Any]]]:
        """What owners see of their older files now, where it is another figure than before."""
        return [
            (scores[-1].verdicts, self._disclose(scores[-1].verdicts))
            for scores in self.scores
            if len(scores) > 1 and self._shown_version(scores) == self.label_version
        ]

    def _shown_version(self, scores: list[SimpleNamespace]) -> str:
        if not self.has_budget:
            return scores[-1].label_version
        return disclosure_history(scores, SubmissionStatuses(), "a file")[-1][0].label_version

    def refresh(self, place: int) -> tuple[np.ndarray, Mapping[str, Any]]:
        """Ask for an older file's figures under the labels of now; it costs a file."""
        self.files_left -= 1
        verdicts = self.scores[place][0].verdicts
        return verdicts, self._disclose(verdicts)

    def _disclose(self, verdicts: np.ndarray) -> Mapping[str, Any]:
        file = verdict_table(success=verdicts)
        digests = digests_of(file, self.world.trajectories)
        report = disclose(self.exact_report(verdicts), digests, self.rules, self.key, "owner")
        self.disclosures += disclosures_in(report, digests, "colluders", "judge")
        return report


def over_versions(
    world: World, oracle: VersionsOracle, seed: int, versions: int, rounds: int = 12, refreshes: float = 0.0
) -> tuple[Belief, World]:
    """Adaptive halves in rounds, label versions between them; all files are looked at after each.

    ``refreshes`` is the share of the budget that goes to older files under newer labels. Gives the belief and
    the labels at the end.
    """
    notebook, generator = Notebook(world, oracle), np.random.default_rng([seed, 7])
    belief, now = Belief(world.prior, world.prior * (1 - world.prior)), world
    a_round = -(-oracle.files_left // rounds)
    for number in range(1, rounds + 1):
        aim = nearest_the_edge(belief, WIDTH)
        for _ in range(min(a_round, oracle.files_left)):
            if oracle.scores and generator.random() < refreshes and oracle.version > 1:
                verdicts, report = oracle.refresh(int(generator.integers(len(oracle.scores))))
                notebook.observations += observations_in(world, verdicts, report)
            else:
                half = aim[generator.random(WIDTH) < 0.5]
                notebook.ask(half, is_public=bool(oracle.public_rows_left))
        if number * versions // rounds > (number - 1) * versions // rounds and oracle.version < versions:
            now = corrected(now, seed, oracle.version)
            oracle.correct(now)
        for verdicts, report in oracle.look_again():
            notebook.observations += observations_in(world, verdicts, report)
        belief = belief_after(world, notebook.observations)
    while oracle.version < versions:  # re-scorings after the last file
        now = corrected(now, seed, oracle.version)
        oracle.correct(now)
        for verdicts, report in oracle.look_again():
            notebook.observations += observations_in(world, verdicts, report)
    return belief_after(world, notebook.observations), now


def gain_over_versions(seed: int, versions: int, has_budget: bool = True, refreshes: float = 0.0) -> float:
    """Points of precision that five accounts add in a year, against the labels at its end."""
    world = make_world(seed)
    oracle = VersionsOracle(world, key=b"key of seed %d" % seed, has_budget=has_budget)
    belief, last = over_versions(world, oracle, seed, versions, refreshes=refreshes)
    return precision_of(last, belief.mean) - precision_of(last, world.prior)


Ranking = Literal["nothing", "order", "figures"]
"""What an attacker uses of the half that ranks: the order of its public rows, or the noisy figures behind it,
which nobody sees."""


def gains_by_half(seed: int, accounts: int = ACCOUNTS, ranking: Ranking = "nothing") -> tuple[float, float]:
    """(gain on the half that is shown, gain on the half that ranks) of a year of adaptive halves.

    The attacker is given which half a task is in, and how many successes a benchmark has in each.
    """
    world, rules = make_world(seed), SuiteRules()
    hidden = hidden_half(world.trajectories, b"half of seed %d" % seed)
    generator, key = np.random.default_rng([seed, 7]), b"key of seed %d" % seed
    observations = [
        Observation(rows & half, int(world.truth[rows & half].sum()), 0.0)
        for rows in world.benchmark_rows().values()
        for half in (hidden, ~hidden)
    ]
    prior = belief = belief_after(world, observations)
    files, rows_left = accounts * rules.files_a_year, accounts * rules.public_rows_a_year
    shown, ranked = _part_of(world, ~hidden), _part_of(world, hidden)
    public: list[Observation] = []
    for start in range(0, files, files // 10):
        aim = nearest_the_edge(belief, WIDTH)
        for _ in range(min(files // 10, files - start)):
            half = np.zeros(len(world.truth), dtype=np.int8)
            half[aim[generator.random(WIDTH) < 0.5]] = 1
            observations += _counts(shown, half, ~hidden, rules, key, bool(rows_left))
            if rows_left:
                public.append(_counts(ranked, half, hidden, rules, key, True)[0])
                rows_left -= 1
        belief = belief_after(world, observations)
    if ranking != "nothing":
        observations += public if ranking == "figures" else _order_of(public, prior)
        belief = belief_after(world, observations)
    shown_gain, ranked_gain = (
        _precision(world, belief, part) - _precision(world, prior, part) for part in (~hidden, hidden)
    )
    return shown_gain, ranked_gain


def _order_of(rows: list[Observation], prior: Belief) -> list[Observation]:
    """The rows again with counts that only their order by precision says: where a row stands among the others
    is taken as that quantile of what was to be expected of it, noise included."""
    order = np.argsort(np.argsort([row.count / row.rows.sum() for row in rows]))
    found = []
    for row, place in zip(rows, order, strict=True):
        spread = np.sqrt(prior.variance[row.rows].sum() + row.sd**2)
        count = prior.mean[row.rows].sum() + spread * NormalDist().inv_cdf((place + 0.5) / len(rows))
        found.append(Observation(row.rows, count, row.sd))
    return found


def _counts(
    part: World, verdicts: np.ndarray, inside: np.ndarray, rules: SuiteRules, key: bytes, is_public: bool
) -> list[Observation]:
    """What a file shows of a half, as sums over all trajectories."""
    oracle = GeneratedOracle(part, rules=replace(rules, fewest_positives=0), key=key)
    report = (oracle.public_figures if is_public else oracle.figures)(verdicts[inside])
    found = []
    for seen in observations_in(part, verdicts[inside], report):
        rows = np.zeros(len(verdicts), dtype=bool)
        rows[np.flatnonzero(inside)[seen.rows]] = True
        found.append(Observation(rows, seen.count, seen.sd))
    return found


def _part_of(world: World, rows: np.ndarray) -> World:
    trajectories = tuple(t for t, inside in zip(world.trajectories, rows, strict=True) if inside)
    return World(
        trajectories, world.benchmarks[rows], world.truth[rows], world.votes[:, rows], world.prior[rows]
    )


def _precision(world: World, belief: Belief, rows: np.ndarray) -> float:
    """Precision, in points, of the most probable successes among some rows, as many as KEPT is of all."""
    return precision_of(_part_of(world, rows), belief.mean[rows], round(KEPT * rows.mean()))


RANKINGS: Final[Mapping[Ranking, str]] = MappingProxyType(
    {
        "nothing": "from the figures shown",
        "order": "and from the order of rows",
        "figures": "given the figures behind it",
    }
)


def main() -> None:
    """Print the gains of every setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=16)
    seeds = range(parser.parse_args().seeds)

    def line(words: str, gains: list[float]) -> None:
        error = np.std(gains, ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else np.nan
        print(f"{words:72} {np.mean(gains):+6.2f} ± {error:.2f}", flush=True)

    print(f"points of precision, {ACCOUNTS} accounts, a year, mean ± standard error over {len(seeds)} seeds")
    for versions in (1, 3, 6, 12):
        old = [gain_over_versions(seed, versions, has_budget=False) for seed in seeds]
        line(f"{versions} label versions, every re-scoring shown (as it was)", old)
        line(f"{versions} label versions, one budget", [gain_over_versions(seed, versions) for seed in seeds])
    for share in (0.5, 1.0):
        gains = [gain_over_versions(seed, 12, refreshes=share) for seed in seeds]
        line(f"12 label versions, one budget, {share:.0%} of later files are older ones refreshed", gains)
    for accounts in (ACCOUNTS, 20):
        found = {ranking: [gains_by_half(seed, accounts, ranking) for seed in seeds] for ranking in RANKINGS}
        what = f"{accounts} accounts, ranking half"
        line(f"{what}: on the half that is shown", [shown for shown, _ in found["nothing"]])
        for ranking, words in RANKINGS.items():
            line(f"{what}: on the half that ranks, {words}", [ranks for _, ranks in found[ranking]])


if __name__ == "__main__":
    main()
