"""Data inside a page for its script to read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markupsafe import Markup

_ESCAPES = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})


def json_for_script(data: Any) -> Markup:
    r"""Return data as JSON that stands safely inside a ``script`` element.

    No text in it can end the element or open a comment: those characters are escaped, which JSON
    allows inside of strings, the only place where they occur.

    Example:
        >>> print(json_for_script(["</script>"]))
        ["\u003c/script\u003e"]
    """
    from markupsafe import Markup

    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_ESCAPES))  # noqa: S704
