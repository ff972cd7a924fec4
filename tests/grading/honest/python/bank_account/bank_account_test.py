import sys
import threading
import time
import unittest

from bank_account import BankAccount


class BankAccountTest(unittest.TestCase):
    def test_newly_opened_account_has_zero_balance(self):
        account = BankAccount()
        account.open()
        self.assertEqual(account.get_balance(), 0)

    def test_single_deposit(self):
        account = BankAccount()
        account.open()
        account.deposit(100)
        self.assertEqual(account.get_balance(), 100)

    def test_multiple_deposits(self):
        account = BankAccount()
        account.open()
        account.deposit(100)
        account.deposit(50)

        self.assertEqual(account.get_balance(), 150)

    def test_withdraw_once(self):
        account = BankAccount()
        account.open()
        account.deposit(100)
        account.withdraw(75)

        self.assertEqual(account.get_balance(), 25)

    def test_cannot_check_balance_of_closed_account(self):
        account = BankAccount()
        account.open()
        account.close()

        with self.assertRaises(ValueError) as err:
            account.get_balance()
        self.assertEqual(type(err.exception), ValueError)
        self.assertEqual(err.exception.args[0], "account not open")

    def test_cannot_open_an_already_opened_account(self):
        account = BankAccount()
        account.open()
        with self.assertRaises(ValueError) as err:
            account.open()
        self.assertEqual(type(err.exception), ValueError)
        self.assertEqual(err.exception.args[0], "account already open")

    def test_cannot_withdraw_more_than_deposited(self):
        account = BankAccount()
        account.open()
        account.deposit(25)

        with self.assertRaises(ValueError) as err:
            account.withdraw(50)
        self.assertEqual(type(err.exception), ValueError)
        self.assertEqual(err.exception.args[0], "amount must be less than balance")

    def test_cannot_deposit_negative(self):
        account = BankAccount()
        account.open()
        with self.assertRaises(ValueError):
            account.deposit(-50)

    def test_cannot_deposit_anything_that_is_no_number(self):
        account = BankAccount()
        account.open()
        with self.assertRaises(Exception):
            account.deposit("much")

    def test_can_handle_concurrent_transactions(self):
        account = BankAccount()
        account.open()
        account.deposit(1000)
        self.adjust_balance_concurrently(account)
        self.assertEqual(account.get_balance(), 1000)

    def adjust_balance_concurrently(self, account):
        def transact():
            account.deposit(5)
            time.sleep(0.001)
            account.withdraw(5)

        # Greatly improve the chance of an operation being interrupted
        # by thread switch, thus testing synchronization effectively
        try:
            sys.setswitchinterval(1e-12)
        except AttributeError:
            sys.setcheckinterval(1)

        threads = [threading.Thread(target=transact) for _ in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
