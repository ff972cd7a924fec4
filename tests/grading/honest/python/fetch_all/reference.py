import asyncio
from itertools import count


async def fetch_all(coroutines):
    return await asyncio.gather(*coroutines, return_exceptions=True)


def primes():
    found = []
    for number in count(2):
        if all(number % prime for prime in found):
            found.append(number)
            yield number


def collatz(number):
    if number is None:
        return None
    if number < 1:
        raise ValueError("Only positive integers are allowed")
    steps = 0
    while number != 1:
        number = number // 2 if number % 2 == 0 else 3 * number + 1
        steps += 1
    return steps
