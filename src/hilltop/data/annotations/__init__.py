"""Formats of annotation tools and detection data sets."""
