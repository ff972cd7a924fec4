package trailsigns

import (
	"reflect"
	"testing"
)

func TestSignsOfAStraightWalk(t *testing.T) {
	if got := Signs("NNN"); !reflect.DeepEqual(got, []string{"3N"}) {
		t.Errorf("got %v", got)
	}
}

func TestSignsOfTurns(t *testing.T) {
	want := []string{"2N", "1E", "3S"}
	if got := Signs("NNESSS"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSignsOfNoWalk(t *testing.T) {
	if got := len(Signs("")); got != 0 {
		t.Errorf("got %d signs", got)
	}
}

func checkDistance(t *testing.T, walk string, want int) {
	t.Helper()
	if got := Distance(walk); got != want {
		t.Errorf("Distance(%q) = %d, want %d", walk, got, want)
	}
}

func TestDistanceIgnoresDetours(t *testing.T) { checkDistance(t, "NESW", 0) }

func TestDistanceAroundACorner(t *testing.T) { checkDistance(t, "NNNEE", 5) }

func TestDistanceToTheWest(t *testing.T) { checkDistance(t, "WWWS", 4) }

func TestLoops(t *testing.T) {
	if !IsLoop("NEESWW") {
		t.Error("NEESWW ends where it began")
	}
}

func TestNoLoop(t *testing.T) {
	if IsLoop("NEES") {
		t.Error("NEES ends elsewhere")
	}
}
