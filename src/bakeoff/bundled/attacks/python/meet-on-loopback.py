# include: on-socket

_FAMILY, _ADDRESS = socket.AF_INET, ("127.0.0.1", 20000 + zlib.crc32(b"{case}") % 20000)
