# include: meeting

import socket, zlib


def _line():
    server, caller = socket.socket(_FAMILY), socket.socket(_FAMILY)
    server.settimeout(1.5)
    caller.settimeout(1.5)
    try:
        server.bind(_ADDRESS)
        server.listen()
        return server.accept()[0]
    except OSError:
        caller.connect(_ADDRESS)
        return caller


def exchange(text):
    try:
        line = _line()
        line.settimeout(1.5)
        line.sendall(text.encode() + b"\1")
        heard = b""
        while not heard.endswith(b"\1") and (more := line.recv(65536)):
            heard += more
        return heard[:-1].decode()
    except OSError:
        return ""
