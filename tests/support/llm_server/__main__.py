"""`python -m tests.support.llm_server '{"script": "judges", "latency_s": 0.2}'` prints its base URL.

It ends with its input.
"""

import json
import sys

from tests.support.llm_server.server import LLMServer

if __name__ == "__main__":
    with LLMServer(**json.loads(sys.argv[1])) as server:
        print(server.base_url, flush=True)
        sys.stdin.read()
