"""The ``hilltop`` command: one file for each group of subcommands."""
