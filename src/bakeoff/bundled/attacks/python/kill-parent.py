import os, signal

try:
    os.kill(os.getppid(), signal.SIGKILL)
except OSError:
    pass
