"""What a chapter's cells make: tables and figures, with their data."""
