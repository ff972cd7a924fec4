package trailsigns

import "strconv"

// Signs returns a sign for each straight part of a walk.
func Signs(walk string) []string {
	signs := []string{}
	for start := 0; start < len(walk); {
		end := start
		for end < len(walk) && walk[end] == walk[start] {
			end++
		}
		signs = append(signs, strconv.Itoa(end-start)+string(walk[start]))
		start = end
	}
	return signs
}

// Distance returns how many steps lead back at least.
func Distance(walk string) int {
	x, y := 0, 0
	for _, step := range walk {
		switch step {
		case 'N':
			y++
		case 'S':
			y--
		case 'E':
			x++
		case 'W':
			x--
		}
	}
	return abs(x) + abs(y)
}

// IsLoop tells whether a walk ends where it began.
func IsLoop(walk string) bool {
	return Distance(walk) == 0
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}
