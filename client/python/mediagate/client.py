"""The client: its calls, and how it repeats, waits and saves."""

from __future__ import annotations

import io
import json
import os
import re
import secrets
import ssl
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from typing import IO, Any, TypeVar
from urllib.parse import quote as escape
from urllib.parse import urljoin, urlsplit

from .behaviours import (
    FIRST_PAUSE,
    LEAST_PACE,
    LONGEST_HELD,
    LONGEST_PAUSE,
    LONGEST_SILENCE,
    LOOK_PAUSE,
    PATIENCE,
    POLL,
    SUBMIT_PATH,
    TRIES,
)
from .errors import AnswerError, GatewayError, TaskError, UnknownError, goes_on
from .transport import Answer, Network, Stop, Stopped, send
from .types import Model, Quote, Task, amount, is_id, read_task

T = TypeVar("T")
Fields = Mapping[str, Any]
Progress = Callable[[Task], object]

#: The largest answer that the client reads, in bytes. Files have no limit.
_LARGEST_ANSWER = 16 << 20
#: How much of a file the client holds in memory, in bytes.
_BLOCK = 256 << 10

#: The extension of a saved file, by media type.
_EXTENSIONS = {
    "audio/aac": ".aac",
    "audio/flac": ".flac",
    "audio/mpeg": ".mp3",
    "audio/ogg": ".oga",
    "audio/wav": ".wav",
    "image/gif": ".gif",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/webp": ".webp",
    "video/mp4": ".mp4",
    "video/quicktime": ".mov",
    "video/webm": ".webm",
}


@dataclass
class _Request:
    """A call with its time limits."""

    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | Iterable[bytes] | None = None
    #: The size of the body, in bytes.
    size: int = 0
    #: How long the gateway may hold back the answer, in seconds.
    held: float = 0
    #: Whether the bound is for the whole answer, and not only for its beginning.
    whole: bool = False

    @property
    def bound(self) -> float:
        return LONGEST_SILENCE + self.held + self.size / LEAST_PACE


