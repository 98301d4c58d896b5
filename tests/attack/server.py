"""A web server that does what servers should not, and `fetch` in front of it: each fetch ends, with no more on disk than it may have, no secret said and no escape printed."""

import gzip
import json
import os
import random
import shutil
import socket
import threading
import time

from harness import Run, Tally

MOST = 2_000_000
SECRET = "HIDDENSECRET"


class Server:
    def __init__(self):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.listen(64)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            client, _ = self.socket.accept()
            threading.Thread(target=self.answer, args=(client,), daemon=True).start()

    def answer(self, client):
        try:
            asked = b""
            while b"\r\n\r\n" not in asked:
                piece = client.recv(65536)
                if not piece:
                    return
                asked += piece
            method, target = asked.split(b" ", 2)[:2]
            self.misbehave(client, method.decode(), target.decode("latin1").split("?")[0])
        except OSError:
            pass
        finally:
            client.close()

    def misbehave(self, client, method, path):
        def head(status, *fields, body=b""):
            lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in fields), "Connection: close", "", ""]
            client.sendall("\r\n".join(lines).encode("latin1") + (b"" if method == "HEAD" else body))

        def moved(to):
            head("302 Found", ("Location", to), ("Content-Length", 0))

        tag = ("ETag", '"1"')
        length = lambda n: ("Content-Length", n)
        if path == "/right":
            head("200 OK", length(5), tag, body=b"hello")
        elif path == "/short":
            head("200 OK", length(100_000), tag, body=b"x" * 1000)
        elif path == "/long":
            head("200 OK", length(10), tag, body=b"x" * 1000)
        elif path == "/negative":
            head("200 OK", length(-5), body=b"x" * 1000)
        elif path == "/huge":
            head("200 OK", length(2**63), tag, body=b"x" * 1000)
        elif path == "/huger":
            head("200 OK", length(2**64 - 1), tag, body=b"x" * 1000)
        elif path == "/two":
            head("200 OK", length(5), length(7), body=b"helloab")
        elif path == "/endless":
            client.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
            while method != "HEAD":
                client.sendall(b"10000\r\n" + b"z" * 0x10000 + b"\r\n")
        elif path == "/unsaid":
            client.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
            while method != "HEAD":
                client.sendall(b"z" * 0x10000)
        elif path.startswith("/loop"):
            moved(f"/loop{random.random()}")
        elif path == "/file":
            moved("file:///etc/passwd")
        elif path == "/credentials":
            moved(f"http://user:{SECRET}@127.0.0.1:{self.port}/missing?sig={SECRET}")
        elif path == "/escapes":
            head("200 \x1b]0;pwn\x07\x1b[31m", length(5), ("ETag", '"\x1b[31m"'), body=b"hello")
        elif path == "/headers":
            head("200 OK", *[(f"X-{i}", "a" * 1000) for i in range(2000)], length(5), body=b"hello")
        elif path == "/header":
            client.sendall(b"HTTP/1.1 200 OK\r\nX: ")
            while True:
                client.sendall(b"a" * 65536)
        elif path == "/packed":
            body = gzip.compress(b"a" * 10**7)
            head("200 OK", length(len(body)), ("Content-Encoding", "gzip"), tag, body=body)
        elif path == "/noise":
            client.sendall(os.urandom(5000))
        elif path == "/changing":
            head("200 OK", length(5), ("ETag", f'"{random.random()}"'), body=b"hello")
        elif path == "/busy":
            head("503 Busy", length(0), ("Retry-After", 100_000))
        elif path == "/silent":
            time.sleep(600)
        elif path == "/drip":
            head("200 OK", length(100_000), tag)
            while method != "HEAD":
                client.sendall(b"x")
                time.sleep(1)
        elif path == "/continue":
            while True:
                client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                time.sleep(0.001)
        else:
            head("404 Not Found", length(0))


PATHS = [
    "/right", "/short", "/long", "/negative", "/huge", "/huger", "/two", "/endless", "/unsaid", "/loop", "/file", "/credentials", "/escapes", "/headers", "/header",
    "/packed", "/noise", "/changing", "/missing", "/busy", "/silent", "/drip", "/continue",
]


def servers(bench, seconds):
    tally, chance, server, until = Tally("server"), bench.chance("server"), Server(), time.monotonic() + seconds
    paths = list(PATHS)
    chance.shuffle(paths)
    for path in paths:
        for said in (False, True):
            if time.monotonic() >= until:
                return tally
            folder = bench.scratch("server")
            folder.mkdir()
            catalog = (
                'version = 1\n[[dataset]]\nname = "x"\nabout = "a"\naccess = "open"\nlicence = "l"\npage = "https://h"\n[[dataset.file]]\n'
                f'path = "f.bin"\nurl = {json.dumps(f"http://127.0.0.1:{server.port}{path}?sig={SECRET}")}\n'
            )
            (folder / "c.toml").write_text(catalog + ("bytes = 5\n" if said else ""))
            run, most = watched(bench, folder)
            what = f"{path}{' with 5 bytes in the catalogue' if said else ''}"
            whole = folder / "into/f.bin"
            body = whole.read_bytes() if whole.exists() else None
            # What has its name must be what the server has there; only these have something. What follows the announced length is no part of an answer
            # (RFC 9112, section 6.3): of `/long` the first 10 bytes are all that there is, unless the catalogue says otherwise.
            right = body is None or (body == b"hello" and path in ("/right", "/changing", "/escapes", "/headers"))
            right = right or (not said and (path == "/packed" or (path == "/long" and body == b"x" * 10)))
            tally.judge(run, right, what)
            if most > MOST + (1 << 20):
                tally.lose(f"{what}: {most} bytes on disk, {MOST} were allowed")
            if SECRET in run.text or "\x1b" in run.text:
                tally.unnoticed.append(f"{what}: says a secret or an escape: {run.text!r}")
    return tally


def watched(bench, folder):
    """Runs `fetch`, and looks how much it has on disk at most."""
    began, most = time.monotonic(), 0
    process = bench.engraft.start(
        "fetch", "x", "--catalog", folder / "c.toml", "--into", folder / "into", "--cache", folder / "cache", "--max-bytes", MOST, "--deadline", 6
    )
    while process.poll() is None and time.monotonic() - began < 60:
        try:
            most = max(most, sum(path.stat().st_size for path in (folder / "into").iterdir()))
        except OSError:
            pass
        time.sleep(0.02)
    code = process.poll()
    if code is None:
        process.kill()
    said = process.communicate()[0].decode("utf8", "replace")
    return Run(code, said, time.monotonic() - began), most
