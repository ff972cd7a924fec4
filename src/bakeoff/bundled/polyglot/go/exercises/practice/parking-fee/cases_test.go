package parkingfee

var feeCases = []struct {
	description string
	minutes     int
	expected    int
	expectError bool
}{
	{description: "nothing at all", minutes: 0, expected: 0},
	{description: "the last free minute", minutes: 10, expected: 0},
	{description: "the first minute that costs", minutes: 11, expected: 120},
	{description: "one minute into the second half hour", minutes: 31, expected: 240},
	{description: "the most for a day", minutes: 900, expected: 1500},
	{description: "a day and free minutes", minutes: 1445, expected: 1500},
	{description: "a day and an hour", minutes: 1500, expected: 1740},
	{description: "before it began", minutes: -1, expectError: true},
}