class Client:
    """A client of one gateway with one key. Any number of threads may use it.

    A call raises GatewayError if the gateway refuses it, and OSError if its answer is lost and all
    repeats are used up. Ctrl-C ends a wait at once. The task continues, and the KeyboardInterrupt
    names it.
    """

    def __init__(
        self, url: str, key: str, *, strict: bool | None = None, context: ssl.SSLContext | None = None
    ) -> None:
        """Take the gateway's address, such as https://api.example.com, and a key.

        strict says whether the gateway refuses a field that the model does not have. By default the
        key's setting decides. context has the certificate authorities for https, by default the
        system's.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"url must be the address of a gateway, such as https://api.example.com, and is {url!r}")
        self._url = _printable("url", url).rstrip("/")
        self._key = _printable("key", key)
        self._strict = strict
        self._network = Network(context)
        self._stop = Stop()

    def models(self, category: str = "") -> list[Model]:
        """List the models of a category (video, image or audio), or all that the key may use."""
        path = "/v1/models?expand=category" + (f"&category={escape(category, safe='')}" if category else "")
        text = self._repeat(_Request("GET", path), bytes)
        try:
            return [Model(m["id"], m.get("category", ""), m) for m in json.loads(text)["data"]]
        except (KeyError, RecursionError, TypeError, ValueError):
            raise AnswerError(f"the answer is no list of models: {_excerpt(text)}") from None

    def schema(self, model: str) -> dict[str, Any]:
        """Fetch a model's contract: where its requests go, what they may hold and what they cost.

        Music and speech have no contract. Asking for one raises GatewayError with status 404.
        """
        text = self._repeat(_Request("GET", f"/v1/model-schema?model={escape(model, safe='')}"), bytes)
        try:
            contract = dict(json.loads(text))
            if contract["endpoint"]:
                return contract
        except (KeyError, RecursionError, TypeError, ValueError):
            pass
        raise AnswerError(f"the answer is no contract of {model}: {_excerpt(text)}")

    def quote(self, model: str, fields: Fields, *, endpoint: str | None = None) -> Quote:
        """Return the most that a request can cost. It makes and charges nothing."""
        _encode(fields)  # report a mistake before the first call
        endpoint = endpoint or str(self.schema(model)["endpoint"])
        body = _encode({**fields, "model": model, "endpoint": endpoint})
        text = self._repeat(_json("POST", "/v1/quote", body), bytes)
        try:
            answer = json.loads(text)
            return Quote(amount(answer["cost"]), amount(answer["credits_cost"]), str(answer["currency"]), answer)
        except (ArithmeticError, KeyError, RecursionError, TypeError, ValueError):
            raise AnswerError(f"the answer is no quote: {_excerpt(text)}") from None

    def submit(
        self, model: str, fields: Fields, *, endpoint: str | None = None, idempotency_key: str | None = None
    ) -> str:
        """Submit a request and return the id of its task. It makes one task even if answers are lost.

        fields are the fields of the model's schema. endpoint is the path of the submit, by default
        that of the model's contract. Music models have no contract: give /v1/music/generations or a
        path below it. Within 24 hours, a repeated request with the same idempotency key returns the
        first task.
        """
        body = _encode({**fields, "model": model})
        key = secrets.token_hex(16) if idempotency_key is None else _printable("idempotency_key", idempotency_key)
        endpoint = endpoint or str(self.schema(model)["endpoint"])
        if not re.fullmatch(SUBMIT_PATH, endpoint):
            raise ValueError(f"{endpoint!r} is not the path of a submit of video, images, music or art")
        request = _json("POST", endpoint, body)
        # Otherwise a request in OpenAI's form is answered with the pictures, without the task's id.
        request.headers.update({"Idempotency-Key": key, "Prefer": "respond-async"})
        try:
            return _acknowledged(self._repeat(request, bytes))
        except (AnswerError, GatewayError, OSError) as error:
            if isinstance(error, GatewayError) and not error.temporary:
                raise
            raise UnknownError(error, key) from error
        except (KeyboardInterrupt, Stopped) as left:
            raise type(left)(goes_on(key)) from None

    def task(self, task_id: str) -> Task:
        """Fetch a task as it is now."""
        return self._look(task_id, 0, whole=False)

    def wait(self, task_id: str, *, progress: Progress | None = None) -> Task:
        """Wait until the task has ended and return it, whether it succeeded or not.

        progress is called with the task after each poll until the task ends. If the gateway is
        away, silent or answers with something else, wait keeps trying for ten minutes.
        """
        try:
            return self._wait(task_id, progress)
        except (KeyboardInterrupt, Stopped) as left:
            raise type(left)(f"{goes_on('', task_id)}: wait({task_id!r}) waits for it again") from None

    def run(
        self,
        model: str,
        fields: Fields,
        *,
        endpoint: str | None = None,
        idempotency_key: str | None = None,
        progress: Progress | None = None,
    ) -> Task:
        """Submit a request and wait for the end of its task. Raise TaskError if it does not complete."""
        key = secrets.token_hex(16) if idempotency_key is None else idempotency_key
        task_id = self.submit(model, fields, endpoint=endpoint, idempotency_key=key)
        try:
            task = self.wait(task_id, progress=progress)
        except (AnswerError, GatewayError, OSError) as error:
            raise UnknownError(error, key, task_id) from error
        if task.status != "completed":
            raise TaskError(task)
        return task

    def cancel(self, task_id: str) -> Task:
        """Request the cancel of a task. Raise GatewayError with status 409 if the task has ended."""
        return _task_of(self._once(_Request("POST", f"{_task_path(task_id)}/cancel")), task_id)

    def upload(self, kind: str, file: str | os.PathLike[str] | IO[bytes], name: str | None = None) -> str:
        """Store a file for 72 hours and return its address, which requests can use.

        kind is images, videos or audios. file is a path, or a file that is open in binary mode. It
        is not read into memory.
        """
        if kind not in ("images", "videos", "audios"):
            raise ValueError(f"kind must be images, videos or audios, and is {kind!r}")
        if name is not None and not isinstance(name, str):
            raise TypeError(f"name must be a str, and is {type(name).__name__}")
        if isinstance(file, (str, os.PathLike)):
            path = Path(file)
            with path.open("rb") as opened:
                return self._upload(kind, opened, path.name if name is None else name)
        if isinstance(file, (bytes, bytearray, memoryview)):
            raise TypeError("bytes are no file: pass a path as str or Path, or io.BytesIO(content)")
        if not hasattr(file, "read"):
            raise TypeError(f"file must be a path or an open file, and is {type(file).__name__}")
        if file.closed:
            raise ValueError("the file is closed")
        if not isinstance(file.read(0), bytes):
            raise TypeError("the file is open as text: open it with the mode 'rb'")
        return self._upload(kind, file, name or "upload")

    def save(self, task: Task, folder: str | os.PathLike[str] = ".") -> list[Path]:
        """Save the files of a completed task in the folder, and return their paths.

        Their names are TASK-N with the extension of the media type. An incomplete file is never left
        under such a name.
        """
        if isinstance(folder, bytes):
            raise TypeError("bytes are no path: pass a str or a Path")
        if not is_id(task.id):
            raise ValueError(f"no file can be named for a task with the id {task.id!r}")
        paths = []
        for file in task.files:
            path = Path(folder, f"{task.id}-{file.n}{_EXTENSIONS.get(file.media_type or '', '')}")
            with self._download(file.url, f"file {file.n} of task {task.id}") as answer:
                _store(answer, path)
            paths.append(path)
        return paths

    def call(
        self, method: str, path: str, body: Fields | None = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        """Make a call and return its answer, or None if it is empty.

        The call is repeated if the answer is lost or the gateway is away. So a call that creates
        something needs an Idempotency-Key.
        """
        if not path.startswith("/"):
            raise ValueError(f"path must begin with a slash, and is {path!r}")
        _printable("path", path)
        request = _Request(method, path) if body is None else _json(method, path, _encode(body))
        request.headers.update(headers or {})
        request.held = LONGEST_HELD
        text = self._repeat(request, bytes)
        return _parse(text) if text else None

    def _wait(self, task_id: str, progress: Progress | None) -> Task:
        seconds, heard = 0, self._network.now()
        while True:
            asked = self._network.now()
            try:
                task = self._look(task_id, seconds, whole=True)
            except (AnswerError, GatewayError, OSError) as error:
                if isinstance(error, GatewayError) and not error.temporary or self._network.now() - heard > PATIENCE:
                    raise
                self._network.pause(self._stop, LOOK_PAUSE)
            else:
                if task.ended:
                    return task
                heard = self._network.now()
                if progress is not None:
                    progress(task)
                if seconds and heard - asked < LOOK_PAUSE:  # the gateway did not wait
                    self._network.pause(self._stop, LOOK_PAUSE)
            seconds = POLL

    def _look(self, task_id: str, seconds: int, *, whole: bool) -> Task:
        """Fetch the task when it ends, or after so many seconds."""
        path = _task_path(task_id) + (f"?wait={seconds}" if seconds else "")
        return self._repeat(_Request("GET", path, held=seconds, whole=whole), lambda text: _task_of(text, task_id))

    def _upload(self, kind: str, file: IO[bytes], name: str) -> str:
        if file.seekable():
            start = file.tell()
            size = file.seek(0, os.SEEK_END) - start
            file.seek(start)
        else:
            content = file.read()
            file, size = io.BytesIO(content), len(content)
        boundary = secrets.token_hex(16)
        quoted = name.encode("utf-8", "replace").decode().translate({10: "%0A", 13: "%0D", 34: "%22"})
        head = (
            f"--{boundary}\r\n"
            f'Content-Disposition: form-data; name="file"; filename="{quoted}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        ).encode()
        tail = f"\r\n--{boundary}--\r\n".encode()
        length = len(head) + size + len(tail)
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}", "Content-Length": str(length)}
        body = _form(head, file, size, tail)
        text = self._once(_Request("POST", f"/v1/uploads/{kind}", headers, body, size=length))
        answer = _parse(text)
        if not isinstance(answer, dict) or not isinstance(answer.get("url"), str):
            raise AnswerError(f"the answer names no upload: {_excerpt(text)}")
        return str(answer["url"])

    def _download(self, url: str, what: str) -> Answer:
        """Open a link. The request has no key: the link's host must not see it."""
        try:
            for _ in range(10):
                answer = send(self._network, self._stop, "GET", url, {}, None, bound=LONGEST_SILENCE, whole=False)
                if answer.status == 200:
                    return answer
                with answer:
                    to = answer.headers.get("Location")
                    if to is None or not 300 <= answer.status < 400:
                        raise OSError(f"{what}: the link answered {answer.status}")
                    url = urljoin(url, to)
        except OSError:
            raise
        except ValueError as error:
            raise OSError(f"{what}: the link leads nowhere: {error}") from error
        raise OSError(f"{what}: the link leads in circles")

    def _repeat(self, request: _Request, read: Callable[[bytes], T]) -> T:
        """Make a call until read takes its answer, up to TRIES times."""
        attempt, pause = 1, FIRST_PAUSE
        while True:
            try:
                return read(self._once(request))
            except GatewayError as error:
                if not error.temporary or attempt == TRIES:
                    raise
                wait = min(max(pause, error.retry_after or 0), LONGEST_PAUSE)
            except (AnswerError, OSError):
                if attempt == TRIES:
                    raise
                wait = pause
            self._network.pause(self._stop, wait)
            attempt, pause = attempt + 1, pause * 2

    def _once(self, request: _Request) -> bytes:
        """Make a call and return the body of its answer. A redirect is an error: the key would go along."""
        headers = {**request.headers, "Authorization": f"Bearer {self._key}"}
        if self._strict is not None:
            headers["Mediagate-Strict"] = "true" if self._strict else "false"
        with send(
            self._network,
            self._stop,
            request.method,
            self._url + request.path,
            headers,
            request.body,
            bound=request.bound,
            whole=request.whole,
        ) as answer:
            text = b"".join(_pieces(answer, _LARGEST_ANSWER))
        if answer.status >= 300:
            raise _refusal(answer.status, answer.headers, text)
        return text


