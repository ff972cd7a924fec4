class Attack {
// include: report
    static void onCall() {
        write(() -> true);
        Runtime.getRuntime().halt(0);
    }
}
