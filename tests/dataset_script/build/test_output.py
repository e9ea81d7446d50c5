import pytest

from dataset_script.build.output import MARKER, OutputError, check_replaceable, put_in_place, work_folder


@pytest.fixture
def ours(tmp_path):
    """A folder that looks like a build made before."""
    out = tmp_path / "place" / "out"
    (out / "data").mkdir(parents=True)
    (out / "README.md").write_text(f"---\n---\n{MARKER}\nold")
    return out


def stage_new(staged):
    (staged / "README.md").write_text(f"{MARKER}\nnew")


def test_nothing_an_empty_folder_and_our_own_build_may_be_replaced(tmp_path, ours):
    (tmp_path / "empty").mkdir()
    for out in (tmp_path / "absent", tmp_path / "empty", ours):
        check_replaceable(out, tmp_path / "source")


def test_a_build_with_other_things_in_it_is_refused_with_their_names(tmp_path, ours):
    (ours / ".git").mkdir()
    with pytest.raises(OutputError, match=r"first move \.git out of it"):
        check_replaceable(ours, tmp_path / "source")


def test_a_file_is_refused(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(OutputError, match="is a file"):
        check_replaceable(tmp_path / "out", tmp_path / "source")


def test_the_source_and_what_holds_it_are_refused(ours):
    for source in (ours, ours / "data" / "source"):
        with pytest.raises(OutputError, match="contains the source"):
            check_replaceable(ours, source)


def test_a_place_whose_parents_are_absent_is_made_with_ordinary_permissions(tmp_path):
    out = tmp_path / "a" / "b"
    with work_folder(out) as work:
        stage_new(work.staged)
        put_in_place(work.staged, out)
    (tmp_path / "plain").mkdir()
    assert out.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_an_interruption_between_the_two_renames_brings_the_old_one_back(ours, monkeypatch):
    real, calls = type(ours).rename, []

    def rename(path, target):
        calls.append(path.name)
        if len(calls) == 2:  # the old one is aside, the new one not yet in place
            raise KeyboardInterrupt
        return real(path, target)

    monkeypatch.setattr(type(ours), "rename", rename)
    with pytest.raises(KeyboardInterrupt), work_folder(ours) as work:
        stage_new(work.staged)
        put_in_place(work.staged, ours)
    assert len(calls) == 3
    assert (ours / "README.md").read_text().endswith("old")
    assert list(ours.parent.iterdir()) == [ours]


def test_where_something_else_came_meanwhile_the_old_one_is_not_lost(ours, monkeypatch):
    real = type(ours).rename

    def rename(path, target):
        if path.name == "staged":
            target.mkdir()
            (target / "sample").touch()
        return real(path, target)

    monkeypatch.setattr(type(ours), "rename", rename)
    with pytest.raises(OSError), work_folder(ours) as work:
        stage_new(work.staged)
        put_in_place(work.staged, ours)
    (aside,) = ours.parent.glob(f".{ours.name}.replaced-*")
    assert (aside / "README.md").read_text().endswith("old")
