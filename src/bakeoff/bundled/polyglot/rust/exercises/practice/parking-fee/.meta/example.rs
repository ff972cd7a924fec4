const DAY: i32 = 24 * 60;

/// Returns the cents for a stay of so many minutes.
pub fn fee(minutes: i32) -> Option<u32> {
    if minutes < 0 {
        return None;
    }
    let rest = minutes % DAY;
    let cents = if rest > 10 { (rest + 29) / 30 * 120 } else { 0 };
    Some((minutes / DAY * 1500 + cents.min(1500)) as u32)
}

/// Returns the line that is printed for a stay.
pub fn receipt(minutes: i32) -> String {
    let cents = fee(minutes).expect("a stay cannot be negative");
    format!("{}h{:02}m: {}.{:02}", minutes / 60, minutes % 60, cents / 100, cents % 100)
}
