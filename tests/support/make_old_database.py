"""Make the records of a release, for later code to upgrade: ``tests/submissions/records/databases/<commit>``.

Run it with the release's own code, from a checkout of the release, once the release is out:

    git worktree add /tmp/release COMMIT && cd /tmp/release
    python HERE/tests/support/make_old_database.py HERE/tests/submissions/records/databases/COMMIT

It uses only what every release since 7d56a80 has. The folder that it writes is small and holds nothing of the
machine. The secret in it is made up and serves nothing else:

    suite/small      a suite with private labels that ranks by a hidden half
    records          records.sqlite, the stored files and the secret, as the release left them
    backup           what `arb submissions export` wrote
    shown.json       what the release showed: reports to owners, rows to everybody
"""

import json
import shutil
import sqlite3
import sys
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path.cwd()))  # the code of the release

from submissions.app import SubmissionsApp
from submissions.intake.accounts import Actor
from submissions.records.backup import export_to_folder
from submissions.scoring.rescore import publish, rescore
from submissions.startup import open_service
from tests.support.canary import CANARIES
from tests.support.submissions import send, settings_for, verdicts, write_suite

SECRET = "3f1e6c0a9b5d4782c61d0e8fa4b73952"
RULES = 'labels = "private"\n[rules]\nfewest_positives = 1\nround_days = 3\npublic_rows_a_year = 2\n'
MIA = Actor("Mia", is_maintainer=True)


def make(folder: Path) -> None:
    """Submit two files, make one row public, correct a label, and show one file under the new labels."""
    suite = write_suite(folder / "suite")
    (suite / "suite.toml").write_text(RULES)
    labels = (folder / "suite" / "labels.csv").read_text()
    for number, canary in enumerate(CANARIES):
        labels = labels.replace(canary, f"name-{number}")
    (folder / "suite" / "labels.csv").unlink()
    days = count()
    (folder / "records").mkdir()
    (folder / "records" / "secret").write_text(SECRET)
    settings = settings_for(folder / "suite", folder / "records", labels="records", secret=None)
    open_service(settings).close()
    service = SubmissionsApp(
        settings, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=next(days))
    )
    publish(service, labels.encode(), MIA, "the first labels")
    sent = {
        name: send(service, verdicts(service.suite, misses=misses), judge=name, account=name).submission_id
        for name, misses in (("Ada", 1), ("Bob", 4))
    }
    service.moderation.publish(sent["Ada"], Actor("Ada"))
    publish(service, labels.replace("Unsuccessful", "Successful", 1).encode(), MIA, "one was wrong")
    rescore(service, MIA)
    service.moderation.refresh(sent["Bob"], Actor("Bob"), service.label_version)
    for _ in range(3):
        service.clock()  # the round ends
    shown = {
        "label_version": service.label_version,
        "owners": {name: service.records.submission(sent[name], Actor(name)).report for name in sent},
        "rows": {row.judge: row.labels["success"]["overall"] for row in service.records.board().rows},
    }
    (folder / "shown.json").write_text(json.dumps(shown, sort_keys=True, indent=1) + "\n")
    export_to_folder(service, folder / "backup")
    service.close()
    service.engine.dispose()
    database, small = folder / "records" / "records.sqlite", folder / "small.sqlite"
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA page_size=1024")
        connection.execute("VACUUM INTO ?", [str(small)])
    connection.close()
    for left in (folder / "records").glob("records.sqlite*"):
        left.unlink()
    small.rename(database)
    shutil.rmtree(folder / "suite" / "cache", ignore_errors=True)


if __name__ == "__main__":
    make(Path(sys.argv[1]).absolute())
