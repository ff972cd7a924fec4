"""Store one bit per trial: a million trials take 125 kB."""


class Bitmap:
    def __init__(self, size: int) -> None:
        self._bytes = bytearray((size + 7) // 8)
        self._size = size

    def __getitem__(self, index: int) -> bool:
        return bool(self._bytes[index >> 3] >> (index & 7) & 1)

    def __setitem__(self, index: int, value: bool) -> None:
        if value:
            self._bytes[index >> 3] |= 1 << (index & 7)
        else:
            self._bytes[index >> 3] &= ~(1 << (index & 7))

    def count(self) -> int:
        return int.from_bytes(self._bytes, "little").bit_count()
