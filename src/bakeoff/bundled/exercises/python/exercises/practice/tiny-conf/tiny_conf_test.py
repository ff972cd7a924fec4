import pytest
from conf_values import parse_value
from scanner import ConfError, Line, scan
from tiny_conf import load


def place(action, *arguments):
    with pytest.raises(ConfError) as caught:
        action(*arguments)
    return caught.value.line, caught.value.column


def test_the_scanner_finds_lines_that_say_something():
    text = '# top\n\na = 1  # one\n  \t \n  b = "x # y" # z\r\n    c = d#e\n'
    assert scan(text) == [Line(3, 0, 1, "a = 1"), Line(5, 1, 3, 'b = "x # y"'), Line(6, 2, 5, "c = d#e")]


def test_the_scanner_knows_escaped_quotes():
    assert scan('a = "x \\" # y" # z') == [Line(1, 0, 1, 'a = "x \\" # y"')]


@pytest.mark.parametrize(("text", "where"), [("a:\n b = 1", (2, 2)), ("\n  \ta = 1", (2, 3)), ("   a", (1, 4))])
def test_the_scanner_refuses_odd_steps(text, where):
    assert place(scan, text) == where


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12", 12),
        ("-3", -3),
        ("0", 0),
        ("2.50", 2.5),
        ("007", "007"),
        ("-", "-"),
        ("1.2.3", "1.2.3"),
        ("true", True),
        ("False", "False"),
        ("http://a_b.example:80/@x-y", "http://a_b.example:80/@x-y"),
        ('"a\\"b\\\\n\\n\\t\\$\\u{1F600}\\u{e9}"', 'a"b\\n\n\t$\U0001f600é'),
        ('"true"', "true"),
        ('""', ""),
        ("[ ]", []),
        (' [1,[a ,"b, c"], [] ] ', [1, ["a", "b, c"], []]),
    ],
)
def test_values_are_read(text, expected):
    value = parse_value(text, 1, 1)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("", 10),
        ("a b", 12),
        ("a,", 11),
        ("[1, 2", 15),
        ("[1,]", 13),
        ("[1 2]", 13),
        ("[,]", 11),
        ("]", 10),
        ('"abc', 10),
        ('["abc]', 11),
        ('"abc\\', 10),
        ('"a\\qc"', 12),
        ('"a\\u{110000}"', 12),
        ('"a\\u{d800}"', 12),
        ('"a\\u{}"', 12),
        ('"a"b', 13),
        ("a${b", 11),
        ("${a..b}", 10),
        ("${}", 10),
        ('"x $ y"', 13),
        ("${1a}", 10),
        ("é", 10),
    ],
)
def test_mistakes_in_values_have_a_place(text, column):
    assert place(parse_value, text, 7, 10) == (7, column)


def test_a_file_is_read():
    text = """
# the shop
name = "Corner Shop"
tags=[small, "open late", 24]
server:
  host = shop.example
  tls :
    on = true
  empty:
port-2 = 8080
"""
    assert load(text) == {
        "name": "Corner Shop",
        "tags": ["small", "open late", 24],
        "server": {"host": "shop.example", "tls": {"on": True}, "empty": {}},
        "port-2": 8080,
    }
    assert load("# nothing\n") == {}


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("name", (1, 5)),
        ("name value", (1, 6)),
        ("1a = 2", (1, 1)),
        ("= 2", (1, 1)),
        ("a =   # nothing", (1, 4)),
        ("a: b", (1, 4)),
        ("a.b = 1", (1, 2)),
        ("a = 1 2", (1, 7)),
        ("  a = 1", (1, 3)),
        ("a = 1\n  b = 2", (2, 3)),
        ("a:\n    b = 2", (2, 5)),
        ("a:\n  b = [1\n", (2, 9)),
        ("a = 1\na = 2", (2, 1)),
        ("a:\n  b = 1\n  b:\n", (3, 3)),
        ("a:\nb = 1\na:\n", (3, 1)),
    ],
)
def test_mistakes_in_files_have_a_place(text, where):
    assert place(load, text) == where


def test_references_are_looked_up_from_the_top():
    text = """
url = http://${server.host}:${server.port}/
server:
  host = "${name}.example"
  port = 80
  name = inner
name = shop
copy = ${server.port}
text = "${server.port}"
list = [${name}, x${flag}, "${half} \\${name}"]
flag = true
half = 0.5
"""
    assert load(text) == {
        "url": "http://shop.example:80/",
        "server": {"host": "shop.example", "port": 80, "name": "inner"},
        "name": "shop",
        "copy": 80,
        "text": "80",
        "list": ["shop", "xtrue", "0.5 ${name}"],
        "flag": True,
        "half": 0.5,
    }


def test_sections_and_lists_are_copied():
    loaded = load("a:\n  list = [1]\n  b = ${c}\nd = ${a}\ne = ${a.list}\nc = 5\n")
    assert loaded == {"a": {"list": [1], "b": 5}, "d": {"list": [1], "b": 5}, "e": [1], "c": 5}
    loaded["d"]["list"].append(2)
    loaded["e"].append(3)
    assert loaded["a"] == {"list": [1], "b": 5}


def test_a_reference_may_lead_through_another():
    assert load("a = ${b}\nb:\n  c = ${d}\nd:\n  e = 1\nf = ${a.c.e}\n")["f"] == 1


def test_keys_of_the_same_section_may_refer_to_each_other():
    assert load("a:\n  b = ${a.c}\n  c = x${a.d}\n  d = 1\n") == {"a": {"b": "x1", "c": "x1", "d": 1}}


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a = ${b}", (1, 5)),
        ("a = x${a.b}\n", (1, 6)),
        ("a:\n  b = 1\nc = [1, ${a.b.c}]", (3, 9)),
        ("a = [1]\nb = ${a.0}", (2, 5)),
        ('a:\nb = "x${a}"', (2, 7)),
        ("a = [1]\nb = ${a}x", (2, 5)),
        ("a = ${a}", (1, 5)),
        ('a = "${a}"', (1, 6)),
        ("a:\n  b = ${a}\n", (2, 7)),
        ("a:\n  b:\n    c = [${a}]\n", (3, 10)),
        ("a = ${a.b}", (1, 5)),
    ],
)
def test_references_that_lead_nowhere_have_a_place(text, where):
    assert place(load, text) == where


def test_references_that_go_in_a_circle_have_a_place():
    assert place(load, "a = ${b}\nb = x${c.d}\nc:\n  d = [${a}]\n") in {(1, 5), (2, 6), (4, 8)}
