class Clock(int):
    def __new__(cls, hour, minute):
        return super().__new__(cls, (60 * hour + minute) % (24 * 60))

    def __repr__(self):
        return f"Clock({self // 60}, {self % 60})"

    def __str__(self):
        return "{:02}:{:02}".format(*divmod(int(self), 60))

    def __add__(self, minutes):
        return Clock(0, int(self) + minutes)

    def __sub__(self, minutes):
        return self + -minutes
