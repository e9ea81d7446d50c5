from arb.core import vocabulary


def test_every_benchmark_has_a_title_and_a_short_title():
    assert tuple(vocabulary.BENCHMARK_TITLES) == vocabulary.BENCHMARKS
    assert tuple(vocabulary.BENCHMARK_SHORT_TITLES) == vocabulary.BENCHMARKS


def test_every_label_has_a_title_and_aliases_lead_to_labels():
    assert tuple(vocabulary.LABEL_TITLES) == vocabulary.LABELS
    assert set(vocabulary.LABEL_ALIASES.values()) <= set(vocabulary.LABELS)
    assert not set(vocabulary.LABEL_ALIASES) & set(vocabulary.LABELS)


def test_every_label_is_a_column_of_a_prediction_file_and_only_two_columns_are_required():
    assert set(vocabulary.LABELS) < set(vocabulary.PREDICTION_COLUMNS)
    assert vocabulary.REQUIRED_PREDICTION_COLUMNS == ("trajectory_id", "success")
    assert len(set(vocabulary.PREDICTION_COLUMNS)) == len(vocabulary.PREDICTION_COLUMNS)


def test_only_one_state_carries_a_verdict():
    assert vocabulary.STATES[0] == "ok"
    assert (
        len(set(vocabulary.STATES)) == 7
    )  # ok and the six ways to give no verdict (docs/reference, columns and states)
