"""Attacks that make labels follow for certain from exact counts, within the files of five accounts.

Each takes counts at their word: its claims are what logic would give. Under noise they are what a careless
attacker would believe.
"""

from collections import deque
from contextlib import suppress

import numpy as np

from tests.attacks.findings import Findings, Notebook, disguise, likely_negatives, undecided
from tests.attacks.oracle import FileHeld, Oracle
from tests.attacks.world import World


def single_item(world: World, oracle: Oracle) -> Findings:
    """One file, then the same with one trajectory more: the count rises by its label. 1 label a file."""
    notebook = Notebook(world, oracle)
    targets = undecided(world, oracle.files_left - 1)
    base = disguise(world, targets)
    known = notebook.ask(base)
    claims = {}
    for target in targets:
        difference = notebook.ask(np.append(base, target)) - known
        if difference in (0, 1):
            claims[int(target)] = difference
    return Findings(claims, notebook.observations)


def differencing(world: World, oracle: Oracle, group: int = 8) -> Findings:
    """The same with a group of likely negatives: none of them a success settles all of them."""
    notebook = Notebook(world, oracle)
    targets = likely_negatives(world, (oracle.files_left - 1) * group)
    base = disguise(world, targets)
    known = notebook.ask(base)
    claims = {}
    for members in targets.reshape(-1, group):
        claims |= _all_or_none(members, notebook.ask(np.append(base, members)) - known)
    return Findings(claims, notebook.observations)


def group_splitting(world: World, oracle: Oracle, group: int = 16) -> Findings:
    """Groups that are neither all nor none are halved; one half's count gives the other's."""
    notebook = Notebook(world, oracle)
    targets = undecided(world, 25 * group)
    base = disguise(world, targets)
    known = notebook.ask(base)
    claims: dict[int, int] = {}
    waiting = deque((members, None) for members in targets.reshape(-1, group))
    while waiting and oracle.files_left:
        members, count = waiting.popleft()
        if count is None:
            count = notebook.ask(np.append(base, members)) - known
        settled = _all_or_none(members, count)
        claims |= settled
        if not settled and 0 < count < len(members) and oracle.files_left:
            left, right = np.array_split(members, 2)
            of_left = notebook.ask(np.append(base, left)) - known
            waiting.appendleft((right, count - of_left))
            waiting.appendleft((left, of_left))
    return Findings(claims, notebook.observations)


def _all_or_none(members: np.ndarray, count: int) -> dict[int, int]:
    if count in (0, len(members)):
        return dict.fromkeys(members.tolist(), int(count > 0))
    return {}


def negative_blocks(world: World, oracle: Oracle, block: int = 30) -> Findings:
    """Disjoint blocks of likely negatives, each a file: precision 0 settles the whole block."""
    notebook = Notebook(world, oracle)
    targets = likely_negatives(world, 24 * block)
    claims: dict[int, int] = {}
    for members in targets.reshape(-1, block):
        with suppress(FileHeld):  # a block that lies in one benchmark
            if notebook.ask(members) == 0:
                claims |= dict.fromkeys(members.tolist(), 0)
    return Findings(claims, notebook.observations)


def detecting_matrices(world: World, oracle: Oracle) -> Findings:
    """Cantor and Mills 1966, in Lindstrom's form: 63 files for 192 labels, 31 for 80, after one for the base.

    For the subsets of k things as files (all but the empty one) each subset A has |A| columns, labels here.
    Column j of A is in file B if it is in file B and A, and it is in 2^(j-1) files B within A, all of odd
    size. Then, over the files within A, the sum of (-1)^|B| times the counts is minus the sum of 2^(j-1)
    times the labels of A, once the larger subsets' labels are taken off: the digits are the labels.
    """
    notebook = Notebook(world, oracle)
    sizes = (6, 5)
    targets = undecided(world, sum(k * 2 ** (k - 1) for k in sizes))
    base = disguise(world, targets)
    known = notebook.ask(base)
    claims: dict[int, int] = {}
    for k in sizes:
        columns = _detecting_columns(k)
        members, targets = targets[: len(columns)], targets[len(columns) :]
        counts = np.zeros(2**k, dtype=int)
        for file in range(1, 2**k):
            chosen = [place for place, (_, _, files) in zip(members, columns, strict=True) if files[file]]
            counts[file] = notebook.ask(np.append(base, np.array(chosen, dtype=int))) - known
        claims |= _decoded(counts, columns, members)
    return Findings(claims, notebook.observations)


def _detecting_columns(k: int) -> list[tuple[int, int, np.ndarray]]:
    """(subset A as bits, j from 0, in which file: bool of shape (2^k,)), larger subsets first."""
    columns = []
    for subset in sorted(range(1, 2**k), key=int.bit_count, reverse=True):
        odd = [file for file in range(2**k) if file & subset == file and file.bit_count() % 2]
        for digit in range(subset.bit_count()):
            inside = np.isin(np.arange(2**k) & subset, odd[: 2**digit])
            columns.append((subset, digit, inside))
    return columns


