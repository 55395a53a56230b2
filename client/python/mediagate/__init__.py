"""A client of a mediagate gateway. It submits a request exactly once, waits for its task and saves the files.

    gateway = Client("https://api.example.com", key)
    task = gateway.run("alpha-v3", {"prompt": "a paper boat"})
    paths = gateway.save(task, ".")

A program that must not lose a request stores an idempotency key with it. After a crash it submits
the request again with the same key, and within 24 hours gets the same task.
"""

from .aio import AsyncClient
from .client import Client, file_of
from .errors import AnswerError, GatewayError, MediagateError, TaskError, UnknownError, WebhookError
from .types import Event, Failure, File, Model, Quote, Source, Task
from .webhook import verify_webhook

__all__ = [
    "AnswerError",
    "AsyncClient",
    "Client",
    "Event",
    "Failure",
    "File",
    "GatewayError",
    "MediagateError",
    "Model",
    "Quote",
    "Source",
    "Task",
    "TaskError",
    "UnknownError",
    "WebhookError",
    "file_of",
    "verify_webhook",
]
