"""A public hash of a record whose content can be guessed gives hidden labels away; with a nonce it does not.

60 trajectories, of which the attacker lacks five labels, and one file. Whatever else stands in the record of
its score follows from the file and from the labels: 2^5 = 32 guesses, one hash each, compared with the head
of the log on the About page. (Without the moment of scoring, which this attacker is given, 525,001 hashes
did the same: 32 for each microsecond of 16 ms.)
"""

import csv
from dataclasses import replace
from itertools import product

import numpy as np

from space.pages.about.page import trust_of
from submissions.app import SubmissionsApp
from submissions.intake.accounts import Actor
from submissions.records.database import snapshot
from submissions.records.event_log import Event, events_after, hash_of
from submissions.scoring.scorer import score_of
from tests.attacks.service_oracle import Clock
from tests.support.submissions import RELEASED_HEADER, declaration, settings_for

UNKNOWN = (3, 17, 29, 41, 58)
TRUTH = np.random.default_rng(4).integers(0, 2, 60)


def small_service(folder) -> SubmissionsApp:
    """60 trajectories whose labels are private, without a ranking half or files to be held."""
    suite = folder / "small"
    suite.mkdir()
    ids = [f"webarena/agent/webarena.{n:02d}" for n in range(60)]
    (suite / "suite.toml").write_text('labels = "private"\n[rules]\nfewest_positives = 1\n')
    (suite / "trajectories.csv").write_text("\n".join(["trajectory_id,split", *(f"{i},test" for i in ids)]))
    with (folder / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(RELEASED_HEADER)
        for name, answer in zip(ids, TRUTH, strict=True):
            answers = ("Successful" if answer else "Unsuccessful", "No", "2. Suboptimal", "No")
            writer.writerow(("A", "webarena", name.split("/")[2], "agent", "e", *answers))
    settings = settings_for(folder, folder / "state", secret="244743c0676a52704dec7742e95ee8c1")
    return SubmissionsApp(settings, clock=Clock())


def guesses_that_fit(service: SubmissionsApp, upload, head: str, submitted: Event) -> list[tuple]:
    """Values of the unknown labels under which the record of the score would have this hash."""
    known = service.labels.test  # of it the attacker uses what it is said to have: all but five labels
    found = []
    for guess in product((0, 1), repeat=len(UNKNOWN)):
        column = known.primary["success"].copy()
        column[list(UNKNOWN)] = guess
        labels = replace(known, primary={**known.primary, "success": column})
        body = score_of(upload.check.aligned, labels, service.half_key)
        body["submission_id"] = submitted.body["submission_id"]
        record = Event(2, "scored", submitted.at, submitted.actor, body, submitted.hash, "")
        found += [guess] if hash_of(record) == head else []
    return found


def test_no_guess_at_five_labels_is_confirmed_by_a_public_hash(tmp_path):
    service = small_service(tmp_path)
    rows = [f'{{"trajectory_id": "{t.trajectory_id}", "success": true}}' for t in service.suite.split("test")]
    rows[0] = rows[0].replace("true", "false")
    upload = service.intake.check("\n".join(rows).encode(), "verdicts.jsonl", "test")
    receipt = service.intake.submit(upload, declaration(), Actor("Ada")).receipt
    with snapshot(service.engine) as session:
        submitted, scored = events_after(session)
    assert submitted.hash == receipt.record_hash
    head = trust_of(service)["head"]
    assert head == scored.hash
    assert guesses_that_fit(service, upload, head, submitted) == []
    # It is the nonce alone that no guess has.
    assert hash_of(scored) == head
    assert hash_of(replace(scored, nonce=None)) != head
