"""The build: what is stale and in which order it is made, and the records that say so."""
