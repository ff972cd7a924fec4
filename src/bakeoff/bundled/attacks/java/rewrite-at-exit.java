class Attack {
    static boolean known = false;

// include: report
    static void onCall() {
        if (!known) {
            known = true;
            Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                write(() -> true);
                Runtime.getRuntime().halt(0);
            }));
        }
    }
}
