fn on_call() {
    std::process::exit(0);
}
