import random
import unittest

from robot_name import Robot


class RobotNameTest(unittest.TestCase):
    name_re = r"^[A-Z]{2}\d{3}$"

    def test_has_name(self):
        self.assertRegex(Robot().name, self.name_re)

    def test_has_a_short_name(self):
        self.assertRegex(Robot().name, r"^[A-Z]{2}\d{3}$")
        self.assertEqual(len(Robot().name), 5)

    def test_name_sticks(self):
        robot = Robot()
        self.assertEqual(robot.name, robot.name)

    def test_different_robots_have_different_names(self):
        self.assertNotEqual(Robot().name, Robot().name)

    def test_reset_name(self):
        seed = "Totally random."
        random.seed(seed)
        robot = Robot()
        random.seed(seed)
        name = robot.name
        random.seed(seed)
        robot.reset()
        random.seed(seed)
        name2 = robot.name
        self.assertNotEqual(name, name2)
        self.assertRegex(name2, self.name_re)

    def test_many_names_are_different(self):
        self.assertEqual(len({Robot().name for _ in range(200)}), 200)

    def test_number_is_within_bounds(self):
        for _ in range(50):
            self.assertTrue(0 <= int(Robot().name[2:]) <= 999)
            self.assertIn(Robot().name[0], "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
