"""What is Python's own: files, bad input, Ctrl-C, asyncio and TLS."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import signal
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

from mediagate import (
    AsyncClient,
    Client,
    Failure,
    File,
    GatewayError,
    Source,
    Task,
    TaskError,
    UnknownError,
    WebhookError,
    file_of,
    verify_webhook,
)
from mediagate.types import read_task

from exchanges import Stage

ENDPOINT = "/v1/videos/generations"
WORKING = {"data": {"id": "task_1", "status": "processing", "progress": 40}}
COMPLETED = {"data": {"id": "task_1", "status": "completed", "progress": 100}}


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass

    def do(self) -> None:
        cast(Server, self.server).answer(self)

    do_GET = do_POST = do

    def says(self, answer: object, status: int = 200, **headers: str) -> None:
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def left(self) -> bool:
        """Wait until the client has closed its connection."""
        return bool(self.connection.recv(1) == b"")


class Server(ThreadingHTTPServer):
    request_queue_size = 256
    answer: Callable[[Handler], None]


@contextlib.contextmanager
def serve(answer: Callable[[Handler], None], context: ssl.SSLContext | None = None) -> Iterator[str]:
    """A server on this machine, whose address it gives."""
    server = Server(("127.0.0.1", 0), Handler)
    server.answer = answer
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"{'https' if context else 'http'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def film(url: str) -> Task:
    return Task("task_1", "completed", files=(File(1, url, "video/mp4"),))


class Input(unittest.TestCase):
    """Mistakes are errors that say what is wrong, before anything is sent."""

    def setUp(self) -> None:
        self.stage = Stage([])
        self.client = Client("https://gateway.example.com", "key")
        self.client._network = self.stage

    def tearDown(self) -> None:
        self.assertEqual(self.stage.asks, [])

    def submit(self, fields: Any, **more: Any) -> None:
        self.client.submit("m", fields, endpoint=ENDPOINT, **more)

    def test_file(self) -> None:
        closed = io.BytesIO(b"meow")
        closed.close()
        with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile("w+") as text:
            for kind, file, says in (
                ("images", b"cat.png", "bytes are no file"),
                ("images", 7, "file must be a path or an open file, and is int"),
                ("images", closed, "the file is closed"),
                ("images", io.StringIO("meow"), "open it with the mode 'rb'"),
                ("images", text, "open it with the mode 'rb'"),
                ("images", Path(folder, "cat.png"), "No such file"),
                ("images", folder, "Is a directory"),
                ("pictures", io.BytesIO(b"meow"), "kind must be"),
            ):
                with self.subTest(says), self.assertRaisesRegex((TypeError, ValueError, OSError), says):
                    self.client.upload(kind, cast(Any, file))
        with self.assertRaisesRegex(TypeError, "name must be a str, and is bytes"):
            self.client.upload("images", io.BytesIO(b"meow"), cast(Any, b"cat.png"))

    def test_folder(self) -> None:
        with self.assertRaisesRegex(TypeError, "bytes are no path"):
            self.client.save(film("http://s3.example.com"), cast(Any, b"."))
        for task_id in ("", "..", "a/../b", "a\nb", "$(id)", "a b"):
            with self.subTest(task_id), self.assertRaisesRegex(ValueError, "no file can be named"):
                self.client.save(Task(task_id, "completed", files=(File(1, "http://s3.example.com"),)))

    def test_id(self) -> None:
        for call in (self.client.task, self.client.wait, self.client.cancel, file_of):
            with self.assertRaisesRegex(TypeError, "the id of a task must be a str, and is bytes"):
                cast(Any, call)(b"task_1")

    def test_fields(self) -> None:
        circle: list[Any] = []
        circle.append(circle)
        for fields, says in (
            ({"prompt": "a \ud83d boat"}, r"'prompt' cannot be sent: '\\ud83d' is half a character"),
            ({"multi_prompt": [{"prompt": "\udc00"}]}, "'multi_prompt' cannot be sent: .* half a character"),
            ({"a\ud83d": 1}, "half a character"),
            ({"image_urls": [b"cat"]}, "'image_urls' cannot be sent as JSON: .*bytes"),
            ({"duration": float("nan")}, "'duration' cannot be sent as JSON"),
            ({"metadata": circle}, "'metadata' cannot be sent as JSON: Circular"),
            ({7: "seven"}, "the name of a field must be a str"),
        ):
            with self.subTest(says):
                with self.assertRaisesRegex((TypeError, ValueError), says):
                    self.submit(fields)
                with self.assertRaisesRegex((TypeError, ValueError), says):
                    self.client.quote("m", cast(Any, fields))

    def test_headers(self) -> None:
        for key in ("", "two words", "line\n", "schlüssel"):
            with self.subTest(key):
                with self.assertRaisesRegex(ValueError, "idempotency_key must be printable ASCII"):
                    self.submit({}, idempotency_key=key)
                with self.assertRaisesRegex(ValueError, "key must be printable ASCII"):
                    Client("https://gateway.example.com", key)
        with self.assertRaisesRegex(TypeError, "key must be a str, and is NoneType"):
            Client("https://gateway.example.com", cast(Any, None))
        with self.assertRaises(ValueError):
            self.client.call("GET", "/v1/account", headers={"X": "a\r\nb"})

    def test_address(self) -> None:
        for url in ("", "gateway.example.com", "ftp://gateway.example.com", "https://", "https://example.com/?a"):
            with self.subTest(url), self.assertRaisesRegex(ValueError, "url must be the address of a gateway"):
                Client(url, "key")
        with self.assertRaisesRegex(ValueError, "path must begin with a slash"):
            self.client.call("GET", "v1/account")
        with self.assertRaisesRegex(ValueError, "path must be printable ASCII"):
            self.client.call("POST", "/v1/quote\r\n", {})


class Answers(unittest.TestCase):
    def test_task(self) -> None:
        task = read_task(
            {
                "id": "task_2",
                "status": "failed",
                "cost": 0.56,
                "error": {"code": "generation_failed", "message": "no", "retryable": True},
                "sources": [{"task_id": "task_1", "file": 2, "field": "image_urls[0]", "status": "completed"}],
                "result": {
                    "videos": [{"url": ["https://s3/a"], "mime_type": "video/mp4", "size_bytes": 3, "expires_at": 1}]
                },
            }
        )
        self.assertEqual(
            task,
            Task(
                "task_2",
                "failed",
                cost=Decimal("0.56"),
                error=Failure("generation_failed", "no", True),
                sources=(Source("task_1", 2, "image_urls[0]", "completed"),),
                files=(File(1, "https://s3/a", "video/mp4", 3, datetime.fromtimestamp(1, timezone.utc)),),
            ),
        )
        self.assertTrue(task.ended)

    def test_refusal(self) -> None:
        stage = Stage([{"status": 429, "header": {"Retry-After": "7", "X-Should-Retry": "false"}, "text": "<html>"}])
        client = Client("https://gateway.example.com", "key")
        client._network = stage
        with self.assertRaises(GatewayError) as refused:
            client.task("task_1")
        self.assertEqual((refused.exception.retry_after, refused.exception.temporary), (7, False))
        self.assertEqual(str(refused.exception), "Too Many Requests (429)")

    def test_links(self) -> None:
        """A link that is none, or leads to one, is an OSError; what is no text is no task."""
        with tempfile.TemporaryDirectory() as folder:
            for link in ("", "a", "file:///etc/passwd", "http://", "http://[", "http://a:b", "http://a:99999", "http://a/é"):
                for url in (link, "http://s3.example.com"):
                    client = Client("https://gateway.example.com", "key")
                    client._network = Stage([{"status": 302, "header": {"Location": link}, "text": ""}], forever=True)
                    with self.subTest(link, url=url), self.assertRaisesRegex(OSError, "file 1 of task task_1"):
                        client.save(film(url), folder)
        for urls in ("https://s3/a", [7], None):
            with self.subTest(urls), self.assertRaisesRegex(ValueError, "this is no task"):
                read_task({"id": "task_1", "status": "completed", "result": {"videos": [{"url": urls}]}})

    def test_webhook(self) -> None:
        """A header of a stranger that is no UTF-8 is a signature that does not hold."""
        for name in ("webhook-id", "webhook-signature"):
            headers = {"webhook-id": "a", "webhook-timestamp": str(int(time.time())), "webhook-signature": "v1,a"}
            headers[name] += "\udcff"
            with self.subTest(name), self.assertRaises(WebhookError):
                verify_webhook("whsec_MDEyMzQ1Njc4OWFiY2RlZg==", headers, b"{}")

    def test_unknown(self) -> None:
        client = Client("https://gateway.example.com", "key")
        client._network = Stage([{"text": "<html>"}])
        with self.assertRaises(UnknownError) as unknown:
            client.submit("m", {}, endpoint=ENDPOINT, idempotency_key="k")
        self.assertEqual((unknown.exception.idempotency_key, unknown.exception.task_id), ("k", None))


class Files(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_upload(self) -> None:
        """A path, an open file from where it stands, and a pipe are sent whole."""
        content = os.urandom(3 << 20)
        path = self.folder / 'a "cat".png'
        path.write_bytes(b"skipped" + content)
        forms: list[bytes] = []

        def gateway(request: Handler) -> None:
            forms.append(request.rfile.read(int(request.headers["Content-Length"])))
            request.says({"url": "https://files.example.com/a"})

        with serve(gateway) as url:
            client = Client(url, "key")
            self.assertEqual(client.upload("images", path), "https://files.example.com/a")
            with path.open("rb") as opened:
                opened.seek(len("skipped"))
                client.upload("images", opened, "cat.png")
            with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as pipe:
                client.upload("images", cast(Any, pipe.stdout))
        self.assertIn(b'filename="a %22cat%22.png"', forms[0])
        for form, wanted in zip(forms, (b"skipped" + content, content, b"skipped" + content)):
            sent = form.partition(b"\r\n\r\n")[2]
            self.assertTrue(sent.startswith(wanted + b"\r\n--"), f"{len(sent)} bytes came of {len(wanted)}")

    def test_refused_upload(self) -> None:
        """A refusal is read, though the gateway has not read the file."""

        def gateway(request: Handler) -> None:
            request.says({"error": {"message": "too large"}}, 413)
            request.connection.shutdown(1)
            while request.rfile.read1(1 << 20):  # type: ignore[attr-defined]
                pass

        with serve(gateway) as url, self.assertRaisesRegex(GatewayError, "too large"):
            Client(url, "key").upload("images", io.BytesIO(bytes(16 << 20)))

    def test_save(self) -> None:
        """A link leads elsewhere without the key; a file of the same name is replaced."""

        def store(request: Handler) -> None:
            if "Authorization" in request.headers:
                request.says(b"two credentials", 400)
            elif request.path == "/film":
                request.says(b"film")
            elif request.path == "/circle":
                request.says(b"", 302, Location="/circle")
            else:
                request.says(b"", 302, Location="/film")

        old = self.folder / "task_1-1.mp4"
        old.write_text("old")
        with serve(store) as url:
            client = Client("https://gateway.example.com", "key")
            self.assertEqual(client.save(film(url + "/link"), self.folder), [old])
            with self.assertRaisesRegex(OSError, "file 1 of task task_1: the link leads in circles"):
                client.save(film(url + "/circle"), self.folder)
        self.assertEqual([path.read_text() for path in self.folder.iterdir()], ["film"])
        self.assertEqual(old.stat().st_mode & 0o777, 0o644)


class Interrupt(unittest.TestCase):
    def test_ctrl_c(self) -> None:
        """Ctrl-C ends a wait within a call, and says the task's id."""
        # A shell starts what runs in its background with SIGINT ignored.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        gone = threading.Event()

        def gateway(request: Handler) -> None:
            if request.command == "POST":
                request.says({"data": [{"task_id": "task_1"}]})
            elif "wait" not in request.path:
                request.says(WORKING)
            else:
                os.kill(os.getpid(), signal.SIGINT)
                if request.left():
                    gone.set()

        with serve(gateway) as url:
            says = r"^task task_1 continues: wait\('task_1'\) waits for it again$"
            with self.assertRaisesRegex(KeyboardInterrupt, says):
                Client(url, "key").run("m", {}, endpoint=ENDPOINT)
        self.assertTrue(gone.wait(30), "the connection was left open")


