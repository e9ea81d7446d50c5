"""A page for trying the metric on verdicts and labels that you enter. Run it with ``python app.py``."""

from typing import Any

import evaluate
import gradio as gr

EXAMPLE = "1, 1\n1, 0\n0, 0\n, 1"


def parse_rows(text: str) -> tuple[list[int], list[int]]:
    """Return verdicts and labels from lines of ``verdict, label``; an empty cell means a missing value.

    Raises gr.Error with the number of every line that does not have this form.
    """
    verdicts, labels, wrong = [], [], []
    values = {"1": 1, "0": 0, "": -1, "-1": -1}
    for number, line in enumerate(text.splitlines(), start=1):
        cells = [cell.strip() for cell in line.split(",")]
        if cells == [""]:
            continue
        if len(cells) != 2 or any(cell not in values for cell in cells):
            wrong.append(str(number))
            continue
        verdicts.append(values[cells[0]])
        labels.append(values[cells[1]])
    if wrong:
        raise gr.Error(
            f"Line {', '.join(wrong[:10])}: write a verdict and a label, each 1, 0 or empty, like 1, 0"
        )
    return verdicts, labels


def build_page(metric: Any) -> gr.Blocks:
    def figures(text: str) -> list[list]:
        verdicts, labels = parse_rows(text)
        result = metric.compute(predictions=verdicts, references=labels)
        return [[name, "undefined" if value is None else value] for name, value in result.items()]

    with gr.Blocks(title="Judge precision") as page:
        gr.Markdown("# Judge precision\nEnter one trajectory per line: the judge's verdict, then the label.")
        rows = gr.Textbox(EXAMPLE, lines=8, label="verdict, label")
        table = gr.Dataframe(headers=["figure", "value"], interactive=False)
        gr.Button("Score").click(figures, rows, table)
    return page


if __name__ == "__main__":
    build_page(evaluate.load("judge_precision.py")).launch()
