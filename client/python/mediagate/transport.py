"""One call over its own connection, with time limits for the answer.

http.client speaks HTTP. Bounded stands between it and the socket, and gives each send and receive
the time that is left of the call.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, cast
from urllib.parse import SplitResult, urlsplit, urlunsplit

from .behaviours import LONGEST_SILENCE

SILENT = "the server is silent: the answer did not come in time"


class Stopped(Exception):
    """Another thread has stopped the call."""


class Stop:
    """Stops calls from another thread. It ends their pauses and shuts their connections down."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()

    def set(self) -> None:
        with self._lock:
            self._event.set()
            for sock in self._sockets:
                with suppress(OSError):
                    # The shutdown of a TLS socket would drop the state that the reading thread uses.
                    socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def check(self) -> None:
        if self._event.is_set():
            raise Stopped

    def pause(self, seconds: float) -> None:
        if self._event.wait(seconds):
            raise Stopped

    def add(self, sock: socket.socket) -> None:
        with self._lock:
            self._sockets.add(sock)
        self.check()

    def remove(self, sock: socket.socket) -> None:
        with self._lock:
            self._sockets.discard(sock)


class Network:
    """The clock and the connections of a client. Tests replace both."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self._context = context

    def now(self) -> float:
        return time.monotonic()

    def pause(self, stop: Stop, seconds: float) -> None:
        stop.pause(seconds)

    def connect(self, url: SplitResult, timeout: float) -> socket.socket:
        tls = url.scheme == "https"
        sock = socket.create_connection((url.hostname or "", url.port or (443 if tls else 80)), timeout)
        if not tls:
            return sock
        if self._context is None:
            self._context = ssl.create_default_context()
        try:
            return self._context.wrap_socket(sock, server_hostname=url.hostname)
        except BaseException:
            sock.close()
            raise


class Bounded:
    """A socket for http.client whose operations end with the time of the call."""

    def __init__(self, network: Network, stop: Stop, sock: socket.socket, end: float) -> None:
        self._network, self._stop, self._socket = network, stop, sock
        self._end: float | None = end
        stop.add(sock)

    def begun(self) -> None:
        """Give each further piece of the answer LONGEST_SILENCE."""
        self._end = None

    def sendall(self, data: Any) -> None:
        with self._in_time() as sock:
            sock.sendall(data)

    def receive(self, buffer: Any) -> int:
        with self._in_time() as sock:
            return sock.recv_into(buffer)

    def makefile(self, *_: Any) -> io.BufferedReader:
        return io.BufferedReader(_Pieces(self), 64 << 10)

    def close(self) -> None:
        """Do nothing, because http.client closes the connection before the answer is read."""

    def end(self) -> None:
        self._stop.remove(self._socket)
        self._socket.close()

    @contextmanager
    def _in_time(self) -> Iterator[socket.socket]:
        left = LONGEST_SILENCE if self._end is None else self._end - self._network.now()
        try:
            if left <= 0:
                raise TimeoutError
            self._socket.settimeout(left)
            yield self._socket
        except TimeoutError:
            raise TimeoutError(SILENT) from None
        finally:
            self._stop.check()


class _Pieces(io.RawIOBase):
    def __init__(self, connection: Bounded) -> None:
        self._connection = connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._connection.receive(buffer)


class Answer:
    """An answer. Its body has not been read yet."""

    def __init__(self, response: http.client.HTTPResponse, connection: Bounded) -> None:
        self._response, self._connection = response, connection
        self.status = response.status
        self.headers = response.headers

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.end()

    def read(self, size: int) -> bytes:
        """Read at most size bytes, and none at the end. Raise OSError if the body is cut off."""
        try:
            piece = self._response.read(size)
        except http.client.HTTPException as error:
            raise ConnectionError(f"the answer is cut off: {error!r}") from error
        if not piece and self._response.length:
            raise ConnectionError(f"the answer is cut off: {self._response.length} bytes are missing")
        return piece


def send(
    network: Network,
    stop: Stop,
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes | Iterable[bytes] | None,
    *,
    bound: float,
    whole: bool,
) -> Answer:
    """Make a call. Its answer must begin within bound, or be complete by then if whole is set.

    Raise OSError if the answer is lost, ValueError if url is not an HTTP address, and Stopped if
    stop ends the call.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        raise ValueError(f"{url!r:.200} is no address of http or https")
    host = parts.netloc.rpartition("@")[2]
    target = urlunsplit(("", "", parts.path or "/", parts.query, ""))
    stop.check()
    end = network.now() + bound
    connection = Bounded(network, stop, network.connect(parts, bound), end)
    wire = http.client.HTTPConnection(host)
    wire.sock = cast(socket.socket, connection)
    try:
        # A gateway that refuses a body may answer and close before it has read the body.
        with suppress(ConnectionError):
            wire.request(method, target, body, {**headers, "Host": host, "Connection": "close"})
        response = wire.getresponse()
    except BaseException as error:
        connection.end()
        if isinstance(error, http.client.HTTPException) and not isinstance(error, OSError):
            raise ConnectionError(f"the answer is not HTTP: {error!r}") from error
        raise
    if not whole:
        connection.begun()
    return Answer(response, connection)
