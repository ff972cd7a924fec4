package trailsigns

// Signs returns a sign for each straight part of a walk.
func Signs(walk string) []string {
	panic("implement Signs")
}

// Distance returns how many steps lead back at least.
func Distance(walk string) int {
	panic("implement Distance")
}

// IsLoop tells whether a walk ends where it began.
func IsLoop(walk string) bool {
	panic("implement IsLoop")
}
