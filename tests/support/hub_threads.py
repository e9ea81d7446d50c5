"""What the Hub and a service hold, for tests to look at."""

from concurrent.futures import ThreadPoolExecutor

from submissions.hub.repository import event_file_of, read_lines
from submissions.records.database import snapshot
from submissions.records.event_log import Event, check_event_log, events_after
from tests.submissions.hub.conftest import RECORDS
from tests.support.submissions import send


def contents(hub, repo: str = RECORDS) -> dict[str, bytes]:
    """The files of a repository by path."""
    return {path: content.data for path, content in hub.repository(repo).head.files.items()}


def records_on(hub) -> list[Event]:
    """The records that the Hub holds, in order; the chain is whole."""
    found = contents(hub)
    spans = [span for path in sorted(found) if (span := event_file_of(path))]
    records = [record for span in spans for record in read_lines(found[span.path], span)]
    assert check_event_log(records) == []
    return records


def records_of(service) -> list[Event]:
    """The records of a service."""
    with snapshot(service.engine) as session:
        return events_after(session)


def titles(hub, repo: str = RECORDS) -> list[str]:
    """What the commits say, the first one first."""
    return [commit.title for commit in hub.repository(repo).commits]


def send_at_once(service, contents_: list[bytes], **changes) -> list:
    """Submit files from as many threads, each as a judge of its own; the receipts."""
    with ThreadPoolExecutor(len(contents_)) as pool:
        sent = [
            pool.submit(send, service, content, judge=f"Judge {n}", **changes)
            for n, content in enumerate(contents_)
        ]
    return [each.result() for each in sent]
