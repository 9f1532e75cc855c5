"""One module per topic; the classes are imported from mlsysim.engine.scenario_types."""
