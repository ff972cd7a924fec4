"""Grade answers of component suites and exercises by running hidden tests on them.

`Case.grading` defines how the tests of a case run. Grading an answer takes these steps:

1. `cases` picks the toolchain and runs the tests in a pristine folder with the answer over it.
2. `references` runs the reference once in the same way, and keeps which tests it passes.
    `twins` finds their twins:
   tests with another expected value, which the reference fails (`written_tests` and `syntax`
       read tests).
3. `grades` runs the tests of an answer in pairs of runs: each replaces another half by twins.
4. It compares both: an answer passes if exactly the tests of the reference ran and passed.

A new backend implements `bakeoff.toolchains.outcome.Grader` and is chosen in `cases.toolchain_for`, and nowhere else.
`audit` checks that a case measures something, `mutants` makes faulty references, `cutting` hides a share of the tests,
and `attacks` reads the attacks of the `cheat` subject.
"""
