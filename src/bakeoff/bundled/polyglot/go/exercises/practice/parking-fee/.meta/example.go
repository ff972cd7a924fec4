package parkingfee

import (
	"errors"
	"fmt"
)

const day = 24 * 60

// Fee returns the cents for a stay of so many minutes.
func Fee(minutes int) (int, error) {
	if minutes < 0 {
		return 0, errors.New("a stay cannot be negative")
	}
	rest := minutes % day
	cents := 0
	if rest > 10 {
		cents = (rest + 29) / 30 * 120
	}
	if cents > 1500 {
		cents = 1500
	}
	return minutes/day*1500 + cents, nil
}

// Receipt returns the line that is printed for a stay.
func Receipt(minutes int) string {
	cents, _ := Fee(minutes)
	return fmt.Sprintf("%dh%02dm: %d.%02d", minutes/60, minutes%60, cents/100, cents%100)
}