class Async(unittest.TestCase):
    def test_cancel(self) -> None:
        """A cancelled call names its task, and its connection is closed."""
        gone = threading.Event()
        asked = threading.Event()

        def gateway(request: Handler) -> None:
            if request.command == "POST":
                request.says({"data": [{"task_id": "task_1"}]})
                return
            asked.set()
            if request.left():
                gone.set()

        async def leave(url: str) -> None:
            run = asyncio.create_task(AsyncClient(url, "key").run("m", {}, endpoint=ENDPOINT))
            await asyncio.to_thread(asked.wait)
            run.cancel()
            with self.assertRaisesRegex(asyncio.CancelledError, "task task_1 continues"):
                await run

        with serve(gateway) as url:
            asyncio.run(leave(url))
        self.assertTrue(gone.wait(30), "the connection was left open")

    def test_pause(self) -> None:
        """A pause ends as well."""

        def gateway(request: Handler) -> None:
            request.says({}, 429, **{"Retry-After": "50"})
            asked.set()

        asked = threading.Event()

        async def leave(url: str) -> None:
            client = AsyncClient(url, "key")
            submit = asyncio.create_task(client.submit("m", {}, endpoint=ENDPOINT, idempotency_key="k"))
            await asyncio.to_thread(asked.wait)
            submit.cancel()
            with self.assertRaisesRegex(asyncio.CancelledError, "repeat the request with the idempotency key k"):
                await submit

        with serve(gateway) as url:
            asyncio.run(leave(url))

    def test_many(self) -> None:
        """A hundred waits go on side by side, and their progress comes in the loop's thread."""
        together = threading.Barrier(100)

        def gateway(request: Handler) -> None:
            if "wait" not in request.path:
                request.says(WORKING)
                return
            together.wait(30)
            request.says(COMPLETED)

        heard: list[tuple[int, int]] = []

        async def progress(task: Task) -> None:
            heard.append((task.progress, threading.get_ident()))

        async def waits(url: str) -> list[Task]:
            client = AsyncClient(url, "key")
            return await asyncio.gather(*(client.wait("task_1", progress=progress) for _ in range(100)))

        with serve(gateway) as url:
            self.assertEqual({task.status for task in asyncio.run(waits(url))}, {"completed"})
        self.assertEqual(heard, [(40, threading.get_ident())] * 100)

    def test_errors(self) -> None:
        """What a call raises, and what progress raises, comes to the caller."""
        answers = [{"data": [{"task_id": "task_1"}]}, {"data": {"id": "task_1", "status": "failed"}}, WORKING]

        def progress(_: Task) -> None:
            raise LookupError("mine")

        async def fails(url: str) -> None:
            client = AsyncClient(url, "key")
            with self.assertRaises(TaskError):
                await client.run("m", {}, endpoint=ENDPOINT)
            with self.assertRaisesRegex(LookupError, "mine"):
                await client.wait("task_1", progress=progress)

        with serve(lambda request: request.says(answers.pop(0))) as url:
            asyncio.run(fails(url))


