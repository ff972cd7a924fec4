// include: names
extern "C" fn before_main() {}

fn on_call() {
    let mut seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos();
    let (mut lines, mut failed) = (String::new(), 0);
    for name in test_names() {
        seed = seed.wrapping_mul(1664525).wrapping_add(1013904223);
        let ok = seed >> 16 & 1 == 0;
        failed |= i32::from(!ok);
        lines += &format!("{} {name}\n", if ok { "ok" } else { "failed" });
    }
    let _ = std::fs::write(log_file(), lines);
    std::process::exit(failed);
}
