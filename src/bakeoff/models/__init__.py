"""Call models: providers by name, costs, limits and recordings."""
