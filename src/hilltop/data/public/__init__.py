"""Public data sets in the layout in which they are published."""
