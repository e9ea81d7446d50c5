"""What a user of Inspect and Scout runs, with their own packages (`tests/arb/test_inspect_and_scout.py`).

    python tests/support/inspect_packages.py eval LOGS OPTIONS     # evaluate with a scorer; prints the scores
    python tests/support/inspect_packages.py scan LOGS OPTIONS     # scan the logs; prints the results
    python tests/support/inspect_packages.py imported OPTIONS      # scan transcripts that have no log

OPTIONS are those of the judge, in JSON.
"""

import asyncio
import json
import sys
import tempfile

import arb

PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAA"
    "AABJRU5ErkJggg=="
)
TOWNS = 8


def tasks(options: dict) -> list:
    from inspect_ai import Task
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ContentImage, ContentText
    from inspect_ai.solver import basic_agent, generate, multiple_choice, prompt_template, system_message
    from inspect_ai.tool import ToolError, tool

    @tool
    def look_up():
        async def execute(town: int) -> str:
            """Look up a town.

            Args:
                town: The town's number.
            """
            if town % 4 == 0:
                raise ToolError("not known")
            return f"Town {town} is Bergen."

        return execute

    scorer = arb.inspect.scorer(**options)
    picture = [ContentText(text="What is this?"), ContentImage(image=PICTURE)]
    talk = [ChatMessageSystem(content="Be brief."), ChatMessageUser(content=picture)]
    return [
        Task(
            name="towns",
            dataset=[Sample(id=n, input=f"Find town {n}.", target="SECRET") for n in range(TOWNS)],
            solver=basic_agent(init=system_message("Think."), tools=[look_up()]),
            scorer=scorer,
        ),
        Task(
            name="template",
            dataset=[Sample(id="a/b c", input="Say hello.", target="SECRET")],
            solver=[prompt_template("{prompt} Do it in Norwegian."), generate()],
            scorer=scorer,
        ),
        Task(name="talk", dataset=[Sample(input=talk, target="SECRET")], solver=generate(), scorer=scorer),
        Task(
            name="choice",
            dataset=[Sample(input="Which?", choices=["one", "two"], target="A")],
            solver=multiple_choice(),
            scorer=scorer,
        ),
    ]


def outputs():
    """A look at the town of the task, and then the answer; other tasks get an answer only."""
    from inspect_ai.model import ModelOutput

    def output(messages, tools, *_):
        if not tools:
            return ModelOutput.from_content("mockllm/model", f"ANSWER: A ({messages[-1].text})")
        number = next(int(m.text.split()[-1].strip(".")) for m in messages if m.role == "user")
        if messages[-1].role == "tool":
            return ModelOutput.for_tool_call("mockllm/model", "submit", {"answer": f"Bergen {number}"})
        return ModelOutput.for_tool_call("mockllm/model", "look_up", {"town": number}, content="I look.")

    return output


def evaluate(logs: str, options: dict) -> list:
    from inspect_ai import eval
    from inspect_ai.model import get_model

    async def count(text: str) -> int:
        return len(text)

    model = get_model("mockllm/model", custom_outputs=outputs())
    model.api.count_text_tokens = count  # its own downloads a tokenizer
    found = []
    for log in eval(tasks(options), model=model, log_dir=logs, display="none", epochs=1):
        assert log.status == "success", log.error
        for sample in log.samples:
            ((name, score),) = sample.scores.items()
            found.append([log.eval.task, str(sample.id), name, score.value, None, score.metadata])
            found[-1].append(score.explanation)
    return found


def scan_of(transcripts, options: dict, **more) -> list:
    from inspect_scout import scan, scan_results_df

    with tempfile.TemporaryDirectory() as folder:
        status = scan(
            [arb.scout.scanner(**options)], transcripts=transcripts, scans=folder, display="none", **more
        )
        assert status.complete or status.errors, status
        found = [[str(error.error)] for error in status.errors]
        for name, frame in scan_results_df(status.location).scanners.items():
            for row in json.loads(frame.to_json(orient="records")):
                kept = [row[each] for each in ("value", "scan_error", "metadata", "explanation")]
                found.append([row["transcript_task_set"], str(row["transcript_task_id"]), name, *kept])
    return found


def scan_logs(logs: str, options: dict) -> list:
    from inspect_scout import transcripts_from

    return scan_of(transcripts_from(logs), options, max_processes=options.pop("processes", 1))


def scan_imported(options: dict) -> list:
    from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser
    from inspect_scout import Transcript, transcripts_db, transcripts_from

    messages = [
        ChatMessageSystem(content="Think."),
        ChatMessageUser(content="Find town 1."),
        ChatMessageAssistant(content="Bergen"),
    ]
    made = [
        Transcript(transcript_id="t1", source_type="chat", model="m", task_id="1", messages=messages),
        Transcript(transcript_id="t2", source_type="chat", model="m", task_id="2", messages=messages[:2]),
    ]

    async def insert(place: str) -> None:
        async with transcripts_db(place) as database:
            await database.insert(made)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(insert(folder))
        return scan_of(transcripts_from(folder), options, max_processes=1)


if __name__ == "__main__":
    what, *paths, options = sys.argv[1:]
    do = {"eval": evaluate, "scan": scan_logs, "imported": scan_imported}[what]
    print(json.dumps(do(*paths, json.loads(options))))
