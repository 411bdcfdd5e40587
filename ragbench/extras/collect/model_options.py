"""The options of commands that name a language model."""

from __future__ import annotations

import argparse

from ragbench.base.options import as_options
from ragbench.base.types import ConfigError
from ragbench.models.chat import ChatSpec


def add(parser: argparse.ArgumentParser, kind: str) -> None:
    """A language model behind an endpoint, for `kind`."""
    model = parser.add_argument_group(kind)
    model.add_argument(
        "--endpoint", metavar="URL", help="an OpenAI-compatible server, such as http://localhost:11434/v1"
    )
    model.add_argument("--model", metavar="NAME", help="name of the model")
    model.add_argument("--key-variable", metavar="NAME", help="environment variable with its API key")


def spec_of(arguments: argparse.Namespace) -> ChatSpec:
    """The model that `--endpoint`, `--model` and `--key-variable` name. ConfigError without an endpoint and a model."""
    if not arguments.endpoint or not arguments.model:
        raise ConfigError(
            "name the model with --endpoint and --model, such as --endpoint http://localhost:11434/v1 --model NAME; "
            "texts of the documents are sent to it"
        )
    with as_options():
        return ChatSpec(arguments.endpoint, arguments.model, timeout_s=60.0, key_variable=arguments.key_variable)
