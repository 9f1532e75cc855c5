"""The generated pages: one for each scenario, class and number."""
