"""Compare subjects: case by case between runs, against no treatment, and while a run is going on."""
