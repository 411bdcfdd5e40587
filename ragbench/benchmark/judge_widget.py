"""Grading a pool in a notebook: the pair, a button for every grade, skip and undo."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

from ragbench.base.errors import ConfigError
from ragbench.benchmark.judge import ACTS, GRADES, UNDO, JudgingSession


def judge_widget(path: Path) -> Any:
    """An ipywidgets box for a notebook; every click is saved in the pool at `path`. ConfigError without ipywidgets."""
    try:
        import ipywidgets
    except ImportError:
        raise ConfigError("the notebook widget needs ipywidgets: pip install 'ragbench[notebooks]'") from None

    session = JudgingSession(Path(path))
    view = ipywidgets.HTML()
    buttons = {key: ipywidgets.Button(description=_label(key), tooltip=meaning) for key, meaning in ACTS.items()}

    def show() -> None:
        view.value = _page(session)
        for key, button in buttons.items():
            button.disabled = session.item is None and key != UNDO

    def on_click(key: str) -> Callable[[Any], None]:
        def clicked(_: Any) -> None:
            session.act(key)
            show()

        return clicked

    for key, button in buttons.items():
        button.on_click(on_click(key))
    show()
    return ipywidgets.VBox([view, ipywidgets.HBox([*buttons.values()])])


def _label(key: str) -> str:
    return key if key.isdigit() else ACTS[key]


def _page(session: JudgingSession) -> str:
    item = session.item
    state = f"<p>{session.state}</p>"
    if item is None:
        return f"{state}<p><b>Nothing left to grade:</b> merge {escape(str(session.path))} into the judgments.</p>"
    legend = ", ".join(f"<b>{grade}</b> {escape(meaning)}" for grade, meaning in GRADES.items())
    return (
        f"{state}<h4>{escape(item.query)}</h4><p>{escape(item.need)}</p>"
        f"<p><code>{escape(item.section)}</code> {escape(item.heading)}</p>"
        f"<pre style='white-space: pre-wrap; max-height: 24em; overflow: auto'>{escape(item.text)}</pre><p>{legend}</p>"
    )
