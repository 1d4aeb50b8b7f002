"""Formats that are one JSON document."""
