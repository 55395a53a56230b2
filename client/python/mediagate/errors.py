"""What calls raise. Beside these, a call whose answer is lost raises an OSError, as the network does."""

from __future__ import annotations

from http import HTTPStatus

from .types import Task


class MediagateError(Exception):
    """The base of the package's errors."""


class GatewayError(MediagateError):
    """An answer that is an error."""

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
        #: It names the field and the rule of a request that was refused.
        self.message = message or _phrase(status)
        self.type = type
        #: The field that was refused, where there is one.
        self.param = param
        #: A word that stays the same, such as out_of_range.
        self.reason = reason
        self.request_id = request_id
        #: In seconds, where the gateway named it.
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
    """An answer of success that is not what was asked for, such as the page of a proxy."""


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
    """A submit whose fate is not known, or a task that goes on while nobody waits for it any more."""

    def __init__(self, cause: BaseException, idempotency_key: str, task_id: str | None = None) -> None:
        super().__init__(cause, idempotency_key, task_id)
        self.cause = cause
        #: With it, the same request finds its task and makes no second one.
        self.idempotency_key = idempotency_key
        #: The task, if it is known that it was made: wait goes on with it.
        self.task_id = task_id

    def __str__(self) -> str:
        return f"{goes_on(self.idempotency_key, self.task_id)}: {self.cause}"


class WebhookError(MediagateError):
    """A webhook that the secret did not sign, that is not of the last five minutes, or that tells nothing."""


def goes_on(idempotency_key: str, task_id: str | None = None) -> str:
    """Say what became of a request that nobody waits for any more."""
    if task_id:
        return f"task {task_id} goes on"
    return f"whether the task was made is not known, and its idempotency key {idempotency_key} tells"
