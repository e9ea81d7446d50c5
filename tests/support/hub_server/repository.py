"""Repositories as the Hub has them: commits of files that lie in git or, when large or binary, in LFS."""

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath

LFS_SUFFIXES = {".parquet", ".png", ".zip", ".gz", ".arrow"}
LFS_FROM_BYTES = 10_000_000
GIT_ATTRIBUTES = "".join(f"*{suffix} filter=lfs -text\n" for suffix in sorted(LFS_SUFFIXES))


def is_lfs(path: str, size: int) -> bool:
    """Whether the Hub wants this file through LFS."""
    return size > 0 and (PurePosixPath(path).suffix in LFS_SUFFIXES or size >= LFS_FROM_BYTES)


@dataclass(frozen=True)
class Content:
    """A file's bytes: in memory, or in a file that is served from where it lies."""

    data: bytes | Path
    size: int
    sha256: str
    git_oid: str
    lfs: bool

    @property
    def etag(self) -> str:
        return self.sha256 if self.lfs else self.git_oid


def content_of(path: str, data: bytes | Path, lfs: bool | None = None) -> Content:
    """What a repository keeps of a file that is committed as ``path``."""
    size = data.stat().st_size if isinstance(data, Path) else len(data)
    lfs = is_lfs(path, size) if lfs is None else lfs
    if isinstance(data, Path):
        with data.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    else:
        sha256 = hashlib.sha256(data).hexdigest()
    in_git = pointer(sha256, size) if lfs else data if isinstance(data, bytes) else data.read_bytes()
    git_oid = hashlib.sha1(b"blob %d\0" % len(in_git) + in_git).hexdigest()
    return Content(data, size, sha256, git_oid, lfs)


def pointer(sha256: str, size: int) -> bytes:
    """What git holds in place of a file in LFS."""
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()


@dataclass(frozen=True)
class Commit:
    oid: str
    parent: str | None
    title: str
    author: str
    date: datetime
    files: dict[str, Content]


class MovedHead(Exception):
    """The branch is not where the commit's author thinks it is."""


@dataclass
class Repository:
    """One repository with its whole history on ``main``."""

    repo_id: str
    private: bool = False
    commits: list[Commit] = field(default_factory=list)

    def __post_init__(self):
        attributes = content_of(".gitattributes", GIT_ATTRIBUTES.encode())
        self._append({".gitattributes": attributes}, "initial commit", "hub")

    @property
    def owner(self) -> str:
        return self.repo_id.split("/")[-2]

    @property
    def head(self) -> Commit:
        return self.commits[-1]

    def at(self, revision: str) -> Commit | None:
        """The commit that ``main`` or a commit's name means."""
        if revision in ("main", "refs/heads/main"):
            return self.head
        return next((commit for commit in self.commits if commit.oid == revision), None)

    def commit(
        self,
        changes: dict[str, Content | None],
        title: str = "a commit",
        author: str = "maintainer",
        parent: str | None = None,
    ) -> Commit:
        """Add, replace and (None) remove files; raises MovedHead when ``parent`` is not the head."""
        if parent is not None and not self.head.oid.startswith(parent):
            raise MovedHead(self.head.oid)
        files = {**self.head.files, **{path: content for path, content in changes.items() if content}}
        for path in [path for path, content in changes.items() if content is None]:
            files.pop(path, None)
        return self._append(files, title, author)

    def _append(self, files: dict[str, Content], title: str, author: str) -> Commit:
        parent = self.head.oid if self.commits else None
        date = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=len(self.commits))
        tree = repr((self.repo_id, parent, title, date, sorted((p, c.git_oid) for p, c in files.items())))
        oid = hashlib.sha1(tree.encode()).hexdigest()
        self.commits.append(Commit(oid, parent, title, author, date, dict(sorted(files.items()))))
        return self.head


def tree(commit: Commit, folder: str, recursive: bool) -> list[dict] | None:
    """What lies in a folder, as the tree route lists it; None when there is no such folder."""
    prefix = f"{folder}/" if folder else ""
    inside = {path: c for path, c in commit.files.items() if path.startswith(prefix)}
    if folder and not inside:
        return None
    found: dict[str, dict] = {}
    for path, content in inside.items():
        parts = path.removeprefix(prefix).split("/")
        for depth in range(1, len(parts) if recursive else min(len(parts), 2)):
            name = prefix + "/".join(parts[:depth])
            found.setdefault(name, folder_entry(name))
        if recursive or len(parts) == 1:
            found[path] = file_entry(path, content)
    return list(found.values())


def file_entry(path: str, content: Content) -> dict:
    entry = {"type": "file", "oid": content.git_oid, "size": content.size, "path": path}
    if content.lfs:
        size = len(pointer(content.sha256, content.size))
        entry["lfs"] = {"oid": content.sha256, "size": content.size, "pointerSize": size}
    return entry


def folder_entry(path: str) -> dict:
    return {"type": "directory", "oid": hashlib.sha1(path.encode()).hexdigest(), "size": 0, "path": path}
