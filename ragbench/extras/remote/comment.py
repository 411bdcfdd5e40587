"""Keep one comment on a pull request, or on a merge request of GitLab, up to date with a file of `gate --markdown`.

    python -m ragbench.extras.remote.comment gate.md

It is a program of its own, so that a job gives its token to this step alone and not to the search under test. The job
has the place in its environment: GITHUB_API_URL, GITHUB_REPOSITORY, GITHUB_EVENT_PATH and GITHUB_TOKEN, or
CI_API_V4_URL, CI_PROJECT_ID, CI_MERGE_REQUEST_IID and GITLAB_TOKEN.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragbench.base.types import BAD_INPUT, BoundaryError, ConfigError, LiveError, RagbenchError, why_unreadable
from ragbench.boundary.json import read_json_file
from ragbench.extras.remote.http import Client, HttpError

_TIMEOUT_S = 30.0
_PAGE, _MOST_PAGES = 100, 50
_LONGEST = 60_000  # characters; GitHub takes 65,536
_ACTIONS = "github-actions[bot]"
"""The author of comments by a job's own token, which may not ask who it is."""


@dataclass(frozen=True)
class Comments:
    """The comments of a pull request by the interface of a forge.

    `comments`: where they are listed and created. `comment`: where one is changed, with {id}. `change`: the method that
    changes it. `author`: the fields with the author's name.
    """

    api: str
    comments: str
    comment: str
    change: str
    author: tuple[str, str]
    headers: Mapping[str, str]

    def keep(self, body: str, marker: str) -> str:
        """Change the comment of this author that begins with `marker`, or create one; `updated` or `created`.

        Raises LiveError for a forge that refuses.
        """
        body = body if len(body) <= _LONGEST else f"{body[:_LONGEST]}\n\n(cut: too long for a comment)\n"
        sent = {"body": f"{marker}\n{body}"}
        with Client(self.api, self.headers, timeout_s=_TIMEOUT_S) as client:
            try:
                me = self._me(client)
                for comment in self._listed(client):
                    author = (comment.get(self.author[0]) or {}).get(self.author[1])
                    if author == me and str(comment.get("body", "")).startswith(marker):
                        client.send(self.change, self.api + self.comment.format(id=int(comment["id"])), sent)
                        return "updated"
                client.send("POST", self.api + self.comments, sent)
                return "created"
            except HttpError as error:
                raise LiveError(f"{self.api} keeps no comment ({error}{_why(error)})") from None
            except (BoundaryError, KeyError, TypeError, ValueError, AttributeError):
                raise LiveError(f"{self.api} answers with something else than comments: check the address") from None

    def _me(self, client: Client) -> str:
        try:
            user = client.send("GET", f"{self.api}/user").json()
        except HttpError as error:
            if error.status != 403:
                raise
            return _ACTIONS
        return str(user[self.author[1]])

    def _listed(self, client: Client) -> Iterator[Mapping[str, Any]]:
        for number in range(1, _MOST_PAGES + 1):
            page = client.send("GET", f"{self.api}{self.comments}?per_page={_PAGE}&page={number}").json()
            yield from page
            if len(page) < _PAGE:
                return


def _why(error: HttpError) -> str:
    if error.status in (401, 403, 404):
        return ": the token may not write here; give the job `pull-requests: write`, or use a token with the scope api"
    return f": {error.body}" if error.body else ""


def comments_of(environment: Mapping[str, str]) -> Comments:
    """The comments of the pull request that a job is for. ConfigError where the environment names none."""
    if environment.get("CI_MERGE_REQUEST_IID"):
        of = f"/projects/{_named(environment, 'CI_PROJECT_ID')}/merge_requests/{environment['CI_MERGE_REQUEST_IID']}"
        headers = {"PRIVATE-TOKEN": _named(environment, "GITLAB_TOKEN")}
        api = _named(environment, "CI_API_V4_URL")
        return Comments(api, f"{of}/notes", f"{of}/notes/{{id}}", "PUT", ("author", "username"), headers)
    event = Path(_named(environment, "GITHUB_EVENT_PATH"))
    try:
        number = int(read_json_file(event)["pull_request"]["number"])
    except (OSError, BoundaryError) as error:
        raise ConfigError(f"{event} cannot be read: {why_unreadable(error)}") from None
    except (KeyError, TypeError, ValueError):
        raise ConfigError("this job is for no pull request: run it on the event pull_request") from None
    repository = _named(environment, "GITHUB_REPOSITORY")
    issues = f"/repos/{repository}/issues"
    headers = {
        "Authorization": f"Bearer {_named(environment, 'GITHUB_TOKEN')}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    api = environment.get("GITHUB_API_URL") or "https://api.github.com"
    return Comments(
        api, f"{issues}/{number}/comments", f"{issues}/comments/{{id}}", "PATCH", ("user", "login"), headers
    )


def _named(environment: Mapping[str, str], name: str) -> str:
    if not environment.get(name):
        raise ConfigError(f"the environment variable {name} is not set: run this in a job for a pull request")
    return environment[name]


def main(words: Sequence[str] | None = None) -> int:
    """Keep the comment; 2 with one sentence where that cannot be."""
    parser = argparse.ArgumentParser(description="Keep one comment on a pull request up to date with a markdown file.")
    parser.add_argument("file", type=Path, help="what ragbench gate --markdown wrote")
    parser.add_argument("--key", default="gate", help="tells several comments apart (default: gate)")
    given = parser.parse_args(words)
    try:
        if not re.fullmatch(r"[\w.][\w. -]*", given.key, re.ASCII):
            raise ConfigError(f"--key must be letters, digits, blanks, dots and hyphens, got '{given.key[:40]}'")
        marker = f"<!-- ragbench: {given.key} -->"
        print(f"comment {comments_of(os.environ).keep(given.file.read_text(encoding='utf-8'), marker)}")
    except (RagbenchError, OSError, UnicodeDecodeError) as error:
        known = isinstance(error, RagbenchError)
        reason = error if known else f"{given.file} cannot be read: {why_unreadable(error)}"
        print(f"ragbench: {reason}", file=sys.stderr)
        return BAD_INPUT
    return 0


if __name__ == "__main__":
    sys.exit(main())
