"""Draw the picture of the README: the demo's flights by month, as the report draws them.

`python tools/readme_picture.py` runs the demo in a folder of its own. Its noise is new each time,
and so is the picture; `make docs` leaves it as it is.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from sfumato.charts import style
from sfumato.demo.run import publish

PICTURE = Path(__file__).parent.parent / "docs" / "demo.svg"
HEADING = "Flights by month"


def draw(picture: Path) -> None:
    """Run the demo, and draw one of its answers."""
    with tempfile.TemporaryDirectory() as folder:
        releases = publish(Path(folder)).releases
    (release,) = [release for release in releases if release.heading == HEADING]
    style.save(style.figure_of(release.plot()), picture)


if __name__ == "__main__":
    draw(PICTURE)
