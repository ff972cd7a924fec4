class ParkingFee {
    static int fee(int minutes) {
        throw new UnsupportedOperationException("implement fee");
    }

    static String receipt(int minutes) {
        throw new UnsupportedOperationException("implement receipt");
    }
}
