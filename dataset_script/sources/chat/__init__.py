"""Read chat messages with tool calls, in the formats of OpenAI's and Anthropic's APIs.

    <anything>/<agent>/<task_id>.json    a run: {"messages": […]}, or only the array of messages
    <anything>/<agent>/<task_id>/messages.json
    <anything>/<agent>/<task_id>.jsonl   a run: a message per line
    <anything>/<agent>.jsonl             many runs: {"task_id": …, "messages": […]} per line

A ``.json`` file with an array of such objects is read in the same way. Messages have the form of chat
completions (``tool_calls``), of the Responses API (``function_call`` items, under ``input`` and ``output``)
or of Anthropic's Messages API (``tool_use`` blocks). A ``response`` in the same object is the last message.
The keys ``agent``, ``benchmark``, ``task_id``, ``goal`` and ``reward`` of the object are read, too. A run
that they do not name is named after its file and folders. Pictures are data URLs, base64 blocks, or files in
the source. System prompts are not read.
"""

from dataset_script.sources.chat.source import ChatSource

__all__ = ["ChatSource"]
