"""Models: any provider by name, what a call costs, how it is limited, and how it is replayed."""
