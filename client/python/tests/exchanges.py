"""Plays the scripts of client/exchanges, against a client whose clock and connections are played."""

from __future__ import annotations

import dataclasses
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast
from unittest import mock
from urllib.parse import SplitResult

from mediagate import Client, Event, TaskError, Task, file_of, verify_webhook
from mediagate.transport import Network, Stop

EXCHANGES = Path(__file__).parents[2] / "exchanges"
#: 2000-01-01, at which each play begins.
BEGIN = 946684800


def read(name: str) -> Any:
    return json.loads((EXCHANGES / f"{name}.json").read_text())


@dataclasses.dataclass
class Ask:
    """A request as the server got it."""

    method: str
    url: str
    header: dict[str, str]
    body: bytes


class Stage(Network):
    """A clock that stands still but for waits, and a server that gives the answers of a script."""

    def __init__(self, answers: list[Any], *, forever: bool = False, leave: float | None = None) -> None:
        self.answers, self.forever, self.leave = answers, forever, leave
        self.time = 0.0
        self.asks: list[Ask] = []

    def now(self) -> float:
        return self.time

    def pause(self, stop: Stop, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self.time += seconds
        if self.leave is not None and self.time >= self.leave:
            self.time = self.leave
            raise KeyboardInterrupt

    def connect(self, url: SplitResult, timeout: float) -> socket.socket:
        return cast(socket.socket, Line(self, url))

    def answer(self, ask: Ask) -> Any:
        self.asks.append(ask)
        assert len(self.asks) < 1000, "it asks for ever"
        if len(self.answers) == 1 and self.forever:
            return self.answers[0]
        return self.answers.pop(0)


class Line:
    """The socket of one call. Bytes come at their time, or never."""

    def __init__(self, stage: Stage, url: SplitResult) -> None:
        self.stage, self.url = stage, url
        self.sent = b""
        self.timeout = 0.0
        #: The bytes to come, each piece with the seconds before it; b"" is the end, None breaks the connection.
        self.coming: list[tuple[float, bytes | None]] | None = None

    def settimeout(self, seconds: float) -> None:
        self.timeout = seconds

    def sendall(self, data: bytes) -> None:
        self.sent += data

    def recv_into(self, buffer: memoryview) -> int:
        if self.coming is None:
            self.coming = self.respond()
        after, piece = self.coming.pop(0) if self.coming else (float("inf"), b"")
        if after > self.timeout:
            self.coming.insert(0, (after - self.timeout, piece))
            self.stage.advance(self.timeout)
            raise TimeoutError("timed out")
        self.stage.advance(after)
        if piece == b"":
            self.coming = [(0, b"")]  # the end stays
        if piece is None:
            raise ConnectionResetError("reset by peer")
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        pass

    def respond(self) -> list[tuple[float, bytes | None]]:
        head, _, body = self.sent.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        method, target, _ = first.split(" ")
        header = dict(line.split(": ", 1) for line in lines)
        answer = self.stage.answer(Ask(method, f"{self.url.scheme}://{header['Host']}{target}", header, body))
        if answer == "lost":
            return [(0, None)]
        if answer == "silent":
            return []
        text = (answer["text"] if "text" in answer else json.dumps(answer["json"])).encode()
        told = {"Content-Length": str(len(text)), **answer.get("header", {})}
        lines = [f"HTTP/1.1 {answer.get('status', 200)} X", *(f"{name}: {value}" for name, value in told.items())]
        begin = "\r\n".join([*lines, "", ""])
        if "stall" in answer:
            return [(0, begin.encode()), (0, text[: answer["stall"]])]
        if "cut" in answer:
            return [(0, begin.encode()), (0, text[: answer["cut"]]), (0, b"")]
        if "pace" in answer:
            return [(0, begin.encode()), *((answer["pace"], bytes([byte])) for byte in text), (answer["pace"], b"")]
        return [(0, begin.encode()), *([(0.0, text)] if text else []), (0, b"")]


class Play:
    """One script: a call, the answers that it gets and what is to come of it."""

    def __init__(self, script: dict[str, Any], answers: list[Any], folder: Path) -> None:
        self.script, self.folder = script, folder
        self.stage = Stage(answers, forever=script.get("forever", False), leave=script.get("leave"))
        self.client = Client("https://gateway.example.com/", "key", strict=script.get("strict"))
        self.client._network = self.stage
        self.heard: list[int] = []

    def call(self) -> Any:
        """Make the call, and return what a script can say of its result."""
        script, client = self.script, self.client
        model, fields, task_id = script.get("model", "m"), script.get("fields", {}), script.get("id", "task_1")
        endpoint = script.get("endpoint", "/v1/videos/generations") or None
        key = script.get("key", "k") or None

        def progress(task: Task) -> None:
            self.heard.append(task.progress)

        def quote() -> str:
            quoted = client.quote(model, fields, endpoint=endpoint)
            return f"{quoted.cost} {quoted.currency}"

        def upload() -> str:
            path = self.folder / "cat.png"
            path.write_bytes(b"a" * script["size"])
            return client.upload("images", path)

        def save() -> list[str]:
            empty = self.folder / "saved"
            empty.mkdir(exist_ok=True)
            try:
                paths = client.save(self.completed(), empty)
            except BaseException:
                assert not list(empty.iterdir()), "a part of a file is left"
                raise
            assert [path.name for path in paths] == ["task_1-1.mp4"]
            return [path.read_text() for path in paths]

        def verify() -> Event:
            with mock.patch("time.time", lambda: BEGIN + self.stage.time):
                return verify_webhook(script["secret"], script["header"], script["body"])

        calls: dict[str, Callable[[], Any]] = {
            "submit": lambda: client.submit(model, fields, endpoint=endpoint, idempotency_key=key),
            "run": lambda: client.run(model, fields, endpoint=endpoint, idempotency_key=key, progress=progress),
            "wait": lambda: client.wait(task_id, progress=progress),
            "task": lambda: client.task(task_id),
            "cancel": lambda: client.cancel(task_id) and None,
            "call": lambda: client.call(script["method"], script["path"], script.get("fields")),
            "quote": quote,
            "models": lambda: [model.id for model in client.models(script["category"])],
            "upload": upload,
            "save": save,
            "file_of": lambda: file_of(task_id, script["n"]),
            "verify_webhook": verify,
        }
        result = calls[script["call"]]()
        if isinstance(result, Task):
            return {"status": result.status, "files": [file.url for file in result.files]}
        if isinstance(result, Event):
            status = result.task.status if result.task else None
            return {"type": result.type, "timestamp": result.timestamp, "task": status, "data": result.data}
        return result

    def completed(self) -> Task:
        """The task whose file a script saves."""
        stage = Stage([read("answers")["completed"]])
        client = Client("https://gateway.example.com", "key")
        client._network = stage
        return client.task("task_1")


def plays(script: dict[str, Any], folder: Path) -> list[Play]:
    """The plays of a script: one, or one for each of the answers that it names."""
    named = read("answers")

    def answer(value: Any, each: Any) -> Any:
        value = each if value == "each" else value
        return value if value in ("lost", "silent") or isinstance(value, dict) else named[value]

    return [
        Play(script, [answer(value, each) for value in script["answers"]], folder)
        for each in script.get("each", [None])
    ]


def said(error: BaseException) -> dict[str, Any]:
    """What a script can say of an error."""
    if isinstance(error, TaskError):
        return {"says": str(error), "task": error.task.status}
    names = ("status", "message", "type", "param", "reason", "request_id")
    return {"says": str(error), **{name: getattr(error, name, None) or "" for name in names}}
