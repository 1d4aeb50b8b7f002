"""The files of the review page, and in which order its scripts run."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).with_name("page")
SCRIPTS = (
    "words",
    "queue",
    "grid",
    "classes",
    "panels",
    "zoom",
    "whole",
    "keys",
    "answers",
    "page",
)
"""What runs behind the client, which talks to a server or to the page's own file."""
