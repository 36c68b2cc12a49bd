"""Say once how the parts of all pictures of a page look.

Pictures repeat the same few styles on every tick and line: on a page of many answers that is most
of its bytes.
"""

from __future__ import annotations

import re
from collections import Counter

STYLED = re.compile(r'(<(?:path|text|use)\b[^<>]*?) style="([^"]*)"')
LEAST_USES = 3
END = "</style>"


def shared(page: str) -> str:
    """The same page, with a class in place of each style that parts of pictures share.

    >>> looks = shared("<style></style>" + '<path d="M0 0" style="fill: none"/>' * 3)
    >>> looks.startswith('<style>.a0{fill: none}</style><path d="M0 0" class="a0"/>')
    True
    """
    uses = Counter(found[2] for found in STYLED.finditer(page))
    common = [style for style, count in uses.items() if count >= LEAST_USES]
    names = {style: f"a{i}" for i, style in enumerate(common)}

    def named(found: re.Match[str]) -> str:
        name = names.get(found[2])
        return found[0] if name is None else f'{found[1]} class="{name}"'

    rules = "".join(f".{name}{{{style}}}\n" for style, name in names.items()).strip()
    head, end, body = page.partition(END)
    return head + rules + end + STYLED.sub(named, body)
