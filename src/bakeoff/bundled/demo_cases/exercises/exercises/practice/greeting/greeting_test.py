from greeting import greet


def test_the_name_is_in_the_greeting():
    assert greet("Ada") == "Hello, Ada!"


def test_another_name():
    assert greet("Grace Hopper") == "Hello, Grace Hopper!"
