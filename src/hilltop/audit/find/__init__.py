"""Finding what is missing: candidates and estimates."""
