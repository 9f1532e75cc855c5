"""The text of chapters and pages, read: cells, roles, directives and front matter."""
