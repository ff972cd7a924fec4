# include: on-socket

_FAMILY, _ADDRESS = socket.AF_UNIX, "\0meet-{case}"
