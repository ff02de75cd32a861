"""A program of many functions that take a little each: none is worth a finding."""

import json


def make(number: int, width: int) -> str:
    """Return a document."""
    return json.dumps({str(key): [number] * width for key in range(width)})


def stages() -> list[str]:
    """Return the source of many small functions that do about the same."""
    return [f"def stage_{n}(x):\n    return sum(i * {n + 1} for i in range(x)) % 1009\n" for n in range(24)]


names: dict[str, object] = {}
exec("\n".join(stages()), names)
total = 0
for turn in range(100):
    for n in range(24):
        total += names[f"stage_{n}"](2500)  # type: ignore[operator]
    total += len(make(turn, 40))
print(total)
