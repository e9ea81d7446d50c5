"""Dev labels from annotations: primary first, opaque annotators, and never a test trajectory."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataset_script.dev_labels_file import render_dev_labels
from dataset_script.suite import DevLabels, load_dev_labels, load_suite
from leaderboard.annotations import Annotation, AnnotationsInvalid
from leaderboard.suite_labels import dev_labels_of, repeated_rows

DEV, TEST = "webarena/agent-a/webarena.1", "webarena/agent-a/webarena.2"


@pytest.fixture
def suite(tmp_path):
    (tmp_path / "trajectories.csv").write_text(f"trajectory_id,split\n{DEV},dev\n{TEST},test\n")
    return load_suite(tmp_path)


def test_the_first_annotation_is_the_primary_one_and_names_become_ids(suite):
    given_ones = [
        Annotation(TEST, "Zoe", "yes", "yes", "yes", "4"),
        Annotation(DEV, "Ada", "yes", "no", "unsure", "4"),
        Annotation(DEV, " Zoe ", "no", "unsure", "yes", "unsure"),
    ]
    # Zoe is annotator-1 by her row on a test trajectory: ids are the same in every file made of these rows.
    assert dev_labels_of(suite, given_ones) == (
        DevLabels(DEV, 1, True, False, None, 4, "annotator-2"),
        DevLabels(DEV, 2, False, None, True, None, "annotator-1"),
    )


ANNOTATIONS = st.builds(
    Annotation,
    st.sampled_from((DEV, TEST)),
    st.none() | st.sampled_from(("Ada Lovelace", "Bob")),
    *[st.none() | st.sampled_from(("yes", "no", "unsure"))] * 3,
    st.none() | st.sampled_from(("1", "4", "unsure")),
)


@given(st.lists(ANNOTATIONS, max_size=9))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_test_trajectory_and_no_name_gets_out_and_a_suite_reads_it(suite, annotations):
    text = render_dev_labels(dev_labels_of(suite, annotations))
    assert TEST not in text and "Ada" not in text and "Bob" not in text
    suite.dev_labels_path.write_text(text)
    assert len(load_dev_labels(suite)) == sum(each.trajectory_id == DEV for each in annotations)


def test_more_annotations_than_can_be_kept_are_refused(suite):
    with pytest.raises(AnnotationsInvalid, match=f"{DEV}: has 10 annotations; dev labels keep 9"):
        dev_labels_of(suite, [Annotation(DEV, f"a{n}", "yes") for n in range(10)])


def test_one_persons_rows_in_two_files_are_named_and_in_one_file_are_not():
    ada, bob = Annotation(DEV, "Ada", "yes"), Annotation(DEV, "Bob", "no")
    nobody = Annotation(DEV, None, "no")
    assert repeated_rows([("a.csv", [ada, ada, nobody]), ("b.csv", [bob, nobody])]) == []
    assert repeated_rows([("a.csv", [ada]), ("b.csv", [bob, Annotation(DEV, "Ada ", "no")])]) == [
        f"{DEV}: Ada has a row in a.csv and one in b.csv"
    ]
