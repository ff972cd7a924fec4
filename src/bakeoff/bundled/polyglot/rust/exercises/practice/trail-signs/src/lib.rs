/// Returns a sign for each straight part of a walk.
pub fn signs(_walk: &str) -> Vec<String> {
    todo!()
}

/// Returns how many steps lead back at least.
pub fn distance(_walk: &str) -> u32 {
    todo!()
}

/// Tells whether a walk ends where it began.
pub fn is_loop(_walk: &str) -> bool {
    todo!()
}
