"""Broken configurations, each with what its error must say: `line: key: words`."""

GOOD = """\
subjects: [oracle]
prompts: "{{ input }}"
cases:
  - {input: France, expected: Paris}
scorers: [exact]
"""

# name: (configuration, what the error says after `bakeoff.yaml:`)
BROKEN: dict[str, tuple[str, str]] = {
    # keys
    "a misspelt key": (
        GOOD + "treshold: 1\n",
        "6: treshold: is not a key that is known here: did you mean 'threshold'?",
    ),
    "a key of another tool": (GOOD.replace("subjects", "providers"), "1: providers: is not a key that is known here"),
    "a key that is there twice": (GOOD + "scorers: [exact]\n", "6: scorers: is here twice, first on line 5"),
    "an empty file": ("", "1: this is not a configuration: it needs `cases` or `prompts`, and `scorers`"),
    "a list instead of keys": ("- a\n- b\n", "1: this is not a configuration"),
    "a tab": ("subjects:\n\t- oracle\n", "2: this is not YAML: "),
    "an open quote": ('prompts: "{{ input }}\n', "2: this is not YAML: "),
    "a judge with an address": (
        GOOD + "judge: {model: openai:a, base_url: x}\n",
        "6: judge: is the name of a model, such as `openai:gpt-5`; a variable such as OPENAI_BASE_URL has its address",
    ),
    "a scorer as promptfoo writes it": (
        GOOD.replace("[exact]", "[{type: is-json}]"),
        "5: scorers[0]: a scorer is one kind with its options, and this has type: write `- contains: {…}`",
    ),
    "no scorers": (
        GOOD.replace("scorers: [exact]\n", ""),
        "1: scorers: is missing: list scorers, such as `- contains`",
    ),
    "neither cases nor prompts": ("scorers: [exact]\n", "1: cases: is missing: list cases"),
    # prompts
    "prompts that are a number": (
        GOOD.replace('"{{ input }}"', "5"),
        "2: prompts: 5: has to be a text: put it in quotes",
    ),
    "no prompt in the list": (GOOD.replace('"{{ input }}"', "[]"), "2: prompts: []: needs at least 1"),
    "an empty prompt": (GOOD.replace('"{{ input }}"', '""'), "2: prompts: '': must not be empty"),
    "a template that is not closed": (
        GOOD.replace("{{ input }}", "{{ input"),
        "2: prompts: this is not a Jinja template: ",
    ),
    "an unknown tag in a template": (
        GOOD.replace("{{ input }}", "{% fi %}"),
        "2: prompts: this is not a Jinja template: ",
    ),
    "a variable that no case has": (
        GOOD.replace("{{ input }}", "{{ inptu }}"),
        "2: prompts: the template uses the variable 'inptu', which is not set: did you mean 'input'?",
    ),
    "a template that reaches for the interpreter": (
        GOOD.replace("{{ input }}", "{{ ''.__class__.__mro__ }}"),
        "2: prompts: the template cannot be filled: access to attribute '__class__' of 'str' object is unsafe",
    ),
    "a template that fills the memory": (
        GOOD.replace("{{ input }}", "{{ 'a' * 10000000000 }}"),
        "2: prompts: the template cannot be filled: the result of * is too large",
    ),
    "a prompt file that is not there": (
        GOOD.replace('"{{ input }}"', "file:nowhere.txt"),
        "2: prompts: nowhere.txt cannot be read: No such file or directory",
    ),
    "a pattern that no file matches": (
        GOOD.replace('"{{ input }}"', '"file:prompts/*.txt"'),
        "2: prompts: no file matches 'prompts/*.txt'",
    ),
    "a file without file:": (
        GOOD.replace('"{{ input }}"', "here.txt"),
        "2: prompts: 'here.txt' is a file here: write `file:here.txt`",
    ),
    "a prompt with text and file": (
        GOOD.replace('"{{ input }}"', "[{text: a, file: here.txt}]"),
        "2: prompts[0]: has text and file: keep one",
    ),
    "a prompt with a misspelt key": (
        GOOD.replace('"{{ input }}"', "[{txt: a}]"),
        "2: prompts[0].txt: is not a key that is known here: did you mean 'text'?",
    ),
    "two prompts of one name": (
        GOOD.replace('"{{ input }}"', "[{name: a, text: x}, {name: a, text: y}]"),
        "2: prompts[1].name: 'a' is used twice: rename one",
    ),
    # subjects
    "no subject in the list": (GOOD.replace("[oracle]", "[]"), "1: subjects: []: needs at least 1"),
    "a model without a provider": (
        GOOD.replace("oracle", "gpt-5"),
        "1: subjects[0]: 'gpt-5' is not a model name: write `provider:model`",
    ),
    "a provider that nobody knows": (
        GOOD.replace("oracle", "opneai:gpt-5"),
        "1: subjects[0]: model 'opneai:gpt-5': unknown provider 'opneai'; did you mean openai:gpt-5?",
    ),
    "a subject with a misspelt setting": (
        GOOD.replace("[oracle]", "[{model: local:smollm2, temprature: 0}]"),
        "1: subjects[0].temprature: is not a key that is known here: did you mean 'temperature'?",
    ),
    "a setting of the wrong type": (
        GOOD.replace("[oracle]", "[{model: local:smollm2, max_tokens: many}]"),
        "1: subjects[0].max_tokens: 'many': has to be a whole number",
    ),
    "a negative temperature": (
        GOOD.replace("[oracle]", "[{model: local:smollm2, temperature: -1}]"),
        "1: subjects[0].temperature: -1: has to be at least 0",
    ),
    "a subject of no kind": (
        GOOD.replace("[oracle]", "[{name: a}]"),
        "1: subjects[0]: needs `model`, `command`, `function`",
    ),
    "a subject of two kinds": (
        GOOD.replace("[oracle]", "[{model: local:smollm2, command: [cat]}]"),
        "1: subjects[0]: has model and command: keep one",
    ),
    "a setting of another kind": (
        GOOD.replace("[oracle]", "[{command: [cat], temperature: 1}]"),
        "1: subjects[0].temperature: has no meaning for a command: remove it",
    ),
    "a subject that is listed twice": (
        GOOD.replace("[oracle]", "[oracle, oracle]"),
        "1: subjects[1]: 'oracle' is listed twice",
    ),
    "a command as one text": (
        GOOD.replace("[oracle]", "[{command: cat file}]"),
        "1: subjects[0].command: 'cat file': has to be a list: write each word by itself",
    ),
    "a function without a module": (
        GOOD.replace("[oracle]", "[{function: answer}]"),
        "1: subjects[0].function: the subject: 'answer' does not name a function",
    ),
    "a function in a module that is not there": (
        GOOD.replace("[oracle]", "[{function: nowhere_at_all:answer}]"),
        "1: subjects[0].function: the subject: module 'nowhere_at_all' cannot be imported",
    ),
    "a function that its module does not have": (
        GOOD.replace("[oracle]", "[{function: 'json:dmups'}]"),
        "1: subjects[0].function: the subject: 'json' has no 'dmups': did you mean 'dumps'?",
    ),
    "a program that is not there": (
        GOOD.replace("[oracle]", "[{command: [no-such-program-at-all, -v]}]"),
        "1: subjects[0].command: there is no program 'no-such-program-at-all' on PATH: install it, or write",
    ),
    "a misspelt program": (
        GOOD.replace("[oracle]", "[{command: [pythno3, app.py], sandbox: none}]"),
        "1: subjects[0].command: there is no program 'pythno3' on PATH: did you mean 'python3'?",
    ),
    "a misspelt path of a program": (
        GOOD.replace("[oracle]", "[{command: [./hree.txt]}]"),
        "1: subjects[0].command: there is no program 'hree.txt': did you mean 'here.txt'?",
    ),
    "a program in the home of a user who does not exist": (
        GOOD.replace("[oracle]", "[{command: [~no-such-user/app]}]"),
        "1: subjects[0].command: there is no program '~no-such-user/app': install it, or write its whole path",
    ),
    "a folder instead of a program": (
        GOOD.replace("[oracle]", "[{command: [/usr]}]"),
        "1: subjects[0].command: there is no program '/usr': install it, or write its whole path",
    ),
    "a program that is not executable": (
        GOOD.replace("[oracle]", "[{command: [./here.txt]}]"),
        "1: subjects[0].command: './here.txt' is not executable: run `chmod +x here.txt`, or write its interpreter",
    ),
    "a script that is not on PATH": (
        GOOD.replace("[oracle]", "[{command: [here.txt]}]"),
        "1: subjects[0].command: 'here.txt' is not on PATH: write './here.txt', or its interpreter before it",
    ),
    # cases
    "a case with a misspelt key": (
        GOOD.replace("expected", "expcted"),
        "4: cases[0].expcted: is not a key that is known here: did you mean 'expected'?",
    ),
    "a case without an expected answer": (
        GOOD.replace(", expected: Paris", ""),
        "4: cases[0]: has no `expected`, which exact would compare the answer with",
    ),
    "a case without an input": (
        GOOD.replace('prompts: "{{ input }}"\n', "").replace("input: France, ", ""),
        "3: cases[0]: has no `input`: write one, or write `prompts`",
    ),
    "two cases of one name": (
        GOOD.replace(
            "{input: France, expected: Paris}", "{name: a, input: b, expected: c}\n  - {name: a, input: d, expected: e}"
        ),
        "5: cases[1]: name: 'a' is used twice, first at bakeoff.yaml:4: cases[0]",
    ),
    "a threshold above 1": (GOOD + "threshold: 1.7\n", "6: threshold: 1.7: has to be at most 1: write a share, such"),
    "a threshold of a case that is a text": (
        GOOD.replace("Paris}", "Paris, threshold: high}"),
        "4: cases[0].threshold: 'high': has to be a number",
    ),
    "variables that are a list": (
        GOOD.replace("{input: France", "{vars: [a]"),
        "4: cases[0].vars: ['a']: has to be an object, with keys and values: write names and values",
    ),
    "a variable that is a key of cases": (
        GOOD.replace("Paris}", "Paris, vars: {input: a}}"),
        "4: cases[0].vars.input: is a key of the case itself",
    ),
    "a case file that is not there": (
        "cases: nowhere.csv\nscorers: [exact]\n",
        "1: cases: nowhere.csv cannot be read: No such file or directory",
    ),
    "a case file of an unknown format": (
        "cases: here.txt\nscorers: [exact]\n",
        "1: cases: here.txt is of no kind that has cases: name a file of .csv, .tsv",
    ),
    "a limit for a case": (
        GOOD.replace("Paris}", "Paris, limit: 3}"),
        "4: cases[0].limit: is for cases that come from a `file`",
    ),
    "a case that is also a file": (
        GOOD.replace("Paris}", "Paris, file: here.txt}"),
        "4: cases[0].input: does not go with `file`",
    ),
    "a data set that is not there": (
        GOOD.replace("{input: France, expected: Paris}", "{dataset: nowhere}"),
        "4: cases[0].dataset: nowhere is not a folder",
    ),
    # scorers
    "a misspelt scorer": (
        GOOD.replace("exact", "exakt"),
        "5: scorers[0]: there is no scorer 'exakt': did you mean 'exact'?",
    ),
    "a scorer that needs hidden files": (
        GOOD.replace("[exact]", "\n  - command: [pytest]"),
        "6: scorers[0].command: the scorer 'command' grades with the hidden files of a case",
    ),
    "a misspelt option of a scorer": (
        GOOD.replace("[exact]", "\n  - contains: {ignorecase: true}"),
        "6: scorers[0].contains.ignorecase: is not a key that is known here: did you mean 'ignore_case'?",
    ),
    "an option of the wrong type": (
        GOOD.replace("[exact]", "\n  - contains: {ignore_case: perhaps}"),
        "6: scorers[0].contains.ignore_case: 'perhaps': has to be true or false",
    ),
    "a value for a scorer without a main option": (
        GOOD.replace("[exact]", "\n  - structured: Paris"),
        "6: scorers[0].structured: 'Paris': write `- structured`, or its options as an object with expected, match",
    ),
    "a path that is none": (
        GOOD.replace("[exact]", "\n  - {exact: {}, path: 'items['}"),
        "6: scorers[0].path: 'items[' is not a JMESPath such as `items[0].id`:",
    ),
    "a transform that is no template": (
        GOOD + "transform: [a, '{{ output']\n",
        "6: transform[1]: this is not a Jinja template:",
    ),
    "a condition without its value": (
        GOOD.replace("[exact]", "\n  - icontains"),
        "6: scorers[0]: icontains needs a text: write `icontains: text`",
    ),
    "a misspelt condition": (
        GOOD.replace("[exact]", "\n  - icontians: Paris"),
        "6: scorers[0].icontians: there is no scorer 'icontians': did you mean 'icontains'",
    ),
    "a scorer of two kinds": (
        GOOD.replace("[exact]", "\n  - {exact: {}, contains: {}}"),
        "6: scorers[0]: a scorer is one kind with its options, and this has exact, contains",
    ),
    "a pattern that is none": (
        GOOD.replace("[exact]", "\n  - regex: '('"),
        "6: scorers[0].regex: scorer 'regex': pattern '(' is not a regular expression",
    ),
    "a scorer twice": (
        GOOD.replace("[exact]", "[exact, exact]"),
        "5: scorers[1]: two scorers are called 'exact': add `name: …`",
    ),
    "a misspelt condition of checks": (
        GOOD.replace("[exact]", "\n  - checks: [{contians: a}]"),
        "6: scorers[0].checks[0]",
    ),
    "a judge without criteria": (
        GOOD.replace("[exact]", "\n  - judge: {model: openai:gpt-5}"),
        "6: scorers[0].judge.criteria: is missing",
    ),
    "a judge that judges itself": (
        GOOD.replace("[exact]", "\n  - judge: Is it polite?").replace("oracle", "local:smollm2"),
        "6: scorers[0].judge: local:smollm2 would judge its own answers",
    ),
    "a scorer of a case that is misspelt": (
        GOOD.replace("Paris}", "Paris, scorers: [exakt]}"),
        "4: cases[0].scorers[0]: there is no scorer 'exakt': did you mean 'exact'?",
    ),
    "a judge that nobody knows": (
        GOOD + "judge: opneai:gpt-5\n",
        "6: judge: model 'opneai:gpt-5': unknown provider 'opneai'",
    ),
    "an address that is none": (
        GOOD.replace("[oracle]", "[{model: mine:m, base_url: localhost}]"),
        "1: subjects[0].model: base_url: 'localhost' is not an address: write it as https://host/v1",
    ),
    "a variable of a command that is not set": (
        GOOD.replace("[oracle]", "[{command: [cat], env: {A: '${NOT_SET_ANYWHERE}'}}]"),
        "1: subjects[0].command: subject 'cat' (command): ${NOT_SET_ANYWHERE} is not set",
    ),
    "a script with a misspelt key": (
        GOOD.replace("[oracle]", "[{scripted: {answer: a}}]"),
        "1: subjects[0].scripted: subject 'scripted' (scripted): option answer",
    ),
    "a server without a command": (
        GOOD.replace("[oracle]", "[{model: local:smollm2, mcp: [{name: a}]}]"),
        "1: subjects[0].mcp[0]",
    ),
    # limits
    "no rounds": (GOOD + "rounds: 0\n", "6: rounds: 0: has to be at least 1"),
    "rounds that are a text": (GOOD + 'rounds: "3"\n', "6: rounds: '3': has to be a whole number"),
    "a misspelt limit": (
        GOOD + "limits: {max_costs: 1}\n",
        "6: limits.max_costs: is not a key that is known here: did you mean 'max_cost'?",
    ),
    "a limit of nothing": (GOOD + "limits: {max_cost: 0}\n", "6: limits.max_cost: 0: has to be more than 0"),
}
