"""The Hub's routes over its repositories: a request in, an answer out, no sockets."""

import base64
import json
import re
import threading
from pathlib import Path
from urllib.parse import parse_qs, quote

import yaml

from tests.support.hub_server import openid, spaces
from tests.support.hub_server.answers import Account, Answer, Refused, Request, as_json, front_matter, refusal
from tests.support.hub_server.repository import (
    Commit,
    Content,
    MovedHead,
    Repository,
    content_of,
    file_entry,
    folder_entry,
    is_lfs,
    tree,
)

NAME = r"(?P<repo>[\w.-]+/[\w.-]+)"
KIND = "(?P<kind>datasets|spaces)"
API = rf"/api/{KIND}/{NAME}"
UPLOAD_SIGNATURE = "signature-of-an-upload"


class HubApi:
    """Accounts by token, repositories by name, the LFS store, and the routes."""

    def __init__(self):
        self.accounts: dict[str, Account] = {}
        self.repositories: dict[str, Repository] = {}
        self.objects: dict[str, bytes | Path] = {}
        self._committing = threading.Lock()
        self.openid = openid.OpenId()
        self.page_size = 1_000
        self.hub_url = self.cdn_url = ""

    def answer(self, request: Request) -> Answer:
        """The answer to a request; refusals are answers too."""
        for method, pattern, route in _ROUTES:
            if request.method in method and (found := re.fullmatch(pattern, request.path)):
                named = found.groupdict()
                if named.pop("kind", None) == "spaces":
                    named["repo"] = spaces.PREFIX + named["repo"]
                try:
                    return route(self, request, **named)
                except Refused as refused:
                    return refused.answer
        return refusal(404, "Sorry, we can't find the page you are looking for.").answer

    # who asks, and what they may see

    def account(self, request: Request) -> Account | None:
        if request.token is None:
            return None
        if request.token not in self.accounts:
            raise refusal(401, "Invalid credentials in Authorization header")
        return self.accounts[request.token]

    def _readable(self, request: Request, repo: str) -> Repository:
        account, found = self.account(request), self.repositories.get(repo)
        if found and (not found.private or (account and self._member(account, found.owner))):
            return found
        if account is None:  # the Hub does not tell a stranger what exists
            raise refusal(401, "Invalid username or password.")
        raise refusal(404, "Repository not found", "RepoNotFound")

    def _writable(self, request: Request, repo: str) -> tuple[Repository, Account]:
        found, account = self._readable(request, repo), self.account(request)
        if account is None:
            raise refusal(401, "Invalid username or password.")
        if not (account.may_write and self._member(account, found.owner)):
            raise refusal(403, f"Forbidden: pass `create_pr=1` or a token that may write to {repo}")
        return found, account

    def writable(self, request: Request, repo: str) -> Repository:
        """The repository, where the request may change it."""
        return self._writable(request, repo)[0]

    @staticmethod
    def _web(repo: str) -> str:
        """The path of a repository's pages."""
        return f"/{repo}" if repo.startswith(spaces.PREFIX) else f"/datasets/{repo}"

    @staticmethod
    def _member(account: Account, owner: str) -> bool:
        return owner in (account.name, *account.organizations)

    def _commit_at(self, request: Request, repo: str, revision: str | None) -> Commit:
        commit = self._readable(request, repo).at(revision or "main")
        if commit is None:
            raise refusal(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return commit

    # routes

    def whoami(self, request: Request) -> Answer:
        account = self.account(request)
        if account is None:
            raise refusal(401, "Invalid username or password.")
        organizations = [{"type": "org", "name": name} for name in account.organizations]
        role = "write" if account.may_write else "read"
        auth = {"type": account.auth_type}
        if account.auth_type == "access_token":
            auth["accessToken"] = {"displayName": "test", "role": role}
        identity = account.subject or f"id-of-{account.name}"
        return as_json(
            {"type": account.kind, "id": identity, "name": account.name, "orgs": organizations, "auth": auth}
        )

    def create(self, request: Request) -> Answer:
        account, asked = self.account(request), request.json()
        if account is None:
            raise refusal(401, "Invalid username or password.")
        owner = asked.get("organization") or account.name
        if not (account.may_write and self._member(account, owner)):
            raise refusal(403, f"You don't have the rights to create a dataset under the namespace {owner!r}")
        is_space, is_private = asked.get("type") == "space", asked.get("visibility") == "private"
        repo = f"{spaces.PREFIX if is_space else ''}{owner}/{asked['name']}"
        url = f"{self.hub_url}{self._web(repo)}"
        if repo in self.repositories:
            return as_json({"error": "You already created this repo", "url": url}, 409)
        made = spaces.created(asked, repo, is_private) if is_space else Repository(repo, is_private)
        self.repositories[repo] = made
        return as_json({"url": url, "name": repo})

    def info(self, request: Request, repo: str, revision: str | None = None) -> Answer:
        commit, found = self._commit_at(request, repo, revision), self.repositories[repo]
        card = commit.files.get("README.md")
        return as_json(
            {
                "_id": "0", "id": repo.removeprefix(spaces.PREFIX), "author": found.owner,
                "sha": commit.oid, "private": found.private,
                "gated": False, "disabled": False, "tags": [], "downloads": 0, "likes": 0,
                "createdAt": "2026-01-01T00:00:00.000Z",
                "lastModified": commit.date.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
                "cardData": front_matter(self._bytes(card).decode()) if card else {},
                "siblings": [{"rfilename": path} for path in commit.files],
            }
        )  # fmt: skip

    def tree(self, request: Request, repo: str, revision: str, folder: str | None = None) -> Answer:
        commit = self._commit_at(request, repo, revision)
        recursive = request.query.get("recursive", ["false"])[0].lower() in ("true", "1")
        entries = tree(commit, (folder or "").strip("/"), recursive)
        if entries is None:
            raise refusal(404, f"{folder} does not exist on {revision!r}", "EntryNotFound")
        start = int(request.query.get("cursor", ["0"])[0])
        page, headers = entries[start : start + self.page_size], {}
        if start + self.page_size < len(entries):
            where = f"{self.hub_url}{quote(request.path, safe='/%')}"
            expand = request.query.get("expand", ["False"])[0]
            following = f"recursive={recursive}&expand={expand}&cursor={start + self.page_size}"
            headers["Link"] = f'<{where}?{following}>; rel="next"'
        return as_json([self._dated(entry, commit, request) for entry in page], **headers)

    def paths_info(self, request: Request, repo: str, revision: str) -> Answer:
        commit = self._commit_at(request, repo, revision)
        if "json" in request.headers.get("content-type", ""):
            paths = request.json()["paths"]
        else:
            paths = parse_qs(request.body.decode()).get("paths", [])
        entries = []
        for path in paths:
            if path in commit.files:
                entries.append(file_entry(path, commit.files[path]))
            elif any(name.startswith(f"{path}/") for name in commit.files):
                entries.append(folder_entry(path))
        return as_json([self._dated(entry, commit, request) for entry in entries])

    @staticmethod
    def _dated(entry: dict, commit: Commit, request: Request) -> dict:
        """The entry; with ``expand`` it names the last commit too."""
        wanted = request.query.get("expand") or parse_qs(request.body.decode()).get("expand") or ["false"]
        if wanted[0].lower() != "true":
            return entry
        date = commit.date.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        return {**entry, "lastCommit": {"id": commit.oid, "title": commit.title, "date": date}}

    def validate_yaml(self, request: Request) -> Answer:
        self.account(request)
        try:
            meta = front_matter(request.json()["content"])
        except yaml.YAMLError as error:
            return as_json({"errors": [{"message": str(error).splitlines()[0]}], "warnings": []}, 400)
        if isinstance(meta.get("license"), list | dict):
            return as_json({"errors": [{"message": '"license" must be a string'}], "warnings": []}, 400)
        warnings = [] if meta else [{"message": "empty or missing yaml metadata in repo card"}]
        return as_json({"errors": [], "warnings": warnings})

    def preupload(self, request: Request, repo: str, revision: str) -> Answer:
        found, _ = self._writable(request, repo)
        answers = []
        for file in request.json()["files"]:
            path, size = file["path"], file["size"]
            there = found.at(revision).files.get(path)
            mode = "lfs" if is_lfs(path, size) else "regular"
            known = {"oid": there.etag} if there else {}
            answers.append({"path": path, "uploadMode": mode, "shouldIgnore": False, **known})
        return as_json({"files": answers})

    def lfs_batch(self, request: Request, repo: str) -> Answer:
        self._writable(request, repo)
        objects = []
        for wanted in request.json()["objects"]:
            entry = {"oid": wanted["oid"], "size": wanted["size"]}
            if wanted["oid"] not in self.objects:
                upload = f"{self.cdn_url}/upload/{wanted['oid']}?X-Signature={UPLOAD_SIGNATURE}"
                verify = f"{self.hub_url}{self._web(repo)}.git/info/lfs/objects/verify"
                entry["actions"] = {"upload": {"href": upload}, "verify": {"href": verify}}
            objects.append(entry)
        return as_json({"transfer": "basic", "objects": objects})

    def lfs_upload(self, request: Request, oid: str) -> Answer:
        if request.query.get("X-Signature") != [UPLOAD_SIGNATURE]:
            raise refusal(403, "SignatureDoesNotMatch")
        if content_of("upload", request.body).sha256 != oid:
            raise refusal(400, "the bytes do not have the announced SHA-256")
        self.objects[oid] = request.body
        return Answer()

    def lfs_verify(self, request: Request, repo: str) -> Answer:
        self._writable(request, repo)
        asked = request.json()
        held = self.objects.get(asked["oid"])
        size = held.stat().st_size if isinstance(held, Path) else len(held or b"")
        if held is None or size != asked["size"]:
            raise refusal(404, "this object was not uploaded")
        return as_json({"success": True})

    def commit(self, request: Request, repo: str, revision: str) -> Answer:
        found, account = self._writable(request, repo)
        header: dict = {}
        changes: dict[str, Content | None] = {}
        for line in request.body.splitlines():
            item = json.loads(line)
            key, value = item["key"], item["value"]
            if key == "header":
                header = value
            elif key == "file":
                data = base64.b64decode(value["content"])
                changes[value["path"]] = content_of(value["path"], data, lfs=False)
            elif key == "lfsFile":
                if value["oid"] not in self.objects:
                    raise refusal(400, f"{value['path']}: its LFS object was not uploaded")
                changes[value["path"]] = content_of(value["path"], self.objects[value["oid"]], lfs=True)
            elif key == "deletedFile":
                if value["path"] not in found.at(revision).files:
                    raise refusal(404, "A file with this name doesn't exist", "EntryNotFound")
                changes[value["path"]] = None
            else:
                raise refusal(400, f"an operation this server does not know: {key}")
        try:
            with self._committing:
                made = found.commit(changes, header["summary"], account.name, header.get("parentCommit"))
        except MovedHead as moved:
            raise refusal(
                412, f"A commit has happened since. Please refresh and try again. Head: {moved}"
            ) from None
        url = f"{self.hub_url}{self._web(repo)}/commit/{made.oid}"
        return as_json({"success": True, "commitOid": made.oid, "commitUrl": url, "hookOutput": ""})

    def resolve(self, request: Request, repo: str, revision: str, path: str) -> Answer:
        commit = self._commit_at(request, repo, revision)
        headers = {"X-Repo-Commit": commit.oid, "Accept-Ranges": "bytes"}
        content = commit.files.get(path)
        if content is None:
            missing = refusal(404, "Entry not found", "EntryNotFound").answer
            return Answer(404, {**missing.headers, **headers}, missing.body)
        headers["ETag"] = f'"{content.etag}"'
        if not content.lfs:
            return Answer(200, headers, content.data, served=path)
        headers |= {"X-Linked-Size": str(content.size), "X-Linked-Etag": f'"{content.etag}"'}
        headers["Location"] = f"{self.cdn_url}/objects/{content.sha256}?file={quote(path, safe='')}"
        return Answer(302, headers)

    def object(self, request: Request, oid: str) -> Answer:
        path = request.query.get("file", [oid])[0]
        headers = {"ETag": f'"{oid}"', "Accept-Ranges": "bytes"}
        return Answer(200, headers, self.objects[oid], served=path)

    @staticmethod
    def _bytes(content: Content) -> bytes:
        return content.data.read_bytes() if isinstance(content.data, Path) else content.data


REVISION = r"(?P<revision>refs/[\w.-]+/[\w.-]+|[^/]+)"
_ROUTES = (
    *openid.ROUTES,
    *spaces.ROUTES,
    (("GET",), "/api/whoami-v2", HubApi.whoami),
    (("POST",), "/api/repos/create", HubApi.create),
    (("POST",), "/api/validate-yaml", HubApi.validate_yaml),
    (("GET",), API, HubApi.info),
    (("GET",), rf"{API}/revision/{REVISION}", HubApi.info),
    (("GET",), rf"{API}/tree/{REVISION}(?P<folder>/.*)?", HubApi.tree),
    (("POST",), rf"{API}/paths-info/{REVISION}", HubApi.paths_info),
    (("POST",), rf"{API}/preupload/{REVISION}", HubApi.preupload),
    (("POST",), rf"{API}/commit/{REVISION}", HubApi.commit),
    (("POST",), rf"/{KIND}/{NAME}\.git/info/lfs/objects/batch", HubApi.lfs_batch),
    (("POST",), rf"/{KIND}/{NAME}\.git/info/lfs/objects/verify", HubApi.lfs_verify),
    (("GET", "HEAD"), rf"/{KIND}/{NAME}/resolve/{REVISION}/(?P<path>.+)", HubApi.resolve),
    (("PUT",), r"/upload/(?P<oid>[0-9a-f]{64})", HubApi.lfs_upload),
    (("GET", "HEAD"), r"/objects/(?P<oid>[0-9a-f]{64})", HubApi.object),
)
