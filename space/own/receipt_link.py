"""A submission to take along and to read: its receipt as a link, its metrics as tables."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from dataset_script.vocabulary import BENCHMARK_TITLES, LABEL_TITLES, LABELS
from leaderboard.report_tables import interval, percent
from space.templating import render
from submissions.receipts import Receipt


def receipt_link(receipt: Receipt) -> str:
    """The signed receipt as an address that holds it: what a link with ``download`` saves."""
    text = json.dumps(receipt.to_json(), indent=2, ensure_ascii=False) + "\n"
    return f"data:application/json;charset=utf-8,{quote(text)}"


def report_html(report: Mapping[str, Any]) -> str:
    """The metrics of a score report by benchmark, a table a label."""
    labels = {label: report["labels"][label] for label in LABELS if label in report["labels"]}
    return render(
        "report.html",
        report={"labels": labels},
        titles=BENCHMARK_TITLES,
        label_titles=LABEL_TITLES,
        percent=percent,
        interval=interval,
    )
