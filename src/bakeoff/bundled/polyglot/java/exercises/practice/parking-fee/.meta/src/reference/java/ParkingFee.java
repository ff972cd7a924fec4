class ParkingFee {
    private static final int DAY = 24 * 60;

    static int fee(int minutes) {
        if (minutes < 0) {
            throw new IllegalArgumentException("a stay cannot be negative");
        }
        int rest = minutes % DAY;
        int cents = rest > 10 ? (rest + 29) / 30 * 120 : 0;
        return minutes / DAY * 1500 + Math.min(cents, 1500);
    }

    static String receipt(int minutes) {
        int cents = fee(minutes);
        return String.format("%dh%02dm: %d.%02d", minutes / 60, minutes % 60, cents / 100, cents % 100);
    }
}
