"""The review page: session, server, security, and the page in one file."""
