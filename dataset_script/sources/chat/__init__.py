"""Read chat messages with tool calls, in the formats of OpenAI's and Anthropic's APIs.

    <anything>/<agent>/<task_id>.json    a run: {"messages": […]}, or only the array of messages
    <anything>/<agent>/<task_id>/messages.json
    <anything>/<agent>/<task_id>.jsonl   a run: a message per line
    <anything>/<agent>.jsonl             many runs: {"task_id": …, "messages": […]} per line

An array of such objects in a ``.json`` is read like lines. Messages have the form of chat completions
(``tool_calls``), of the Responses API (``function_call`` items, under ``input`` and ``output``) or of
Anthropic's Messages API (``tool_use`` blocks). A ``response`` next to them is the last message. ``agent``,
``benchmark``, ``task_id``, ``goal`` and ``reward`` next to the messages are read, too. If they do
not name the run, the names of files and folders do. Pictures are data URLs, base64 blocks, or files in the
source. System prompts are not read.
"""

from dataset_script.sources.chat.source import ChatSource

__all__ = ["ChatSource"]
