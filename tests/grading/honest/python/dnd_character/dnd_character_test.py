import unittest

from dnd_character import Character, modifier


class DndCharacterTest(unittest.TestCase):
    def test_ability_modifier_for_score_3_is_n4(self):
        self.assertEqual(modifier(3), -4)

    def test_ability_modifier_for_score_9_is_n1(self):
        self.assertEqual(modifier(9), -1)

    def test_ability_modifier_for_score_10_is_0(self):
        self.assertEqual(modifier(10), 0)

    def test_ability_modifier_for_score_18_is_4(self):
        self.assertEqual(modifier(18), 4)

    def test_random_ability_is_within_range(self):
        score = Character().ability()
        self.assertIs(score >= 3 and score <= 18, True)

    def test_random_ability_is_within_bounds(self):
        for _ in range(20):
            self.assertGreaterEqual(Character().ability(), 3)
            self.assertLessEqual(Character().ability(), 18)

    def test_random_ability_is_in_range(self):
        self.assertIn(Character().ability(), range(3, 19))
        assert 3 <= Character().ability() <= 18

    def test_random_character_is_valid(self):
        character = Character()
        self.assertIs(character.strength >= 3 and character.strength <= 18, True)
        self.assertIs(character.hitpoints == 10 + modifier(character.constitution), True)

    def test_each_ability_is_only_calculated_once(self):
        character = Character()
        self.assertIs(character.strength == character.strength, True)
