"""A Kaggle on loopback: what kagglehub asks it of one model, and what goes wrong."""

import base64
import contextlib
import hashlib
import http.server
import json
import threading


class Kaggle(http.server.ThreadingHTTPServer):
    """The server.

    Attributes:
        versions: {number: {filename: content}} of the model, whatever its name.
        asked: the path of every request, and the names of files, in order.
        cut: the name of a file that is cut in the middle, once.
        damaged: the name of a file that arrives with a wrong byte, once.
        status: with which every request is answered, where not None.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.versions, self.asked = {}, []
        self.cut = self.damaged = self.status = None
        self.url = f"http://127.0.0.1:{self.server_port}"

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
    server: Kaggle

    def log_message(self, *_):
        pass

    def answer(self, status, content, **headers):
        data = json.dumps(content).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        service, _, method = self.path.rpartition("/")
        self.server.asked.append(method)
        if self.server.status is not None:
            status = self.server.status
            return self.answer(status, {"code": status, "message": "no"})
        if method == "GetModelInstance":
            return self.answer(200, {"versionNumber": max(self.server.versions)})
        files = self.server.versions.get(body["versionNumber"], {})
        if body["path"] not in files:
            return self.answer(404, {"code": 404, "message": "none"})
        self.answer(302, {}, Location=f"/{body['versionNumber']}/{body['path']}")

    def do_GET(self):
        _, version, name = self.path.split("/", 2)
        self.server.asked.append(name)
        content = self.server.versions[int(version)][name]
        digest = base64.b64encode(hashlib.md5(content).digest()).decode()
        start = int((self.headers.get("Range") or "bytes=0-")[6:].split("-")[0])
        rest = content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(rest)))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("x-goog-hash", f"crc32c=AAAAAA==,md5={digest}")
        self.end_headers()
        if self.server.damaged == name:
            self.server.damaged = None
            rest = bytes([rest[0] ^ 1]) + rest[1:]
        if self.server.cut == name:
            self.server.cut = None
            rest = rest[: len(rest) // 2]
            self.close_connection = True
        self.wfile.write(rest)
