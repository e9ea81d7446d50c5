"""The success rates page: how often agents succeed, who says so, and what training on a judge means."""

import hashlib

import gradio as gr

from dataset_script.vocabulary import BENCHMARKS
from leaderboard.rates import OVERALL
from space.address import Choosable, choices_in, wire_address
from space.fresh_choices import listed_html, take_choices
from space.page import Opening, Services, place
from space.rates_source import PRINTED, RateSources
from space.rates_view import benchmark_title, view_rates, view_training
from space.templating import render
from submissions.service import SubmissionService

CHOICES = "rates-choices"
DEFAULT = tuple(row_id for row_id, _, _ in PRINTED)


def build_rates_page(services: Services) -> None:
    """Lay the page out in the current Blocks."""
    service = services.submissions
    sources = RateSources(service)
    place("rates-head")
    with gr.Row(elem_classes="controls"):
        benchmark = gr.Radio(
            [(benchmark_title(name), name) for name in benchmarks_of(service)], value=OVERALL,
            label="Benchmark", elem_id="rates-benchmark", scale=2, min_width=320,
        )  # fmt: skip
        by = gr.Dropdown(
            sources.choices(), value=default_of(service), multiselect=True, max_choices=5,
            label="Evaluated by, beside the experts", elem_id="rates-by", min_width=260,
        )  # fmt: skip
    body = place("rates-body", elem_id="rates-body")

    def draw(chosen: str, ids: list[str] | None) -> str:
        return body_html(service, chosen, ids or [])

    page = gr.context.Context.root_block
    quiet = {"api_visibility": "private", "show_progress": "hidden", "trigger_mode": "always_last"}
    take_choices(page, by, CHOICES)  # submissions that came after the start of the server too
    wire_address(page, {"benchmark": benchmark, "by": by}, any_text={"by"})
    gr.on([benchmark.input, by.input], draw, [benchmark, by], body, **quiet)


def open_rates(services: Services, query: str) -> Opening:
    """The page as its address says, before Gradio is there."""
    service = services.submissions
    spec = [
        Choosable("benchmark", "one", OVERALL, benchmarks_of(service)),
        Choosable("by", "many", default_of(service)),
    ]
    chosen, _ = choices_in(query, spec)
    head = render("rates_head.html", labels_are_public=service.labels_for_public_figures() is not None)
    html = (
        f'<div data-part="rates-head">{head}{listed_html(RateSources(service).choices(), CHOICES)}</div>'
        f'<div data-part="rates-body">{body_html(service, chosen["benchmark"], chosen["by"])}</div>'
    )
    return Opening(html, hashlib.sha256(html.encode()).hexdigest())


def body_html(service: SubmissionService, benchmark: str, ids: list[str]) -> str:
    """The tables for a benchmark and the chosen evaluators."""
    asked = RateSources(service).ask(ids)
    known = benchmark if benchmark in benchmarks_of(service) else OVERALL
    view = view_rates(asked.evaluators, known) if asked.evaluators else None
    kept_axis, kept = view_training(service.board())
    return render("rates_body.html", view=view, problems=asked.problems, kept_axis=kept_axis, kept=kept)


def benchmarks_of(service: SubmissionService) -> tuple[str, ...]:
    """``overall`` and the benchmarks of the suite's test split, the official ones in the paper's order."""
    found = {trajectory.benchmark for trajectory in service.suite.split("test")}
    known = tuple(name for name in BENCHMARKS if name in found)
    return (OVERALL, *known, *sorted(found - set(known)))


def default_of(service: SubmissionService) -> list[str]:
    """Who is shown beside the experts at first: the paper's evaluators on the official suite."""
    known = {row_id for _, row_id in RateSources(service).choices()}
    return [row_id for row_id in DEFAULT if row_id in known]
