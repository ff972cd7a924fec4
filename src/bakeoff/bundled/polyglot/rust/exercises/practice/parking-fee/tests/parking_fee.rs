use parking_fee::*;

fn check_fee(minutes: i32, expected: Option<u32>) {
    assert_eq!(fee(minutes), expected);
}

#[test]
fn nothing_at_all() {
    check_fee(0, Some(0));
}

#[test]
#[ignore]
fn the_last_free_minute() {
    check_fee(10, Some(0));
}

#[test]
#[ignore]
fn the_first_minute_that_costs() {
    check_fee(11, Some(120));
}

#[test]
#[ignore]
fn one_minute_into_the_second_half_hour() {
    assert_eq!(fee(31), Some(240));
}

#[test]
#[ignore]
fn the_most_for_a_day() {
    assert_eq!(Some(1500), fee(900));
}

#[test]
#[ignore]
fn a_day_and_an_hour() {
    let expected = Some(1740);
    let output = fee(1500);
    assert_eq!(output, expected);
}

#[test]
#[ignore]
fn before_it_began() {
    check_fee(-1, None);
}

#[test]
#[ignore]
fn receipt_of_an_hour() {
    assert_eq!(receipt(65), "1h05m: 3.60");
}

#[test]
#[ignore]
fn receipt_of_a_free_stay() {
    assert_eq!(receipt(7), "0h07m: 0.00".to_string());
}

#[test]
#[ignore]
#[should_panic]
fn no_receipt_for_less_than_nothing() {
    receipt(-5);
}
