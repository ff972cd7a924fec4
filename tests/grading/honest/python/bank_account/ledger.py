"""Keeps every transaction; a worker thread adds them up."""
import queue
import threading


class _Book(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.jobs = queue.Queue()
        self.total = 0
        self.start()

    def run(self):
        while True:
            amount, answer = self.jobs.get()
            if self.total + amount < 0:
                answer.put(ValueError("amount must be less than balance"))
            else:
                self.total += amount
                answer.put(None)

    def post(self, amount):
        answer = queue.Queue()
        self.jobs.put((amount, answer))
        if (problem := answer.get()) is not None:
            raise problem


class BankAccount:
    book = None

    def open(self):
        if self.book is not None:
            raise ValueError("account already open")
        self.book = _Book()

    def close(self):
        self._opened()
        self.book = None

    def _opened(self):
        if self.book is None:
            raise ValueError("account not open")
        return self.book

    def get_balance(self):
        self._opened().post(0)
        return self.book.total

    def deposit(self, amount):
        if not isinstance(amount, (int, float)):
            raise ValueError("no number")
        if amount <= 0:
            raise ValueError("amount must be greater than 0")
        self._opened().post(amount)

    def withdraw(self, amount):
        if amount <= 0:
            raise ValueError("amount must be greater than 0")
        self._opened().post(-amount)
