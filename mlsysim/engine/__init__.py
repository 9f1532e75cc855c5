"""Scenario classes: what a step needs, and the outputs that chapters quote."""
