"""The errors that calls raise. A call whose answer is lost raises an OSError."""

from __future__ import annotations

from http import HTTPStatus

from .types import Task


class MediagateError(Exception):
    """The base class of the package's errors."""


class GatewayError(MediagateError):
    """An error that the gateway answered with."""

    def __init__(
        self,
        status: int,
        message: str = "",
        *,
        type: str | None = None,
        param: str | None = None,
        reason: str | None = None,
        request_id: str | None = None,
        retry_after: int | None = None,
        temporary: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        #: For a refused request it names the field and the rule.
        self.message = message or _phrase(status)
        self.type = type
        #: The refused field, if the error is about a field.
        self.param = param
        #: A stable word for programs, such as out_of_range.
        self.reason = reason
        self.request_id = request_id
        #: In seconds, if the gateway sent it.
        self.retry_after = retry_after
        #: Whether the same call may succeed later.
        self.temporary = temporary

    def __str__(self) -> str:
        text = f"{self.message} ({self.status}"
        if self.reason:
            text += f", {self.reason}"
        if self.param:
            text += f" of {self.param}"
        if self.request_id:
            text += f", request {self.request_id}"
        return text + ")"


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return f"status {status}"


class AnswerError(MediagateError):
    """A successful answer with the wrong content, such as the page of a proxy."""


class TaskError(MediagateError):
    """A task that did not complete."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.task = task

    def __str__(self) -> str:
        if self.task.error:
            return f"task {self.task.id} failed: {self.task.error.message} ({self.task.error.code})"
        return f"task {self.task.id} is {self.task.status}"


class UnknownError(MediagateError):
    """The outcome of a request is unknown.

    The answer to its submit was lost, or the wait for its task broke off.
    """

    def __init__(self, cause: BaseException, idempotency_key: str, task_id: str | None = None) -> None:
        super().__init__(cause, idempotency_key, task_id)
        self.cause = cause
        #: Repeating the request with this key returns its task and makes no second one.
        self.idempotency_key = idempotency_key
        #: The task, if the submit was acknowledged. Pass it to wait to continue.
        self.task_id = task_id

    def __str__(self) -> str:
        return f"{goes_on(self.idempotency_key, self.task_id)}: {self.cause}"


class WebhookError(MediagateError):
    """A webhook with a wrong signature, older than five minutes, or without an event."""


def goes_on(idempotency_key: str, task_id: str | None = None) -> str:
    """Describe a request whose call ended early."""
    if task_id:
        return f"task {task_id} continues"
    return f"whether the task was made is unknown: repeat the request with the idempotency key {idempotency_key}"
