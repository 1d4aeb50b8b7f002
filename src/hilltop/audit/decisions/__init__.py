"""What reviewers said: the store, votes, corrected labels, exports."""
