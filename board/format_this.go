//go:build !nextformat

package board

// Format is the highest format of the state that this build knows.
const Format uint64 = 3

// nextFleet and nextVerb are empty but in the build that plays the next version
// for the test of a rolling upgrade (format_next.go).
type nextFleet struct{}

func (*nextFleet) fields(*wire) {}

// SpokenNext tells a verb that comes through a door in the next version only.
func SpokenNext(string) bool { return false }

func nextVerb(string) (verb, bool) { return verb{}, false }
