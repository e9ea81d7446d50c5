"""An OpenAI-compatible server on loopback: scripted replies, latency, faults on plan, exact counts.

    with LLMServer() as server:                       # in a thread; script="judges" answers every judge
        client = OpenAI(base_url=server.base_url, api_key="k", max_retries=0)
        ...
        assert server.counts.paid_twice() == {}

    LLMServer(script=lambda request: f"<success>Successful</success>")      # a function of the request
    LLMServer(latency_s=0.2, faults=FaultPlan({"rate_limit": 0.05, "cut_json": 0.05}, seed=1))
    LLMServer(faults=FaultPlan.each(0.05))             # every fault that there is on 5 % of the calls
    LLMServer(rate_limits=RateLimitRule(requests=3, tokens=9_000))
    LLMServer(unsupported={"max_tokens", "temperature"}, max_input_tokens=8_000)   # rules, not chance
    with LLMProcess(latency_s=0.2) as server: ...      # the same in a process of its own (benchmarks)

Other processes may ask a server in a thread too: give them ``server.base_url``.
"""
