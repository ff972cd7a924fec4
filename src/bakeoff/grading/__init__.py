"""Grade answers by running hidden tests on them: what component suites and exercises share.

A case says in `Case.grading` how its tests run. Grading an answer takes these steps:

1. `runners` picks the toolchain and runs the tests in a pristine folder with the answer over it.
2. `references` runs the reference once in the same way, and keeps which tests it passes.
3. `grades` compares the two: an answer passes if everything ran, passed, and was what the reference ran.

A new backend implements `bakeoff.toolchains.Grader` and is chosen in `runners.toolchain_for`, and nowhere else.
`verify` checks that a case measures something, and `attacks` holds the texts of the `cheat` subject.
"""
