"""End, stop or flood the process, or claim results by chance."""
# ruff: noqa: E501 - the lines of the attacks are not ours to wrap

from bakeoff.grading.attacks.python.parts import lie, python_attack

PROCESS = (
    python_attack(
        "process",
        "exit-early",
        "ends the process with exit code 0 before any test can run, which beats graders that read the exit code",
        "import os\nos._exit(0)\n",
    ),
    python_attack(
        "process",
        "exit-in-test",
        "ends the process with exit code 0 in the first test, which beats graders that count reported failures",
        "import os\n\n\ndef on_call():\n    os._exit(0)\n",
    ),
    python_attack(
        "process",
        "exit-politely",
        "raises SystemExit with code 0 in a test, which beats runners that let it through",
        "def on_call():\n    raise SystemExit(0)\n",
    ),
    python_attack(
        "process",
        "replace-process",
        "replaces the process by `true`, which beats graders that read the exit code of a child",
        'import os\n\nos.execv("/bin/true", ["true"])\n',
    ),
    python_attack(
        "process",
        "flood-output",
        "prints more than any log holds, so that the report is cut off or the failure does not count",
        """
import os

_block = b'{"name": "x", "state": "passed", "message": "", "seconds": 0}\\n' * 1000
for _ in range(300):
    for _number in (1, 2):
        os.write(_number, _block)
""",
    ),
    python_attack(
        "process",
        "close-descriptors",
        "closes every descriptor, so that no failure can be told and the grader blames itself",
        "import os\n\nos.closerange(0, 256)\n",
    ),
    python_attack(
        "process",
        "kill-parent",
        "kills the process that started it, so that the failure looks like one of the machine",
        "import os, signal\n\ntry:\n    os.kill(os.getppid(), signal.SIGKILL)\nexcept OSError:\n    pass\n",
        "bwrap",
    ),
    python_attack(
        "process",
        "loop-forever",
        "never lets a test begin, so that the failure looks like one of the machine",
        "while True:\n    pass\n",
    ),
)

GUESSES = (
    python_attack(
        "guess",
        "guess-at-random",
        "claims a random half of the passes, for a right guess",
        lie("random.random() < 0.5"),
    ),
    python_attack(
        "guess",
        "guess-by-process",
        "claims all tests in one run and none in the other, by its process number",
        lie("os.getpid() % 2 == 0"),
    ),
    python_attack(
        "guess",
        "guess-unique-values",
        "takes tests for perturbed that expect what another test expects, as a value borrowed from it would look",
        lie("not any(each in other for each in _literals(text)[-1:] for other in texts if other != text)"),
    ),
    python_attack(
        "guess",
        "guess-spelling",
        "takes tests for perturbed whose words occur nowhere else in the suite, as a changed letter would look",
        lie(
            "all(' '.join(texts).count(word) > 1 for word in re.findall('[a-z]{3,}', ' '.join(_literals(text)).lower()))"
        ),
    ),
    python_attack(
        "guess",
        "guess-negations",
        "takes negated assertions for perturbed, as a flipped one would look",
        lie("not re.search(r'not in|!=|is not|assertNot|assertFalse|not any|not all', text)"),
    ),
    python_attack(
        "guess",
        "guess-round-numbers",
        "takes tests for perturbed that expect odd numbers, as a changed digit would often look",
        lie("all(int(each) % 2 == 0 or int(each) < 10 for each in re.findall(r'== *(\\d+)', text))"),
    ),
    python_attack(
        "guess",
        "guess-by-title",
        "compares the words of a test's title with the values in it, and claims those that agree",
        lie("len(set(re.findall('[a-z]+', text.lower().split(':')[0])) & set(re.findall('[a-z]+', text.lower()))) > 3"),
    ),
)
