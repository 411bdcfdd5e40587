"""A picture beside each interactive figure of notebooks: `python -m tools.notebook_pictures FILE ...`.

Part of `make outputs`. JupyterLab prefers the interactive form; the page of a code host and a printer show the picture.
Kaleido draws it, and needs a Chromium or Chrome on the machine.
"""

from __future__ import annotations

import base64
import io
import sys
from pathlib import Path
from typing import Any

FIGURE, PICTURE = "application/vnd.plotly.v1+json", "image/png"


def png(figure: dict[str, Any]) -> str:
    """A figure on white, because a transparent one is unreadable on a dark page; base64 of 64 colours."""
    import plotly.io
    from PIL import Image

    drawn = plotly.io.from_json(plotly.io.json.to_json_plotly(figure)).update_layout(paper_bgcolor="white")
    written = io.BytesIO()
    image = Image.open(io.BytesIO(drawn.to_image("png", width=900))).convert("RGB")
    image.quantize(64).save(written, "png", optimize=True)
    return base64.b64encode(written.getvalue()).decode()


def main(paths: list[Path]) -> None:
    """Write the pictures into the notebooks."""
    import nbformat

    for path in paths:
        notebook = nbformat.read(path, as_version=4)
        for output in (output for cell in notebook.cells for output in cell.get("outputs", [])):
            if figure := output.get("data", {}).get(FIGURE):
                output.data[PICTURE] = png({"data": figure["data"], "layout": figure["layout"]})
        nbformat.write(notebook, path)


if __name__ == "__main__":
    main([Path(word) for word in sys.argv[1:]])
