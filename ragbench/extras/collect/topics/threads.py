"""Topics from the threads of an issue tracker or forum: real user questions, judged by the pages that answers link to.

Reads issues and discussions as `gh ... --json number,title,body,comments,author` writes them, topics of Discourse, and
CSV of question and answer. Texts are shortened by cuts only; nothing is rewritten.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ragbench.base.types import BenchmarkError, BoundaryError, Document, why_unreadable
from ragbench.benchmark.benchmark import Topic
from ragbench.benchmark.lines import read_rows
from ragbench.benchmark.names import Names, address
from ragbench.boundary.json import read_json, read_json_lines, read_text
from ragbench.extras.collect.search_log import personal
from ragbench.extras.collect.topics.collected import CollectedTopics, counts_sentence
from ragbench.extras.follow.redirects import Redirects

THREADS = "threads"
"""The provenance of such topics."""
LINK, ASKER, NAMED = "link", "asker-link", "named"
"""Evidence that a page answers: another user linked it, only the asker did, an answer names its title."""
_GRADES = {LINK: 2, NAMED: 2, ASKER: 1}
_LEAST_NAMED = 3  # words of a title that counts as named: shorter ones are common words
_PER_PAGE = 5  # topics of one page
_LEAST_WORDS, _MOST_WORDS = 3, 40  # of a question, which is the title and the first sentences of a thread
_SENTENCES = 2
_ALIKE = 0.8  # share of common words from which two questions count as one

_BLOCKS = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|<!--.*?-->|<details.*?</details>|<pre.*?</pre>", re.S)
_URL = re.compile(r"https?://[^\s<>\"'`\])]+")
_LABELLED = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_DROPPED_LINE = re.compile(r"^\s*(?:>|#|\||[-*] \[[ xX]\]|\s{4,}\S|[$%]\s)")
_LOG_LINE = re.compile(r"^\s*(?:at |Traceback|File \"|\[?\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|(?:INFO|DEBUG|WARN|TRACE)\b)")
_GREETING = re.compile(
    r"^(?:hi|hello|hey|dear|good (?:morning|day|evening)|thanks|thank you|cheers)\b[^.!?\n]{0,40}[.!,]?\s*", re.I
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'`(])|\n+")
_TAG = re.compile(r"<[^>]+>")
_WORD = re.compile(r"[^\W_]+")
_HREF = re.compile(r"<a\s[^>]*href=[\"']([^\"']+)[\"'][^>]*>", re.I)


class Post(NamedTuple):
    """One message of a thread; `author` is empty where the source does not say."""

    author: str
    text: str


@dataclass(frozen=True)
class Thread:
    """A question and what followed; `key` is its number or name in the source."""

    key: str
    title: str
    posts: tuple[Post, ...]


@dataclass(frozen=True)
class ThreadTopics(CollectedTopics):
    """Topics of threads; the type of a topic is its evidence."""

    @property
    def as_json(self) -> dict[str, Any]:
        """The numbers that `--json` prints."""
        return {"topics": len(self.topics), "evidence": self._evidence, "dropped": self.dropped}

    @property
    def sentences(self) -> list[str]:
        """What shows that the pages answer, and how many threads were not used."""
        return [counts_sentence("evidence", self._evidence), *super().sentences]

    @property
    def _evidence(self) -> Mapping[str, int]:
        return Counter(topic.type for topic in self.topics)


def read(file: Path) -> list[Thread]:
    """The threads of a file. BenchmarkError, which says the known forms, for any other."""
    if file.suffix.lower() in (".csv", ".tsv"):
        return _of_table(file)
    try:
        text = read_text(file).removeprefix("\ufeff")
    except (OSError, BoundaryError) as error:
        raise BenchmarkError(
            f"{file} cannot be read ({why_unreadable(error)}): name a file of threads in UTF-8"
        ) from None
    try:
        values = list(read_json_lines(text)) if file.suffix.lower() == ".jsonl" else [read_json(text)]
        entries = values[0] if len(values) == 1 and isinstance(values[0], list) else values
        threads = [_of_json(entry, number) for number, entry in enumerate(entries, start=1)]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BenchmarkError(
            f"{file} has an unexpected structure ({type(error).__name__}: {error}): it must be what `gh issue list "
            "--json number,title,body,author,comments` writes, topics of Discourse, or a CSV with question and answer"
        ) from None
    if not threads:
        raise BenchmarkError(f"{file} has no threads: ask for more with `gh issue list --state all --limit 1000`")
    return threads


def _of_json(entry: Mapping[str, Any], number: int) -> Thread:
    if "post_stream" in entry:  # Discourse
        posts = [
            Post(str(post.get("username") or ""), _plain(post["cooked"])) for post in entry["post_stream"]["posts"]
        ]
        return Thread(str(entry.get("id", number)), str(entry["title"]), tuple(posts))
    comments = entry.get("comments") or []
    comments = comments.get("nodes", []) if isinstance(comments, Mapping) else comments
    replies = [comment for one in comments for comment in [one, *((one.get("replies") or {}).get("nodes") or [])]]
    posts = [Post(_login(reply), str(reply.get("body") or "")) for reply in [entry, *replies]]
    return Thread(str(entry.get("number", number)), str(entry["title"]), tuple(posts))


def _login(entry: Mapping[str, Any]) -> str:
    author = entry.get("author") or entry.get("user") or {}
    return str(author.get("login") or "") if isinstance(author, Mapping) else str(author)


def _of_table(file: Path) -> list[Thread]:
    rows = [row for _, row in read_rows(file)]
    if not {"question", "answer"} <= {name for row in rows for name in row}:
        raise BenchmarkError(
            f"{file} must have a line of names with the columns question and answer, and rows below it"
        )
    return [
        Thread(str(number), "", (Post("asker", row.get("question", "")), Post("answer", row.get("answer", ""))))
        for number, row in enumerate(rows, start=1)
    ]


def _plain(cooked: str) -> str:
    """The text of HTML, with the addresses of its links after their labels, without code."""
    text = re.sub(r"<(pre|aside|blockquote)\b.*?</\1>", "\n", cooked, flags=re.S | re.I)
    text = _HREF.sub(lambda match: f" {match[1]} ", text)
    return html.unescape(_TAG.sub("", re.sub(r"<br\s*/?>|</p>", "\n", text, flags=re.I)))


class Pages:
    """Finds the document of an address below `site`, as `Names` and redirects do, and of a title in a text."""

    def __init__(self, documents: Sequence[Document], site: str, redirects: Redirects | None = None) -> None:
        """`redirects`: those of the site, for addresses without a document."""
        self._site = (site if "://" in site else f"https://{site}").rstrip("/")
        self._names = Names(documents, self._site)
        self._redirects = redirects or Redirects()
        self._places = {address(f"{document.docno}.md"): document.docno for document in documents}
        titles = [(_words(document.title), document.docno) for document in documents]
        counts = Counter(title for title, _ in titles)
        self._titles = {
            title: docno for title, docno in titles if counts[title] == 1 and len(title.split()) >= _LEAST_NAMED
        }

    def of(self, link: str) -> str | None:
        """The docno of an address; None for other sites and for pages that are not there."""
        url, site = urlsplit(link.rstrip(".,;:!?*_")), urlsplit(self._site)
        if url.netloc.lower().removeprefix("www.") != site.netloc.lower().removeprefix("www."):
            return None
        if not f"{url.path}/".startswith(f"{site.path}/"):
            return None
        path = url.path[len(site.path) :]
        hit = None if address(path) in self._places else self._redirects.page(address(path), self._places)
        return hit[0] if hit else self._names.document(f"{self._site}/{path.lstrip('/')}")

    def named(self, text: str) -> str | None:
        """The only document whose title of three words or more a text contains."""
        words = _words(text)
        docnos = {docno for title, docno in self._titles.items() if title in words}
        return next(iter(docnos)) if len(docnos) == 1 else None


def _words(text: str) -> str:
    """The words of a text with blanks between and around them."""
    return f" {' '.join(_WORD.findall(text.lower()))} "


def question_of(thread: Thread) -> str:
    """The title and the first sentences of a thread without code, logs, addresses and greetings."""
    body = _BLOCKS.sub("\n", thread.posts[0].text if thread.posts else "")
    lines = [line for line in body.splitlines() if not _DROPPED_LINE.match(line) and not _LOG_LINE.match(line)]
    text = _TAG.sub(" ", _URL.sub(" ", _LABELLED.sub(r"\1", "\n".join(lines))))
    spoken: list[str] = []
    for sentence in _SENTENCE.split(text.strip()):
        words = _GREETING.sub("", re.sub(r"[*_`]+", "", sentence).strip()).split()
        if len(words) >= _LEAST_WORDS and len(spoken) < _SENTENCES:
            spoken.append(" ".join(words))
    title = " ".join(_URL.sub(" ", re.sub(r"^\s*(?:\[[^\]]*\]\s*)+", "", thread.title)).replace("`", "").split())
    if title and title[-1] not in ".!?:":
        title += "."
    words = [*title.split(), *" ".join(spoken).split()]
    question = " ".join(words[:_MOST_WORDS])
    return question if spoken else question.removesuffix(".")


def evidence_of(thread: Thread, pages: Pages) -> tuple[str, dict[str, int]]:
    """What shows which pages answer a thread, and their grades; an empty text and no grades where nothing does.

    Links of others count before links of the asker; a title that an answer names counts where no one links.
    """
    if not thread.posts:
        return "", {}
    asker = thread.posts[0].author
    linked: dict[str, list[str]] = {LINK: [], ASKER: []}
    for number, post in enumerate(thread.posts):
        by_asker = number == 0 or (bool(asker) and post.author == asker)
        page_docnos = (pages.of(address) for address in _URL.findall(_BLOCKS.sub("\n", post.text)))
        linked[ASKER if by_asker else LINK] += [docno for docno in page_docnos if docno is not None]
    for kind in (LINK, ASKER):
        if linked[kind]:
            return kind, dict.fromkeys(linked[kind], _GRADES[kind])
    named = (pages.named(post.text) for post in thread.posts[1:])
    docnos = [docno for docno in named if docno is not None]
    return (NAMED, dict.fromkeys(docnos, _GRADES[NAMED])) if docnos else ("", {})


def choose(threads: Sequence[Thread], pages: Pages) -> ThreadTopics:
    """A topic for every thread whose answer is known, the surest evidence first where a page has too many."""
    dropped: Counter[str] = Counter()
    order = (LINK, NAMED, ASKER)
    candidates = []
    for number, thread in enumerate(threads):
        kind, grades = evidence_of(thread, pages)
        text = question_of(thread)
        if not grades:
            dropped["without a page of the site"] += 1
        elif len(text.split()) < _LEAST_WORDS:
            dropped["without words"] += 1
        elif reason := personal(text):
            dropped[f"with {reason}"] += 1
        else:
            candidates.append((order.index(kind), number, thread, text, kind, grades))
    chosen: list[tuple[int, Thread, str, str, dict[str, int]]] = []
    pages_used: Counter[str] = Counter()
    token_sets: list[frozenset[str]] = []
    for _, number, thread, text, kind, grades in sorted(candidates, key=lambda candidate: candidate[:2]):
        tokens = frozenset(_WORD.findall(text.lower()))
        if any(len(tokens & tokens_before) >= _ALIKE * len(tokens | tokens_before) for tokens_before in token_sets):
            dropped["almost like another"] += 1
            continue
        if all(pages_used[docno] >= _PER_PAGE for docno in grades):
            dropped["on pages with enough topics"] += 1
            continue
        token_sets.append(tokens)
        pages_used.update(grades.keys())
        chosen.append((number, thread, text, kind, grades))
    chosen.sort(key=lambda candidate: candidate[0])
    topics, qrels = [], {}
    for _, thread, text, kind, grades in chosen:
        qid = f"thread-{thread.key}"
        topics.append(Topic(qid, text, kind, group=qid, provenance=THREADS))
        qrels[qid] = grades
    return ThreadTopics(tuple(topics), qrels, {}, dict(dropped))
