"""The dependency audit of CI: what is audited, what fails it, and that it needs no network."""

import importlib.util
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
CLOSED = "http://127.0.0.1:9/v1/query"


@pytest.fixture
def audit(tmp_path):
    spec = importlib.util.spec_from_file_location("audit", REPOSITORY / ".ci" / "audit.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.ENVIRONMENT = tmp_path / "environment"
    return module


def report(*fixes: list[str]) -> dict:
    vulnerable = [{"id": f"GHSA-{place}", "fix_versions": found} for place, found in enumerate(fixes)]
    safe = {"name": "numpy", "version": "2.4.0", "vulns": []}
    return {"dependencies": [safe, {"name": "jinja2", "version": "3.1.0", "vulns": vulnerable}]}


def test_all_that_the_requirements_lead_to_is_audited_and_no_more(audit):
    pins = audit.runtime_pins("# a comment\ngradio>=6  # and another\n-r other.txt\n\nnot-installed>=1\n")
    names = {pin.partition("==")[0] for pin in pins}
    assert {"gradio", "starlette", "jinja2"} <= names  # starlette comes with gradio's fastapi
    assert not names & {"pytest", "ruff", "not-installed"}
    assert all(pin.partition("==")[2] for pin in pins)


def test_a_vulnerability_fails_where_it_has_a_fix(audit):
    lines, fails = audit.findings(report(["3.1.5", "4.0"], []))
    assert fails
    assert lines == [
        "jinja2 3.1.0: GHSA-0, mended in 3.1.5, 4.0: raise its bound in requirements.txt",
        "jinja2 3.1.0: GHSA-1, no fix yet",
    ]
    assert audit.findings(report([])) == (["jinja2 3.1.0: GHSA-0, no fix yet"], False)
    assert audit.findings(report()) == ([], False)


def test_without_a_service_one_line_says_that_it_was_left_out(audit, monkeypatch, capsys):
    monkeypatch.setattr(audit, "SERVICES", {"osv": (CLOSED, b"{}"), "pypi": (CLOSED, None)})
    assert audit.main() == 0
    assert capsys.readouterr().out == "dependency audit left out: no advisory service answers\n"
    assert not audit.ENVIRONMENT.exists()


@pytest.mark.parametrize(
    ("answer", "is_one"),
    [(b'{"vulns": []}', True), (b'{"vulnerabilities": []}', True), (b"{}", False), (b"<html>", False)],
)
def test_a_service_is_one_that_knows_of_vulnerabilities(audit, monkeypatch, answer, is_one):
    class Answer(BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.handle_request).start()
    address = f"http://127.0.0.1:{server.server_port}/v1/query"
    monkeypatch.setattr(audit, "SERVICES", {"osv": (address, b"{}")})
    assert audit._answers("osv") is is_one
    server.server_close()


@pytest.mark.parametrize(("fixes", "status"), [(["4.0"], 1), ([], 0)])
def test_the_status_is_that_of_the_findings(audit, monkeypatch, fixes, status):
    monkeypatch.setattr(audit, "_answers", lambda service: True)
    monkeypatch.setattr(audit, "_audited", lambda pins, service: report(fixes))
    assert audit.main() == status


def test_an_audit_that_breaks_off_fails_nothing(audit, monkeypatch, capsys):
    monkeypatch.setattr(audit, "_answers", lambda service: True)
    monkeypatch.setattr(audit, "_audited", lambda pins, service: None)
    assert audit.main() == 0
    assert "left out" in capsys.readouterr().out
