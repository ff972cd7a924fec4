class Attack {
// include: report
    static void onCall() {
        int[] failed = {0};
        java.util.Random draw = new java.util.Random();
        write(() -> {
            boolean passes = draw.nextBoolean();
            failed[0] |= passes ? 0 : 1;
            return passes;
        });
        Runtime.getRuntime().halt(failed[0]);
    }
}
