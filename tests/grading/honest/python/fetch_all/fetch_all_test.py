import asyncio
import itertools
import unittest

from fetch_all import collatz, fetch_all, primes


async def slow(value, seconds=0.001):
    await asyncio.sleep(seconds)
    return value


async def broken():
    raise LookupError("no such page")


class FetchAllTest(unittest.IsolatedAsyncioTestCase):
    async def test_results_come_in_order(self):
        self.assertEqual(await fetch_all([slow("a", 0.02), slow("b", 0.001)]), ["a", "b"])

    async def test_nothing_to_fetch(self):
        self.assertListEqual(await fetch_all([]), [])

    async def test_failures_are_results(self):
        first, second = await fetch_all([broken(), slow(3)])
        self.assertIsInstance(first, LookupError)
        self.assertEqual(str(first), "no such page")
        self.assertEqual(second, 3)


class SequenceTest(unittest.TestCase):
    def test_first_primes(self):
        self.assertEqual(list(itertools.islice(primes(), 5)), [2, 3, 5, 7, 11])

    def test_a_prime_is_never_even(self):
        self.assertTrue(all(p % 2 for p in itertools.islice(primes(), 1, 50)))

    def test_collatz_steps(self):
        self.assertEqual(collatz(1), 0)
        self.assertEqual(collatz(16), 4)
        self.assertEqual(collatz(12), 9)

    def test_zero_is_an_error(self):
        with self.assertRaises(ValueError) as err:
            collatz(0)
        self.assertEqual(err.exception.args[0], "Only positive integers are allowed")

    def test_negative_is_an_error(self):
        with self.assertRaisesRegex(ValueError, "positive"):
            collatz(-15)

    def test_it_has_no_result_for_none(self):
        self.assertIsNone(collatz(None))
        self.assertIsNotNone(collatz(2))
