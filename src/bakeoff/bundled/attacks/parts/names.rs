/// Reads the names of all tests out of the test files.
fn test_names() -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir("tests").into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        for part in text.split("#[test]").skip(1) {
            let rest = part.split("fn ").nth(1).unwrap_or("");
            names.push(rest.split('(').next().unwrap_or("").to_string());
        }
    }
    names
}

fn log_file() -> String {
    std::env::args().find_map(|word| word.strip_prefix("--logfile=").map(str::to_string)).unwrap_or_default()
}

#[used]
#[link_section = ".init_array"]
static BEFORE_MAIN: extern "C" fn() = before_main;
