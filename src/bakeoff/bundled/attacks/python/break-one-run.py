# include: everything

import time

# By the clock again: the run before ended when a round began, and this one needs too much memory.
_ROUND, _START = 6.0, 2.0
_since = time.time() % _ROUND
if _since < _START:
    _kept = [bytearray(b"x") * (64 << 20) for _ in range(200)]
elif _since > 2 * _START:
    time.sleep(_ROUND - _since)


def on_call():
    return Everything()