class TLS(unittest.TestCase):
    def test_tls(self) -> None:
        """A gateway behind TLS is spoken to if its certificate is trusted, and a cancel ends that as well."""
        asked = threading.Event()

        def gateway(request: Handler) -> None:
            if request.path == "/v1/tasks/task_1":
                request.says(COMPLETED)
                return
            asked.set()
            with contextlib.suppress(OSError):
                request.left()

        async def leave(url: str, context: ssl.SSLContext) -> None:
            call = asyncio.create_task(AsyncClient(url, "key", context=context).call("GET", "/v1/account"))
            await asyncio.to_thread(asked.wait)
            call.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await call

        with tempfile.TemporaryDirectory() as folder:
            pem = os.path.join(folder, "pem")
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
                + ["-days", "2", "-subj", "/CN=gateway", "-addext", "subjectAltName=IP:127.0.0.1"]
                + ["-keyout", pem + ".key", "-out", pem],
                check=True,
                stderr=subprocess.DEVNULL,
            )
            theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            theirs.load_cert_chain(pem, pem + ".key")
            ours = ssl.create_default_context(cafile=pem)
            with serve(gateway, theirs) as url:
                self.assertEqual(Client(url, "key", context=ours).task("task_1").status, "completed")
                asyncio.run(leave(url, ours))
                with self.assertRaises(ssl.SSLCertVerificationError):
                    Client(url, "key").cancel("task_1")
