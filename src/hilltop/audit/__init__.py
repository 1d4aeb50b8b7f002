"""The audit: likely missing labels are ranked, reviewed in a browser and written back."""
