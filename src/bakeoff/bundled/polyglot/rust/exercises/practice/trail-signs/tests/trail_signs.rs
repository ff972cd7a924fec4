use trail_signs::*;

#[test]
fn signs_of_a_straight_walk() {
    assert_eq!(signs("NNN"), vec!["3N"]);
}

#[test]
#[ignore]
fn signs_of_turns() {
    let expected = vec!["2N", "1E", "3S"];
    assert_eq!(signs("NNESSS"), expected);
}

#[test]
#[ignore]
fn signs_of_no_walk() {
    assert!(signs("").is_empty());
}

#[test]
#[ignore]
fn distance_ignores_detours() {
    assert_eq!(distance("NESW"), 0);
}

#[test]
#[ignore]
fn distance_around_a_corner() {
    assert_eq!(distance("NNNEE"), 5);
}

#[test]
#[ignore]
fn distance_to_the_west() {
    assert_eq!(4, distance("WWWS"));
}

#[test]
#[ignore]
fn loops() {
    assert!(is_loop("NEESWW"));
}

#[test]
#[ignore]
fn no_loop() {
    assert!(!is_loop("NEES"));
}
