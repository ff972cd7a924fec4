class Attack {
    static void onCall() {
        System.exit(0);
    }
}