def _decoded(counts: np.ndarray, columns: list, members: np.ndarray) -> dict[int, int]:
    """Labels of the members; a sum that no labels can have claims nothing."""
    counts, claims = counts.copy(), {}
    files = np.arange(len(counts))
    signs = np.array([1 if file.bit_count() % 2 else -1 for file in range(len(counts))])
    by_subset: dict[int, list] = {}
    for place, (subset, digit, inside) in zip(members.tolist(), columns, strict=True):
        by_subset.setdefault(subset, []).append((place, digit, inside))
    for subset, found in by_subset.items():
        within = files & subset == files
        total = int((signs * counts)[within].sum())
        if not 0 <= total < 2 ** len(found):
            continue
        for place, digit, inside in found:
            claims[place] = total >> digit & 1
            counts -= claims[place] * inside
    return claims


def random_design(world: World, oracle: Oracle) -> Findings:
    """As many random halves of a set as it has labels, and some: least squares, rounded to labels.

    Claims a label where the solution is within 0.1 of 0 or 1.
    """
    notebook = Notebook(world, oracle)
    targets = undecided(world, oracle.files_left - 10)
    base = disguise(world, targets)
    known = notebook.ask(base)
    halves = np.random.default_rng(1).random((oracle.files_left, len(targets))) < 0.5
    counts = [notebook.ask(np.append(base, targets[half])) - known for half in halves]
    solution = np.linalg.lstsq(halves.astype(float), np.array(counts, dtype=float), rcond=None)[0]
    labels = np.rint(solution)
    is_claimed = (np.abs(solution - labels) < 0.1) & np.isin(labels, (0, 1))
    claims = dict(zip(targets[is_claimed].tolist(), labels[is_claimed].astype(int).tolist(), strict=True))
    return Findings(claims, notebook.observations)


def public_cells(world: World, oracle: Oracle) -> Findings:
    """Integer reasoning over the cells of ten public rows: what all label sets with these counts agree on.

    Five rows are the judges' files, five have some likely negatives in each benchmark. Trajectories in the
    same rows and benchmark are one group, whose number of successes is bounded by each sum in turn until
    nothing moves. A group that must be all or none is claimed; where the bounds contradict each other the
    counts are impossible, and nothing is.
    """
    notebook = Notebook(world, oracle)
    for row in (*(world.votes == 1), *_small_cells(world, 5, 7)):
        notebook.ask(row, is_public=True)
    sums = np.array([o.rows for o in notebook.observations if o.rows.any()])
    sums = np.vstack([sums, [world.benchmarks == name for name in world.benchmark_rows()]])
    counts = [o.count for o in notebook.observations if o.rows.any()]
    counts += [int(world.truth[rows].sum()) for rows in sums[len(counts) :]]  # every report says the totals
    patterns, groups, sizes = np.unique(sums, axis=1, return_inverse=True, return_counts=True)
    low, high = _bounds(patterns.astype(int), np.array(counts), sizes)
    claims: dict[int, int] = {}
    if (low <= high).all():
        claims = {
            place: int(low[group] > 0)
            for place, group in enumerate(groups.ravel().tolist())
            if low[group] == high[group] and low[group] in (0, sizes[group])
        }
    return Findings(claims, notebook.observations)


def _small_cells(world: World, rows: int, size: int) -> list[np.ndarray]:
    """Places for each row: ``size`` likely negatives of every benchmark, no two rows sharing any."""
    cells = []
    for inside in world.benchmark_rows().values():
        places = np.flatnonzero(inside)
        least = places[np.argsort(world.prior[places], kind="stable")[: rows * size]]
        cells.append(least.reshape(rows, size))
    return list(np.concatenate(cells, axis=1))


def _bounds(member: np.ndarray, counts: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least and most successes of each group; ``member`` (sums, groups) says which sum counts which group."""
    low, high = np.zeros(len(sizes), dtype=int), sizes.copy()
    while True:
        spare_high = counts[:, None] - (member @ low)[:, None] + low  # what is left when the others are least
        spare_low = counts[:, None] - (member @ high)[:, None] + high
        new_high = np.minimum(high, np.where(member, spare_high, high).min(axis=0))
        new_low = np.maximum(low, np.where(member, spare_low, low).max(axis=0))
        if ((new_low == low) & (new_high == high)).all() or (new_low > new_high).any():
            return new_low, new_high
        low, high = new_low, new_high


CERTAIN_ATTACKS = (
    single_item,
    differencing,
    group_splitting,
    negative_blocks,
    detecting_matrices,
    random_design,
    public_cells,
)
