"""Audit the judges of a run, label their answers, and correct their scores by the labels of people."""
