import math
import unittest

import pytest
from space_age import SpaceAge, approximate_pi, years_between


class SpaceAgeTest(unittest.TestCase):
    def test_age_on_earth(self):
        self.assertEqual(SpaceAge(1000000000).on_earth(), 31.69)

    def test_age_on_mercury(self):
        self.assertEqual(SpaceAge(2134835688).on_mercury(), 280.88)

    def test_age_roughly(self):
        self.assertAlmostEqual(SpaceAge(1000000000).on_earth(), 31.69, places=2)

    def test_age_within_a_year(self):
        self.assertAlmostEqual(SpaceAge(2134835688).on_earth(), 67.5, delta=0.5)


def test_pi_is_near():
    assert approximate_pi(1000) == pytest.approx(3.1416, abs=0.01)


def test_pi_is_near_enough():
    assert abs(approximate_pi(2000) - math.pi) < 0.01


def test_pi_is_rounded():
    assert round(approximate_pi(5000), 1) == 3.1


def test_years_are_close():
    assert math.isclose(years_between(0, 63115200), 2.0, rel_tol=0.01)
