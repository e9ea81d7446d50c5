"""dev_labels.csv is written as it is read."""

from hypothesis import given
from hypothesis import strategies as st

from dataset_script.dev_labels_file import render_dev_labels
from dataset_script.suite import SHIPPED, DevLabels, load_dev_labels, load_suite

ANSWERS = st.none() | st.booleans()


def test_the_samples_own_file_comes_out_byte_for_byte():
    said = load_dev_labels(load_suite("sample"))
    shipped = (SHIPPED / "sample" / "dev_labels.csv").read_text(encoding="utf-8")
    assert render_dev_labels(reversed(said)) == shipped


@given(st.lists(st.builds(DevLabels, st.just("shop/a/shop.1"), st.integers(1, 9), ANSWERS, ANSWERS, ANSWERS,
                          st.none() | st.integers(1, 4), st.none() | st.just("annotator-3")),
                unique_by=lambda row: row.annotation, max_size=9))  # fmt: skip
def test_what_is_written_is_read_again(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("suite")
    (folder / "trajectories.csv").write_text("trajectory_id,split\nshop/a/shop.1,dev\nshop/a/shop.2,test\n")
    rows = [
        *(row for row in rows if row.annotation != 1),
        DevLabels("shop/a/shop.1", 1, True, None, False, 4),
    ]
    (folder / "dev_labels.csv").write_text(render_dev_labels(rows), encoding="utf-8")
    assert load_dev_labels(load_suite(folder)) == tuple(sorted(rows, key=lambda row: row.annotation))
