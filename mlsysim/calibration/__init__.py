"""Values that follow others: which do, what each should be, and how it gets there."""
