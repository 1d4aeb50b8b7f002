"""Words that depend on a number."""


def plural(count: int, one: str, many: str) -> str:
    """Return a count with the words that go with it.

    Example:
        >>> plural(1, "answer is", "answers are"), plural(1200, "answer is", "answers are")
        ('1 answer is', '1,200 answers are')
    """
    return f"{count:,} {one if count == 1 else many}"