def file_of(task_id: str, n: int = 1) -> str:
    """The address of the n-th file of a task, from 1.

    A field of a request takes it where it takes the URL of a file, also while that task still runs:
    the new task waits for it. So a whole chain can be submitted at once.
    """
    return f"{_task_path(task_id)}/files/{n}"


def _task_path(task_id: str) -> str:
    if not isinstance(task_id, str):
        raise TypeError(f"the id of a task must be a str, and is {type(task_id).__name__}")
    return "/v1/tasks/" + escape(task_id, safe="")


def _printable(name: str, value: str) -> str:
    """The value, if it can stand in a header."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, and is {type(value).__name__}")
    if not re.fullmatch("[!-~]+", value):
        raise ValueError(f"{name} must be printable ASCII without blanks or line breaks, and not empty")
    return value


def _json(method: str, path: str, body: bytes) -> _Request:
    return _Request(method, path, {"Content-Type": "application/json"}, body, len(body))


def _encode(body: Fields) -> bytes:
    """Write a body as JSON. A value that JSON cannot carry is an error that names its field."""
    members = []
    for name, value in body.items():
        if not isinstance(name, str):
            raise TypeError(f"the name of a field must be a str, and {name!r} is none")
        try:
            members.append(json.dumps({name: value}, ensure_ascii=False, allow_nan=False)[1:-1].encode())
        except UnicodeEncodeError as error:
            found = ascii(error.object[error.start])
            raise ValueError(f"{name!a} cannot be sent: {found} is half a character (a lone surrogate)") from None
        except (RecursionError, TypeError, ValueError) as error:
            raise type(error)(f"{name!r} cannot be sent as JSON: {error}") from None
    return b"{" + b",".join(members) + b"}"


def _form(head: bytes, file: IO[bytes], size: int, tail: bytes) -> Iterator[bytes]:
    yield head
    while size > 0:
        block = file.read(min(_BLOCK, size))
        if not block:
            raise ValueError("the file became shorter while it was sent")
        size -= len(block)
        yield block
    yield tail


def _pieces(answer: Answer, most: int) -> Iterator[bytes]:
    while most > 0 and (piece := answer.read(min(_BLOCK, most))):
        most -= len(piece)
        yield piece


def _store(answer: Answer, path: Path) -> None:
    """Write the body to the path, which has the whole file or none."""
    handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with open(handle, "wb") as file:
            while piece := answer.read(_BLOCK):
                file.write(piece)
        os.chmod(part, 0o644)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise


def _parse(text: bytes) -> Any:
    """Parse an answer. Raise AnswerError if it is not JSON."""
    try:
        return json.loads(text)
    except (RecursionError, ValueError):
        raise AnswerError(f"the answer is no JSON: {_excerpt(text)}") from None


def _excerpt(text: bytes) -> str:
    return json.dumps(text[:200].decode("utf-8", "replace"))


def _task_of(text: bytes, task_id: str) -> Task:
    """Read the task in an answer. A proxy may answer with a page instead, and a cache with another task."""
    try:
        task = read_task(json.loads(text)["data"])
    except (KeyError, RecursionError, TypeError, ValueError):
        task = None
    if task is None or task.id != task_id:
        raise AnswerError(f"the answer is not the task {task_id}: {_excerpt(text)}")
    return task


def _acknowledged(text: bytes) -> str:
    """Read the task's id in the answer to a submit."""
    try:
        (acknowledgement,) = json.loads(text)["data"]
        task_id = acknowledgement["task_id"]
    except (KeyError, RecursionError, TypeError, ValueError):
        task_id = None
    if not is_id(task_id):
        raise AnswerError(f"the answer names no task: {_excerpt(text)}")
    return str(task_id)


def _refusal(status: int, headers: Message, text: bytes) -> GatewayError:
    """Read an error in any of the gateway's forms, or of a proxy in front of it."""
    try:
        error = json.loads(text)["error"]
        error = error if isinstance(error, dict) else {}
    except (KeyError, RecursionError, TypeError, ValueError):
        error = {}  # only the status is known
    message = error.get("message") or ""
    if not message and "Location" in headers:
        message = f"redirected to {headers['Location']}, which is not followed"
    code = error.get("code")
    retry_after = headers.get("Retry-After", "")
    return GatewayError(
        status,
        message,
        type=error.get("type"),
        param=error.get("param"),
        reason=error.get("reason") or (code if isinstance(code, str) else None),  # music endpoints name it code
        request_id=error.get("request_id") or headers.get("X-Request-Id"),
        retry_after=int(retry_after) if re.fullmatch("[0-9]{1,9}", retry_after) else None,
        temporary=(status == 429 or status >= 500) and headers.get("X-Should-Retry") != "false",
    )
