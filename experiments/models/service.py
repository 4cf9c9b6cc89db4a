"""Owns the service fields of a model's configuration: how its provider is reached, and within which limits."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from experiments.errors import InputError
from experiments.models import not_known, number
from experiments.models.redaction import looks_secret
from experiments.models.retry import Policy
from experiments.run_spec import ModelConfig

FIELDS: Final = (
    "base_url",
    "api_key_env",
    "price",
    "context_tokens",
    "concurrency",
    "requests_per_minute",
    "tokens_per_minute",
    "timeout_s",
    "max_tries",
    "retry_for_s",
    "first_wait_s",
    "longest_wait_s",
    "log_api",
    "log_dir",
)

LOG_API: Final = ("errors",)
DEFAULT_LOG_DIR: Final = "results/_api"
DEFAULT_TIMEOUT_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class Service:
    """How a model's provider is reached."""

    base_url: str | None
    api_key_env: str | None
    """Name of the variable that holds the key."""
    concurrency: int | None
    """Requests at once, over all runs of a process."""
    requests_per_minute: float | None
    tokens_per_minute: float | None
    timeout_s: float
    """For one request and its whole answer."""
    policy: Policy
    log_dir: Path | None
    """Where failing calls are logged; None for no log."""

    def key(self) -> str | None:
        """Return the key, or None where no variable is named.

        Raises:
            InputError: if the variable is not set.
        """
        if self.api_key_env is None:
            return None
        value = os.environ.get(self.api_key_env, "").strip()
        if not value:
            raise InputError(
                f"environment variable {self.api_key_env} is not set: it holds the API key; service.api_key_env names "
                "another variable"
            )
        return value

    @property
    def key_source(self) -> str:
        """Where the key comes from, in words."""
        return f"environment variable {self.api_key_env}" if self.api_key_env else "the environment"


def read_service(config: ModelConfig, *, api_key_env: str | None) -> Service:
    """Return the service fields of a configuration, checked.

    Args:
        config: the model.
        api_key_env: the provider's usual variable, where the configuration names none.

    Raises:
        InputError: naming the field, its value and what is allowed.
    """
    given = config.service
    _whole(config, given, "context_tokens")
    defaults = Policy()
    return Service(
        base_url=_base_url(config),
        api_key_env=_text(config, "api_key_env") or api_key_env,
        concurrency=_whole(config, given, "concurrency"),
        requests_per_minute=_positive(config, given, "requests_per_minute"),
        tokens_per_minute=_positive(config, given, "tokens_per_minute"),
        timeout_s=_positive(config, given, "timeout_s") or DEFAULT_TIMEOUT_S,
        policy=Policy(
            max_tries=_whole(config, given, "max_tries") or defaults.max_tries,
            retry_for_s=_positive(config, given, "retry_for_s") or defaults.retry_for_s,
            first_wait_s=_positive(config, given, "first_wait_s") or defaults.first_wait_s,
            longest_wait_s=_positive(config, given, "longest_wait_s") or defaults.longest_wait_s,
        ),
        log_dir=_log_dir(config),
    )


def _base_url(config: ModelConfig) -> str | None:
    url = _text(config, "base_url")
    if url is None:
        return None
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(
            f"model {config.name!r}: base_url {url!r} is not allowed: http://HOST/PATH or https://HOST/PATH"
        )
    if parts.username or parts.password or parts.query or looks_secret(url):
        raise InputError(
            f"model {config.name!r}: base_url holds a credential or a query, which would be written into records: "
            "name the variable of the key with service.api_key_env instead"
        )
    return url.rstrip("/")


def _log_dir(config: ModelConfig) -> Path | None:
    wanted = config.service.get("log_api")
    if wanted is None:
        return None
    if wanted not in LOG_API:
        raise InputError(not_known(f"model {config.name!r}: log_api", wanted, LOG_API))
    return Path(_text(config, "log_dir") or DEFAULT_LOG_DIR)


def _text(config: ModelConfig, name: str) -> str | None:
    value = config.service.get(name)
    if value is not None and (not isinstance(value, str) or not value):
        raise InputError(f"model {config.name!r}: {name} {value!r} is not allowed: a text")
    return value


def _positive(config: ModelConfig, group: Mapping[str, Any], name: str) -> float | None:
    if group.get(name) is None:
        return None
    value = number(config, group, name, default=0.0)
    if not 0 < value < float("inf"):
        raise InputError(f"model {config.name!r}: {name} {value!r} is not allowed: a number above 0")
    return value


def _whole(config: ModelConfig, group: Mapping[str, Any], name: str) -> int | None:
    value = _positive(config, group, name)
    if value is not None and value != int(value):
        raise InputError(f"model {config.name!r}: {name} {value!r} is not allowed: a whole number of 1 or more")
    return None if value is None else int(value)
