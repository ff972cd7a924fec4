/// Returns a sign for each straight part of a walk.
pub fn signs(walk: &str) -> Vec<String> {
    let mut parts: Vec<(char, usize)> = Vec::new();
    for step in walk.chars() {
        match parts.last_mut() {
            Some((last, count)) if *last == step => *count += 1,
            _ => parts.push((step, 1)),
        }
    }
    parts.into_iter().map(|(step, count)| format!("{count}{step}")).collect()
}

/// Returns how many steps lead back at least.
pub fn distance(walk: &str) -> u32 {
    let count = |letter: char| walk.chars().filter(|step| *step == letter).count() as u32;
    count('N').abs_diff(count('S')) + count('E').abs_diff(count('W'))
}

/// Tells whether a walk ends where it began.
pub fn is_loop(walk: &str) -> bool {
    distance(walk) == 0
}
