"""A database of PostgreSQL: its address, its connections, and its errors as sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from ragbench.base.errors import BundleError, ConfigError
from ragbench.boundary.paths import resolved

if TYPE_CHECKING:
    from psycopg import Connection

SCHEMES = ("postgres", "postgresql")
NAME = re.compile(r"[a-z_][a-z0-9_]{0,49}")
"""The name of a schema."""
_OLDEST = 14  # version of the server: functions that are bound when they are made
_WAIT_S = 10
_MOST_PARTITIONS = 64


@dataclass(frozen=True)
class Server:
    """A database and a schema in it; `name` is what messages call it, without what may be secret.

    A load makes tables of vectors and words of so many `partitions`.
    """

    conninfo: str = field(repr=False)
    schema: str
    name: str
    partitions: int = 1

    @staticmethod
    def of(address: str) -> Server:
        """The server of an address, or of the variable or file that holds one. Raises ConfigError."""
        psycopg = client()
        address_value = resolved(address)
        try:
            parts = urlsplit(address_value)
            pairs = parse_qsl(parts.query, keep_blank_values=True)
        except ValueError:
            raise ConfigError(
                "the address of the database cannot be read: write postgres://user@host/database"
            ) from None
        if parts.scheme not in SCHEMES:
            raise ConfigError("the address of the database must begin with postgres://")
        named = dict(pairs).get("schema", "ragbench")
        if not NAME.fullmatch(named):
            raise ConfigError(f"schema={named} must be small letters, digits and _, such as schema=notes")
        parted = dict(pairs).get("partitions", "1")
        if not (parted.isdecimal() and 1 <= int(parted) <= _MOST_PARTITIONS):
            raise ConfigError(f"partitions={parted} must be a number from 1 to {_MOST_PARTITIONS}: try partitions=8")
        query_string = urlencode([(key, value) for key, value in pairs if key not in ("schema", "partitions")])
        conninfo = parts._replace(query=query_string).geturl()
        try:
            options = psycopg.conninfo.conninfo_to_dict(conninfo)
        except psycopg.Error:
            raise ConfigError(
                "the address of the database has a part that PostgreSQL does not know: write "
                "postgres://user@host:5432/database?schema=notes&sslmode=require"
            ) from None
        location = f"{options.get('host', 'localhost')}/{options.get('dbname', '')}"
        return Server(conninfo, named, f"the schema {named} of {location}", int(parted))

    def connect(self, read_only: bool = True) -> Connection[Any]:
        """A connection whose statements count at once. Raises BundleError."""
        psycopg = client()
        options = f"-c default_transaction_read_only={'on' if read_only else 'off'}"
        more = {"connect_timeout": _WAIT_S, "application_name": "ragbench", "client_encoding": "UTF8"}
        conninfo_values = psycopg.conninfo.conninfo_to_dict(self.conninfo)
        more = {key: value for key, value in more.items() if key not in conninfo_values}
        try:
            db: Connection[Any] = psycopg.connect(
                self.conninfo,
                autocommit=True,
                options=f"{conninfo_values.get('options') or ''} {options}".strip(),
                **more,
            )
        except psycopg.Error as error:
            raise BundleError(self.sentence(error)) from None
        if db.info.server_version < _OLDEST * 10_000:
            db.close()
            raise BundleError(
                f"{self.name} is PostgreSQL {db.info.server_version // 10_000}: it must be {_OLDEST} or later"
            )
        return db

    def sentence(self, error: Exception) -> str:
        """What went wrong, with the remedy; no part of the address that may be secret is in it."""
        reply = str(error).strip()
        first = next((line for line in reply.splitlines() if "FATAL" in line), reply.partition("\n")[0])
        state = getattr(error, "sqlstate", None) or ""
        cases = [
            ("password" in reply and not state, "refuses the name or password: set PGPASSWORD, or env:NAME instead of "
             "the address"),
            ("vector" in reply and state in ("58P01", "0A000"), "has no pgvector: install it on the server "
             "(Debian: postgresql-NN-pgvector)"),
            ("extension" in reply and state == "42501", "has no pgvector yet, and this role may not make it: ask its "
             "administrator for CREATE EXTENSION vector"),
            (state == "42501", f"refuses this ({first}): use a role that may"),
            (state == "3F000", f"cannot be replaced ({first}): name another with ?schema=NAME"),
            (state == "2BP01", f"cannot be replaced, because another object depends on it ({reply.splitlines()[-1]}): "
             "drop that first"),
            (state == "55P03", "cannot be replaced: another session read it for over a minute; load it again later"),
            (state == "42P01", "has no search of ragbench: load it with ragbench export --format postgres --load"),
            (state == "25006", f"may only be read ({first}): name the server that is written"),
            (not state, f"does not answer ({first}): check that it runs, and its address"),
        ]  # fmt: skip
        problem = next((problem for holds, problem in cases if holds), f"does not answer ({first})")
        return f"{self.name} {problem}"


def client() -> Any:
    """The client's module. Raises ConfigError where it is not installed."""
    try:
        import psycopg
        import psycopg.conninfo
    except ImportError:
        raise ConfigError("PostgreSQL needs psycopg: pip install 'ragbench[postgres]'") from None
    return psycopg


@contextmanager
def translate_errors(server: Server) -> Iterator[None]:
    """Errors of the client as sentences."""
    try:
        yield
    except client().Error as error:
        raise BundleError(server.sentence(error)) from None
