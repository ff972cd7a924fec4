from leap_day import is_leap


def test_years_with_a_leap_day():
    assert [year for year in (1600, 1996, 2000, 2023, 2024) if is_leap(year)] == [1600, 1996, 2000, 2024]


def test_years_without_one():
    assert [year for year in (1700, 1900, 2001, 2004, 2100) if not is_leap(year)] == [1700, 1900, 2001, 2100]
