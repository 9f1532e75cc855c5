"""Hardware, models and fleets: types, and one data file per thing, every value with a source."""
