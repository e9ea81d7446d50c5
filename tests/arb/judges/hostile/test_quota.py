"""Google's quota per minute is waited out; its quota per day is an exhausted account."""

import pytest

from tests.support import provider_server as wire
from tests.support.judge_runs import run, states
from tests.support.provider_server import ProviderServer, as_json, require_clients

VERDICT = "<success>Successful</success>"


@pytest.fixture(autouse=True)
def _client(monkeypatch):
    require_clients("google.genai")
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    monkeypatch.setenv("GEMINI_API_KEY", "secret")


def over_quota(period: str, delay_s: float):
    """Google's 429, word for word but for its links; the delay is shorter than Google's."""
    metric = "generativelanguage.googleapis.com/generate_content_free_tier_requests"
    message = (
        "You exceeded your current quota, please check your plan and billing details. For more information "
        f"on this error, head to the documentation.\n* Quota exceeded for metric: {metric}, limit: 10, "
        f"model: gemini-2.5-flash\nPlease retry in {delay_s}s."
    )
    quota = f"GenerateRequestsPer{period}PerProjectPerModel-FreeTier"
    violation = {"quotaMetric": metric, "quotaId": quota, "quotaValue": "10"}
    details = [
        {"@type": "type.googleapis.com/google.rpc.Help", "links": []},
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{delay_s}s"},
    ]
    error = {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": details}
    return as_json({"error": error}, 429)


class Gemini:
    """Answers the requests whose number, from 1 on, ``is_over`` does not refuse."""

    def __init__(self, period: str, is_over):
        self.period, self.is_over, self.asked = period, is_over, 0

    def __call__(self, request):
        self.asked += 1
        is_refused = self.is_over(self.asked)
        return over_quota(self.period, 0.2) if is_refused else as_json(wire.gemini_content(VERDICT))


def judge(server, folder):
    given = {"model": "gemini-2.5-flash", "provider": "gemini"}
    return run(server.base_url, folder, "--limit", 8, "--max-in-flight", 4, **given)


@pytest.mark.slow
def test_a_quota_per_minute_loses_no_trajectory(tmp_path):
    with ProviderServer(Gemini("Minute", lambda number: number % 3 != 0)) as server:
        result = judge(server, tmp_path)
    assert result.exit_code == 0, result.output
    assert states(tmp_path) == {"ok": 8}


def test_a_quota_per_day_stops_the_run_and_leaves_the_rest_open(tmp_path):
    gemini = Gemini("Day", lambda number: number > 3)
    with ProviderServer(gemini) as server:
        result = judge(server, tmp_path)
        assert result.exit_code == 5, result.output
        assert "the endpoint refuses the account (429: You exceeded your current quota" in result.output
        assert states(tmp_path) == {"ok": 3} and gemini.asked <= 3 + 4
        gemini.is_over = lambda number: False
        assert judge(server, tmp_path).exit_code == 0
        assert states(tmp_path) == {"ok": 8} and gemini.asked <= 8 + 4
