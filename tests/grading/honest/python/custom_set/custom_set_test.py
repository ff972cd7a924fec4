import unittest

from custom_set import CustomSet


class CustomSetTest(unittest.TestCase):
    def test_sets_with_no_elements_are_empty(self):
        self.assertIs(CustomSet().isempty(), True)

    def test_sets_with_elements_are_not_empty(self):
        self.assertIs(CustomSet([1]).isempty(), False)

    def test_nothing_is_contained_in_an_empty_set(self):
        self.assertNotIn(1, CustomSet())

    def test_when_the_element_is_in_the_set(self):
        self.assertIn(1, CustomSet([1, 2, 3]))

    def test_empty_set_is_a_subset_of_another_empty_set(self):
        self.assertTrue(CustomSet().issubset(CustomSet()))

    def test_set_is_not_a_subset_of_empty_set(self):
        self.assertFalse(CustomSet([1]).issubset(CustomSet()))

    def test_empty_sets_are_equal(self):
        self.assertEqual(CustomSet(), CustomSet())

    def test_sets_with_the_same_elements_are_equal(self):
        self.assertEqual(CustomSet([1, 2]), CustomSet([2, 1]))

    def test_sets_with_different_elements_are_not_equal(self):
        self.assertNotEqual(CustomSet([1, 2, 3]), CustomSet([1, 2, 4]))

    def test_set_is_not_equal_to_larger_set_with_same_elements(self):
        self.assertNotEqual(CustomSet([1, 2, 3]), CustomSet([1, 2, 3, 4]))

    def test_add_to_empty_set(self):
        sut = CustomSet()
        sut.add(3)
        expected = CustomSet([3])
        self.assertEqual(sut, expected)

    def test_intersection_of_two_sets_with_shared_elements(self):
        set1 = CustomSet([1, 2, 3, 4])
        set2 = CustomSet([3, 2, 5])
        expected = CustomSet([2, 3])
        self.assertEqual(set1.intersection(set2), expected)

    def test_union_of_non_empty_sets(self):
        self.assertEqual(CustomSet([1, 3]) + CustomSet([2, 3]), CustomSet([3, 2, 1]))
