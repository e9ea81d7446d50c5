"""A judge's result to take along: `.eval_results` for its model's repository on the Hub, and BibTeX."""

import re
from typing import Final

from dataset_script.citation import PAPER_BIBTEX
from dataset_script.suite import OFFICIAL
from dataset_script.vocabulary import LABELS
from leaderboard.board import Board, BoardRow
from leaderboard.report_tables import percent
from space.row_names import short_name

OFFICIAL_DATASET: Final = "McGill-NLP/agent-reward-bench"
_LATEX: Final = str.maketrans(
    {
        **{mark: f"\\{mark}" for mark in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
    }
)


def eval_results_yaml(board: Board, row: BoardRow) -> str:
    """What goes into ``.eval_results/agent-reward-bench.yaml``: an entry for each label with a precision.

    Values are percentages with one decimal, as on the board; task ids are the labels, as in the dataset's
    eval.yaml. Empty where no label has a precision.
    """
    import yaml
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    entries = []
    for label in LABELS:
        overall = (row.labels.get(label) or {}).get("overall")
        if overall is None or overall["precision"] is None:
            continue
        source = {"source_url": row.link, "source_name": row.source} if row.link else {}
        entries.append(
            EvalResultEntry(
                dataset_id=OFFICIAL_DATASET if board.suite == OFFICIAL else f"OWNER/{board.suite}",
                task_id=label,
                value=float(percent(overall["precision"])),
                date=row.date[:10],
                notes=_notes(board, row, overall),
                **source,
            )
        )
    if not entries:
        return ""
    return yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True, width=56)


def judge_bibtex(row: BoardRow) -> str:
    """A BibTeX entry for the judge's row, then the paper's; whatever people wrote is escaped for LaTeX."""
    if row.provenance in ("published", "reference") and row.id.startswith(("paper/", "reference/")):
        return PAPER_BIBTEX  # its metrics are those of the paper
    lines = [
        f"  title        = {{{{{_latex(short_name(row))}, a judge of web agents}}}},",
        f"  author       = {{{_authors(row.authors or row.account)}}},",
        f"  year         = {{{row.date[:4]}}},",
        f"  howpublished = {{{_latex(_where(row))}}},",
    ]
    if row.link:
        lines.append(f"  url          = {{{row.link.translate(str.maketrans({'{': '%7B', '}': '%7D'}))}}},")
    entry = "\n".join([f"@misc{{{_key(row)},", *lines, "}"])
    return f"{entry}\n\n{PAPER_BIBTEX}"


def _notes(board: Board, row: BoardRow, overall: dict) -> str:
    said = [f"precision in percent; recall {percent(overall['recall'])}; {overall['n']:,} test trajectories"]
    if "noise" in overall:
        said.append(f"counts carry noise of ± {overall['noise']['tp_sd']:g} true positives")
    if row.provenance == "scored":
        said.append(f"submission {row.id}, labels {board.label_version}")
    else:
        said.append(row.provenance)
    return "; ".join(said)


def _where(row: BoardRow) -> str:
    if row.provenance == "scored":
        return f"AgentRewardBench leaderboard, submission {row.id}"
    return f"AgentRewardBench leaderboard, {row.source}"


def _authors(names: str) -> str:
    """``Ada, Bob et al.`` as BibTeX wants it: ``Ada and Bob and others``."""
    names = re.sub(r",?\s+et al\.?", " and others", names)
    parts = [part.strip() for part in re.split(r"\s*[,;]\s*|\s+and\s+|\s+&\s+", names) if part.strip()]
    return " and ".join(_latex(part) for part in parts)


def _key(row: BoardRow) -> str:
    word = re.sub(r"[^a-z0-9]", "", row.judge.lower())[:24] or "judge"
    return f"{word}{row.date[:4]}"


def _latex(text: str) -> str:
    return text.translate(_LATEX)
