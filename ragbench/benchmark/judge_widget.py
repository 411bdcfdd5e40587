"""Grading a pool in a notebook: the pair, a button for every grade, skip and undo."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

from ragbench.base.errors import ConfigError
from ragbench.benchmark.judge import GRADES, JudgingSession


def judge_widget(path: Path) -> Any:
    """An ipywidgets box for a notebook; every click is saved in the pool at `path`. ConfigError without ipywidgets."""
    try:
        import ipywidgets
    except ImportError:
        raise ConfigError("the notebook widget needs ipywidgets: pip install 'ragbench[notebooks]'") from None

    session = JudgingSession(Path(path))
    view = ipywidgets.HTML()
    grades = [
        ipywidgets.Button(description=str(grade), tooltip=meaning, button_style="primary")
        for grade, meaning in GRADES.items()
    ]
    skip = ipywidgets.Button(description="skip", tooltip="leave it for later")
    undo = ipywidgets.Button(description="undo", tooltip="take back the last grade")

    def show() -> None:
        view.value = _page(session)
        for button in (*grades, skip):
            button.disabled = session.item is None

    def then_show(act: Callable[..., Any], *arguments: int) -> Callable[[Any], None]:
        def clicked(_: Any) -> None:
            act(*arguments)
            show()

        return clicked

    for grade, button in zip(GRADES, grades, strict=True):
        button.on_click(then_show(session.grade, grade))
    skip.on_click(then_show(session.skip))
    undo.on_click(then_show(session.undo))
    show()
    return ipywidgets.VBox([view, ipywidgets.HBox([*grades, skip, undo])])


def _page(session: JudgingSession) -> str:
    item = session.item
    state = f"<p>{session.n_graded} of {len(session)} graded, {session.n_skipped} skipped</p>"
    if item is None:
        return f"{state}<p><b>Nothing left to grade:</b> merge {escape(str(session.path))} into the judgments.</p>"
    legend = ", ".join(f"<b>{grade}</b> {escape(meaning)}" for grade, meaning in GRADES.items())
    return (
        f"{state}<h4>{escape(item.query)}</h4><p>{escape(item.need)}</p>"
        f"<p><code>{escape(item.section)}</code> {escape(item.heading)}</p>"
        f"<pre style='white-space: pre-wrap; max-height: 24em; overflow: auto'>{escape(item.text)}</pre><p>{legend}</p>"
    )
