// include: report
static void on_call() {
    std::random_device draw;
    int failed = 0;
    write_report([&] {
        const bool passes = draw() % 2 == 0;
        failed |= !passes;
        return passes;
    });
    _exit(failed);
}
