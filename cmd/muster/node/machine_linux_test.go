package node

import "testing"

// MEM-01: what the kernel tells of programs that wait for memory is graded; what it does not tell restricts nothing.
func TestStalled(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "junk": "", "some avg10=x": "",
		"some avg10=0.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n":     "",
		"some avg10=19.99 avg60=99.00 avg300=0.00 total=1\nfull avg10=19.99 avg60=99.00 avg300=0.00 total=0\n": "",
		"some avg10=20.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=3.00 avg60=0.00 avg300=0.00 total=0\n":    "elevated",
		"some avg10=80.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=20.00 avg60=0.00 avg300=0.00 total=0\n":   "critical",
	} {
		if got := stalled(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
