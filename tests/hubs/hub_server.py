"""A Hugging Face Hub on loopback: what huggingface_hub asks it, and what goes wrong."""

import base64
import contextlib
import dataclasses
import hashlib
import http.server
import json
import threading
import urllib.parse

TOKEN = "hf_of_the_tests"


def git_hash(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclasses.dataclass
class Repository:
    """A repository of the server.

    Args:
        commits: {commit: {filename: content}}.
        branches: {name: commit}.
        large: names of the files that are stored apart, as Git LFS does.
        access: "public", "private" or "gated".
    """

    commits: dict = dataclasses.field(default_factory=dict)
    branches: dict = dataclasses.field(default_factory=dict)
    large: tuple = ("model.safetensors", "model.weights.h5")
    access: str = "public"

    def commit(self, files: dict[str, bytes], branch: str = "main") -> str:
        """Adds a commit, and moves a branch to it."""
        seed = "".join(f"{name}{git_hash(data)}" for name, data in files.items())
        commit = hashlib.sha1(f"{len(self.commits)}{seed}".encode()).hexdigest()
        self.commits[commit] = dict(files)
        self.branches[branch] = commit
        return commit

    def resolve(self, revision: str) -> str | None:
        commit = self.branches.get(revision, revision)
        return commit if commit in self.commits else None


class Hub(http.server.ThreadingHTTPServer):
    """The server.

    Attributes:
        repositories: {"organisation/name": Repository}.
        asked: (method, path) of every request, in order.
        cuts: {filename: how often it is cut in the middle}.
        damaged: {filename: the content that is sent instead}.
        status: with which every request is answered, where not None.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories, self.asked = {}, []
        self.cuts, self.damaged, self.status = {}, {}, None
        self.url = f"http://127.0.0.1:{self.server_port}"

    def fetched(self) -> list[str]:
        """The names of the files whose content was asked for."""
        paths = [path for method, path in self.asked if method == "GET"]
        return [p.rpartition("/")[2] for p in paths if "/resolve/" in p or "/cdn/" in p]

    @classmethod
    @contextlib.contextmanager
    def running(cls):
        with cls() as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            try:
                yield server
            finally:
                server.shutdown()
                thread.join()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # which waits for 40 ms between head and body
    server: Hub

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.handle_one()

    def do_HEAD(self):
        self.handle_one()

    def do_POST(self):
        self.handle_one()

    def handle_one(self):
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        self.server.asked.append((self.command, path))
        length = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(length) if length else self.chunks()
        if self.server.status is not None:
            return self.answer(self.server.status)
        parts = path.strip("/").split("/")
        if parts[0] == "cdn":
            return self.send_file(parts[1], "/".join(parts[2:]))
        if parts[:2] == ["api", "models"]:
            return self.about("/".join(parts[2:4]), *parts[4:])
        if parts == ["api", "repos", "create"]:
            return self.create(json.loads(self.body))
        if parts == ["api", "validate-yaml"]:
            return self.answer(200, {})
        if "resolve" in parts[2:3]:
            return self.resolve("/".join(parts[:2]), parts[3], "/".join(parts[4:]))
        self.answer(404)

    def chunks(self) -> bytes:
        """The body of a request that comes in chunks."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            return b""
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def answer(self, status, content=None, **headers):
        data = content if isinstance(content, bytes) else json.dumps(content or {})
        data = data if isinstance(data, bytes) else data.encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data)))
        if not isinstance(content, bytes):
            self.send_header("Content-Type", "application/json")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def allowed(self, name: str) -> Repository | None:
        """The repository, or None after a refusal."""
        repository = self.server.repositories.get(name)
        known = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        if repository is None or (repository.access == "private" and not known):
            self.answer(404 if known else 401, X_Error_Code="RepoNotFound")
            return None
        return repository

    def create(self, wanted: dict):
        name = f"{wanted['organization']}/{wanted['name']}"
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.answer(401, {"error": "Invalid username or password."})
        if wanted["organization"] == "others":
            return self.answer(403, {"error": "You don't have the rights"})
        there = name in self.server.repositories
        if not there:
            made = Repository(access=wanted.get("visibility", "public"))
            made.commit({".gitattributes": b"*.safetensors filter=lfs\n"})
            self.server.repositories[name] = made
        self.answer(409 if there else 200, {"url": f"{self.server.url}/{name}"})

    def about(self, name, verb="revision", revision="main"):
        repository = self.allowed(name)
        if repository is None:
            return None
        commit = repository.resolve(revision)
        if commit is None:
            return self.answer(404, X_Error_Code="RevisionNotFound")
        if verb == "preupload":
            wanted = [each["path"] for each in json.loads(self.body)["files"]]
            modes = {"uploadMode": "regular", "shouldIgnore": False}
            return self.answer(200, {"files": [{"path": p, **modes} for p in wanted]})
        if verb == "commit":
            return self.commit(repository, name, revision)
        files = repository.commits[commit].items()
        entries = [self.entry(repository, *file) for file in files]
        if verb == "tree":
            return self.answer(200, [{"type": "file", **each} for each in entries])
        siblings = [
            {
                "rfilename": each["path"],
                "size": each["size"],
                "blobId": each["oid"],
                **({"lfs": each["lfs"]} if "lfs" in each else {}),
            }
            for each in entries
        ]
        self.answer(200, {"id": name, "sha": commit, "siblings": siblings})

    def entry(self, repository, filename, content):
        found = {"path": filename, "size": len(content), "oid": git_hash(content)}
        if filename in repository.large:
            digest = hashlib.sha256(content).hexdigest()
            lfs = {"sha256": digest, "oid": digest, "size": len(content)}
            found["lfs"] = {**lfs, "pointerSize": 130}
        return found

    def commit(self, repository, name, revision):
        files = dict(repository.commits[repository.resolve(revision)])
        for line in self.body.splitlines():
            operation = json.loads(line)
            value = operation["value"]
            if operation["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif operation["key"] == "deletedFile":
                del files[value["path"]]
        oid = repository.commit(files, revision)
        self.answer(
            200,
            {"commitUrl": f"{self.server.url}/{name}/commit/{oid}", "commitOid": oid},
        )

    def resolve(self, name, revision, filename):
        repository = self.allowed(name)
        if repository is None:
            return None
        if repository.access == "gated":
            return self.answer(403, X_Error_Code="GatedRepo")
        commit = repository.resolve(revision)
        if commit is None:
            return self.answer(404, X_Error_Code="RevisionNotFound")
        content = repository.commits[commit].get(filename)
        if content is None:
            code = {"X_Error_Code": "EntryNotFound", "X_Repo_Commit": commit}
            return self.answer(404, **code)
        entry = self.entry(repository, filename, content)
        if "lfs" not in entry:
            sent = self.server.damaged.get(filename, content)
            etag = f'"{entry["oid"]}"'
            return self.answer(200, sent, ETag=etag, X_Repo_Commit=commit)
        digest = entry["lfs"]["sha256"]
        # Another host, to which no token may be sent.
        place = f"http://localhost:{self.server.server_port}/cdn/{digest}/{filename}"
        self.answer(
            302,
            b"",
            Location=place,
            X_Linked_Etag=f'"{digest}"',
            X_Linked_Size=str(len(content)),
            X_Repo_Commit=commit,
        )

    def send_file(self, digest, filename):
        if "Authorization" in self.headers:
            return self.answer(400, {"error": "a token for a stranger"})
        everything = (
            content
            for repository in self.server.repositories.values()
            for files in repository.commits.values()
            for content in files.values()
        )
        content = next(c for c in everything if hashlib.sha256(c).hexdigest() == digest)
        content = self.server.damaged.get(filename, content)
        start = int((self.headers.get("Range") or "bytes=0-")[6:].split("-")[0])
        rest = content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(rest)))
        self.send_header("Accept-Ranges", "bytes")
        if start:
            end = len(content)
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{end}")
        self.end_headers()
        if self.server.cuts.get(filename, 0):
            self.server.cuts[filename] -= 1
            rest = rest[: len(rest) // 2]
            self.close_connection = True
        self.wfile.write(rest)
