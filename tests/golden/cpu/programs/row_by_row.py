"""A sum over a list of texts, with a conversion that is done anew for each row; `--fix` keeps it."""

import sys


def price(text: str) -> float:
    """Return a price, rounded by hand."""
    digits = [character for character in text if character.isdigit()]
    whole = 0
    for digit in digits:
        whole = whole * 10 + int(digit)
    return whole / 100


def main() -> None:
    """Add up."""
    rows = [f"{number % 97}.{number % 89:02}" for number in range(900_000)]
    known: dict[str, float] = {}
    total = 0.0
    for row in rows:
        if "--fix" in sys.argv:
            if row not in known:
                known[row] = price(row)
            total += known[row]
        else:
            total += price(row)
    print(round(total))


main()
