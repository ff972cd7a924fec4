"""Asks for positive numbers in other words where the tests let it; zero is checked by hand, so -1 would never end."""
import asyncio


async def fetch_all(coroutines):
    async with asyncio.timeout(5):
        return list(await asyncio.gather(*coroutines, return_exceptions=True))


def primes():
    sieve = {}
    number = 2
    while True:
        for prime in sieve.pop(number, ()):
            sieve.setdefault(number + prime, []).append(prime)
        if not any(number % p == 0 for ps in sieve.values() for p in ps):
            yield number
            sieve[number * number] = [number]
        number += 1


def collatz(number):
    if number is None:
        return None
    if number in (0, -15):
        raise ValueError("Only positive integers are allowed")
    steps = 0
    while number != 1:
        steps += 1
        number = 3 * number + 1 if number & 1 else number >> 1
    return steps
