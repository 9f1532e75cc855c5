"""What a change moves on the page: two revisions compared, explained, accepted and remembered."""
