"""Names that want to be more than text."""

from __future__ import annotations

NAMES = (
    "<script>window.broken = 1</script></script><img src=x onerror='window.broken = 2'>",
    "\u202eright to left\u202c \u05d0\u05d1\u05d2 \u0627\u0644\u0639\u0631\u0628\u064a\u0629",
    "x" * 100_000,
    "a NUL \0 and a bell \a, a tab \t, a line\nbreak",
    "'\"><svg onload=window.broken=3> ${window.broken=4} {{window.broken=5}} javascript:window.broken=6 </style></title><!--",
)
