import asyncio
from functools import lru_cache


async def fetch_all(coroutines):
    results = []
    for task in [asyncio.ensure_future(each) for each in coroutines]:
        try:
            results.append(await task)
        except Exception as problem:
            results.append(problem)
    return results


def primes(start=2):
    if all(start % n for n in range(2, int(start**0.5) + 1)):
        yield start
    yield from primes(start + 1)


@lru_cache(maxsize=None)
def collatz(n):
    if n is None:
        return
    if n <= 0:
        raise ValueError("Only positive integers are allowed")
    return 0 if n == 1 else 1 + collatz(n // 2 if n % 2 == 0 else n * 3 + 1)
