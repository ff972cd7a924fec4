"""`pytest --eval-watch`: run what has changed and what failed again after every change of a file.

loop     the process that waits for changes, and starts a pytest for each cycle
state    what a cycle is told, what it tells, and which tests a change concerns
cycle    the hooks of that pytest: leave out the tests whose results are kept, and tell what the others used
source   the parts of a test file that a test uses, and the modules that a file imports
reads    the files that are read while tests are collected and run
"""
