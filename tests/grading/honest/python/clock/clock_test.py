import unittest

from clock import Clock


class ClockTest(unittest.TestCase):
    # Create A String Representation
    def test_lunch_time(self):
        self.assertEqual(repr(Clock(12, 0)), "Clock(12, 0)")

    def test_early_evening(self):
        self.assertEqual(repr(Clock(18, 10)), "Clock(18, 10)")

    # Create A New Clock With An Initial Time
    def test_on_the_hour(self):
        self.assertEqual(str(Clock(8, 0)), "08:00")

    def test_past_the_hour(self):
        self.assertEqual(str(Clock(11, 9)), "11:09")

    def test_midnight_is_zero_hours(self):
        self.assertEqual(str(Clock(24, 0)), "00:00")

    def test_negative_hour(self):
        self.assertEqual(str(Clock(-1, 15)), "23:15")

    # Add And Subtract Minutes
    def test_add_minutes(self):
        self.assertEqual(str(Clock(10, 0) + 3), "10:03")

    def test_subtract_across_midnight(self):
        self.assertEqual(str(Clock(0, 3) - 4), "23:59")

    # Compare Two Clocks For Equality
    def test_clocks_with_same_time(self):
        self.assertEqual(Clock(15, 37), Clock(15, 37))

    def test_clocks_a_minute_apart(self):
        self.assertNotEqual(Clock(15, 36), Clock(15, 37))

    def test_clocks_with_hour_overflow(self):
        self.assertEqual(Clock(10, 37), Clock(34, 37))

    def test_many_times(self):
        for hour, minute, expected in [(1, 1, "01:01"), (25, 61, "02:01"), (0, -1, "23:59")]:
            with self.subTest(hour=hour, minute=minute):
                self.assertEqual(str(Clock(hour, minute)), expected)

    def test_a_set_of_clocks(self):
        self.assertEqual(len({Clock(1, 0), Clock(25, 0), Clock(0, 60)}), 1)
