"""The client for asyncio. It has no logic of its own: each call runs a method of Client in a thread."""

from __future__ import annotations

import asyncio
import copy
import inspect
import os
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, TypeVar

from .client import Client, Fields, Progress
from .transport import Stop, Stopped
from .types import Model, Quote, Task

T = TypeVar("T")

#: How long a cancelled call may take to end, in seconds. Only a DNS lookup takes longer.
_GRACE = 1


class AsyncClient:
    """The methods of Client as coroutines. They raise the same errors.

    Cancelling a call shuts its connection down and ends the call at once. The task continues, and
    the CancelledError names it. progress runs in the event loop and may be a coroutine function.
    """

    def __init__(
        self, url: str, key: str, *, strict: bool | None = None, context: ssl.SSLContext | None = None
    ) -> None:
        """Take the arguments of Client."""
        self._client = Client(url, key, strict=strict, context=context)

    async def models(self, category: str = "") -> list[Model]:
        """List the models of a category (video, image or audio), or all that the key may use."""
        return await self._thread(lambda client: client.models(category))

    async def schema(self, model: str) -> dict[str, Any]:
        """Fetch a model's contract: where its requests go, what they may hold and what they cost."""
        return await self._thread(lambda client: client.schema(model))

    async def quote(self, model: str, fields: Fields, *, endpoint: str | None = None) -> Quote:
        """Return the most that a request can cost. It makes and charges nothing."""
        return await self._thread(lambda client: client.quote(model, fields, endpoint=endpoint))

    async def submit(
        self, model: str, fields: Fields, *, endpoint: str | None = None, idempotency_key: str | None = None
    ) -> str:
        """Submit a request and return the id of its task. It makes one task even if answers are lost."""
        return await self._thread(
            lambda client: client.submit(model, fields, endpoint=endpoint, idempotency_key=idempotency_key)
        )

    async def task(self, task_id: str) -> Task:
        """Fetch a task as it is now."""
        return await self._thread(lambda client: client.task(task_id))

    async def wait(self, task_id: str, *, progress: Progress | None = None) -> Task:
        """Wait until the task has ended and return it, whether it succeeded or not."""
        heard = _in_loop(progress)
        return await self._thread(lambda client: client.wait(task_id, progress=heard))

    async def run(
        self,
        model: str,
        fields: Fields,
        *,
        endpoint: str | None = None,
        idempotency_key: str | None = None,
        progress: Progress | None = None,
    ) -> Task:
        """Submit a request and wait for the end of its task. Raise TaskError if it does not complete."""
        heard = _in_loop(progress)
        return await self._thread(
            lambda client: client.run(
                model, fields, endpoint=endpoint, idempotency_key=idempotency_key, progress=heard
            )
        )

    async def cancel(self, task_id: str) -> Task:
        """Request the cancel of a task. Raise GatewayError with status 409 if the task has ended."""
        return await self._thread(lambda client: client.cancel(task_id))

    async def upload(self, kind: str, file: str | os.PathLike[str] | IO[bytes], name: str | None = None) -> str:
        """Store a file for 72 hours and return its address, which requests can use."""
        return await self._thread(lambda client: client.upload(kind, file, name))

    async def save(self, task: Task, folder: str | os.PathLike[str] = ".") -> list[Path]:
        """Save the files of a completed task in the folder, and return their paths."""
        return await self._thread(lambda client: client.save(task, folder))

    async def call(
        self, method: str, path: str, body: Fields | None = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        """Make a call and return its answer, or None if it is empty. Repeat it if the answer is lost."""
        return await self._thread(lambda client: client.call(method, path, body, headers))

    async def _thread(self, call: Callable[[Client], T]) -> T:
        """Run a call in a thread of its own. Cancelling the caller ends the call and the thread.

        asyncio.to_thread has only a few threads, and a wait may occupy one for minutes.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        client = copy.copy(self._client)
        client._stop = stop = Stop()

        def work() -> None:
            try:
                result = call(client)
            except BaseException as error:
                settle(done.set_exception, error)
            else:
                settle(done.set_result, result)

        def settle(report: Callable[[Any], None], outcome: object) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(lambda: None if done.done() else report(outcome))

        threading.Thread(target=work, name="mediagate", daemon=True).start()
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            stop.set()
            await asyncio.wait({done}, timeout=_GRACE)
            if not done.done():
                done.cancel()
            elif isinstance(left := done.exception(), Stopped):
                raise asyncio.CancelledError(str(left)) from None
            raise


def _in_loop(progress: Progress | None) -> Progress | None:
    """Return a function that runs progress in the loop, from another thread, and raises its errors there."""
    if progress is None:
        return None
    loop, call = asyncio.get_running_loop(), progress

    async def hear(task: Task) -> None:
        result = call(task)
        if inspect.isawaitable(result):
            await result

    return lambda task: asyncio.run_coroutine_threadsafe(hear(task), loop).result()
