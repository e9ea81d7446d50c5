from dataset_script.build.report import LEFT_OUT, NOTES, BuildReport, finding, finding_line, lines


def test_reasons_are_counted_and_names_are_given_with_their_details():
    report = BuildReport("own")
    report.left_out = [finding("not_json", "a.json", "cut off"), finding("missing", "x/y/z")]
    report.notes = [finding("no_goal", "x/y/a")]
    text = "\n".join(lines(report))
    assert f"       1  {LEFT_OUT['not_json']}" in text
    assert "  a.json: cut off" in text
    assert f"{LEFT_OUT['missing']}:\n  x/y/z" in text
    assert f"{NOTES['no_goal']}:\n  x/y/a" in text


def test_more_than_twenty_names_are_counted_and_the_way_to_all_is_reported():
    report = BuildReport("own")
    report.left_out = [finding("missing", f"id-{index}") for index in range(25)]
    text = list(lines(report))
    assert "      25  in the suite, but not in the source" in text
    assert sum(line.startswith("  id-") for line in text) == 20
    assert "  … and 5 more; use --report FILE to get all names" in text
    assert len(report.as_json()["left_out"]) == 25


def test_a_code_without_words_is_reported_all_the_same():
    report = BuildReport("own")
    report.left_out = [finding("strange", "a.bin", "of another source")]
    text = "\n".join(lines(report))
    assert "       1  strange" in text and "  a.bin: of another source" in text


def test_a_line_is_kept_short():
    assert len(finding_line(finding("not_json", "a" * 5_000, "b" * 5_000))) == 400


def test_rows_are_reported_by_configuration():
    report = BuildReport("own", rows={"steps": {"dev": 20, "test": 19}})
    assert list(lines(report))[1] == "  steps: dev 20, test 19"


def test_control_characters_in_names_do_not_reach_the_terminal():
    assert finding_line(finding("not_json", "a\x1b[31m\udcff.json")) == "a\ufffd[31m\ufffd.json"
