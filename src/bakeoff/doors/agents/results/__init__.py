"""Result files of agents on exercises: written from records, read back into records, and ranked."""
