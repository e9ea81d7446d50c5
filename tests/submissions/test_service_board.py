import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from arb.core.settings import Settings
from submissions.app import SubmissionsApp
from submissions.scoring import board as board_module
from submissions.scoring import scorer
from tests.support.submissions import again, send, verdicts, write_suite

# The board


def test_the_official_board_has_the_published_rows_even_without_labels(tmp_path):
    service = SubmissionsApp(Settings(labels="none", state_dir=tmp_path / "state"))
    rows = service.records.board().rows
    assert sum(row.provenance == "published" for row in rows) == 13
    assert service.records.board().label_version is None


def test_the_board_has_the_same_bytes_after_a_restart(service):
    for n in range(4):
        send(
            service,
            verdicts(service.suite, misses=n, false_alarms=2 * n, repetition=True),
            judge=f"Judge {n % 3}",
        )
    restarted = again(service)
    assert restarted.intake.finish_scoring() == 0
    assert restarted.records.board().to_bytes() == service.records.board().to_bytes()


def test_the_board_does_not_depend_on_the_order_in_which_scores_were_written(
    service, monkeypatch, settings, tmp_path
):
    ticking = [datetime(2026, 1, 1, tzinfo=UTC)]

    def clock():
        return ticking[0]

    boards = []
    for place, late in enumerate((True, False)):
        mine = SubmissionsApp(settings.model_copy(update={"state_dir": tmp_path / str(place)}), clock=clock)
        for n in range(3):
            ticking[0] = datetime(2026, 1, 1, n, tzinfo=UTC)
            with monkeypatch.context() as patched:
                if late and n == 0:
                    patched.setattr(scorer, "record_score", lambda *arguments: False)
                send(mine, verdicts(mine.suite, misses=n), judge=f"Judge {n}")
        mine.intake.finish_scoring()
        boards.append(mine.records.board().to_bytes())
    assert boards[0] == boards[1]


def test_a_board_being_made_holds_up_no_submission(service, monkeypatch):
    send(service, verdicts(service.suite))
    making, submitted = threading.Event(), threading.Event()
    real = board_module.make_board

    def slow(*arguments, **options):
        making.set()
        assert submitted.wait(timeout=120), "a submission waited for the board"
        return real(*arguments, **options)

    monkeypatch.setattr(board_module, "make_board", slow)
    reader = threading.Thread(target=service.records.board)
    reader.start()
    assert making.wait(timeout=120)
    send(service, verdicts(service.suite, misses=1))
    submitted.set()
    reader.join(timeout=120)
    assert len(service.records.board().rows) == 2


def test_nothing_that_says_much_about_labels_is_on_the_board(service):
    send(service, verdicts(service.suite, misses=3, false_alarms=4))
    public = service.records.board().to_bytes().decode()
    assert "counts_by_task" not in public
    for task in ("webarena.3", "order-1-l2", "validation.2"):
        assert task not in public


def test_another_suite_over_the_same_records_has_a_board_of_its_own(service, tmp_path):
    send(service, verdicts(service.suite))
    folder = tmp_path / "other"
    (write_suite(folder)).rename(folder / "other-suite")
    other = SubmissionsApp(service.settings.model_copy(update={"suite": str(folder / "other-suite")}))
    assert other.intake.finish_scoring() == 0
    assert other.records.board().rows == ()
    receipt = send(other, verdicts(other.suite))
    assert receipt.is_new
    assert len(service.records.board().rows) == len(other.records.board().rows) == 1


# Threads of one process


def test_threads_may_be_the_first_to_use_a_service(settings):
    service = SubmissionsApp(settings)
    barrier = threading.Barrier(6)

    def work(_number: int) -> tuple[str, bytes]:
        barrier.wait(timeout=120)
        return service.label_version, service.records.board().to_bytes()

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(work, range(6)))) == 1
