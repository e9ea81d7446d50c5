"""Pull requests as the Hub has them: opened as drafts, committed to by their branch, merged at once."""

from tests.support.hub_server.answers import Answer, Request, as_json, refusal
from tests.support.hub_server.repository import MergeConflict, PullRequest

_DATE = "2026-01-01T00:00:00.000Z"


def _listed(pull: PullRequest, repo: str) -> dict:
    return {
        "title": pull.title, "num": pull.number, "author": {"name": pull.author}, "createdAt": _DATE,
        "status": pull.status, "repo": {"name": repo, "type": "dataset"}, "isPullRequest": True,
    }  # fmt: skip


def create(api, request: Request, repo: str) -> Answer:
    found, account = api._writable(request, repo)
    pull = found.open_pull(request.json()["title"], account.name)
    return as_json(_listed(pull, repo))


def listing(api, request: Request, repo: str) -> Answer:
    pulls = [_listed(pull, repo) for pull in api._readable(request, repo).pulls]
    author = request.query.get("author", [None])[0]
    wanted = [pull for pull in pulls if author in (None, pull["author"]["name"])]
    return as_json({"discussions": wanted, "count": len(wanted), "start": 0})


def details(api, request: Request, repo: str, number: str) -> Answer:
    pull = api._readable(request, repo).pulls[int(number) - 1]
    more = {"changes": {"base": "refs/heads/main"}, "filesWithConflicts": [], "events": []}
    return as_json(_listed(pull, repo) | more)


def status(api, request: Request, repo: str, number: str) -> Answer:
    pull = api.writable(request, repo).pulls[int(number) - 1]
    pull.status = request.json()["status"]
    event = {"id": "0", "type": "status-change", "createdAt": _DATE, "data": {"status": pull.status}}
    return as_json({"newStatus": event})


def merge(api, request: Request, repo: str, number: str) -> Answer:
    found = api.writable(request, repo)
    pull = found.pulls[int(number) - 1]
    if pull.status != "open":
        raise refusal(400, f"a pull request that is {pull.status} cannot be merged")
    try:
        found.merge(pull)
    except MergeConflict:
        raise refusal(409, "there are merge conflicts") from None
    return as_json({})


_ALL = r"/api/(?P<kind>datasets|spaces)/(?P<repo>[\w.-]+/[\w.-]+)/discussions"
ROUTES = (
    (("POST",), _ALL, create),
    (("GET",), _ALL, listing),
    (("GET",), rf"{_ALL}/(?P<number>\d+)", details),
    (("POST",), rf"{_ALL}/(?P<number>\d+)/status", status),
    (("POST",), rf"{_ALL}/(?P<number>\d+)/merge", merge),
)
