"""What a file of the project declares: documents, the fields of classes, outputs, sources."""
