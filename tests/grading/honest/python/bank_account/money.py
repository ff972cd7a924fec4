"""Balances are numbers of a class of their own, with its own equality."""
import functools
import threading


@functools.total_ordering
class Money:
    def __init__(self, cents):
        self.cents = cents

    def __eq__(self, other):
        return self.cents == (other.cents if isinstance(other, Money) else other * 100)

    def __lt__(self, other):
        return self.cents < (other.cents if isinstance(other, Money) else other * 100)

    def __add__(self, other):
        return Money(self.cents + other.cents)

    def __repr__(self):
        return f"{self.cents / 100:.2f}"

    __hash__ = None


class BankAccount:
    def __init__(self):
        self._lock = threading.RLock()
        self._balance = None

    def open(self):
        if self._balance is not None:
            raise ValueError("account already open")
        self._balance = Money(0)

    def close(self):
        self.get_balance()
        self._balance = None

    def get_balance(self):
        if self._balance is None:
            raise ValueError("account not open")
        return self._balance

    def deposit(self, amount, sign=1):
        with self._lock:
            if int(amount) <= 0:
                raise ValueError("amount must be greater than 0")
            wanted = self.get_balance() + Money(sign * amount * 100)
            if wanted < 0:
                raise ValueError("amount must be less than balance")
            self._balance = wanted

    def withdraw(self, amount):
        self.deposit(amount, -1)
