package launcher

import (
	"strings"
	"testing"
)

// SES-21: a pane whose program only renames its window stands still; whatever else it prints moves it, also around a
// title, in pieces, and where a title is broken off.
func TestWhatAPaneShows(t *testing.T) {
	for _, c := range []struct {
		pieces string // between them a |
		want   bool
	}{
		{"\x1b]0;[ ! ] Action Required\x07\x1b]0;[ . ] Action Required\x07", false},
		{"\x1b]2;caf\u00e9\x1b\\", false},
		{"\x1b|]|0|;|a title|\x07", false},
		{"\x1b]0;a|\x1b|\\", false},
		{"x", true},
		{"\x1b]0;a\x07x", true},
		{"\x1b]0;a\x07\x1b[2J", true},
		{"\x1b]8;;http://x\x07", true}, // a link is of text
		{"\x1b]10;?\x07", true},        // a question to the terminal
		{"\x1b]0;a\x18", true},
		{"\x1b]0;a\x1b[1m", true},
		{"\x1bM", true},
		{"\n", true},
		{"", false},
	} {
		var s shown
		got := false
		for p := range strings.SplitSeq(c.pieces, "|") {
			got = s.by([]byte(p)) || got
		}
		if got != c.want {
			t.Errorf("%q: %v", c.pieces, got)
		}
	}
}

// SES-21: so a program that blinks its title while it asks is quiet, and its question is seen.
func TestAPaneThatBlinksItsTitle(t *testing.T) {
	t.Parallel()
	n := paneNode(t)
	run := n.start("tui", `printf 'ready> 1. Yes\n'; while :; do printf '\033]0;[ ! ] asks\007'; sleep 0.2; done`)
	n.showsLife(run)
	eventually(t, "the pane to be quiet", func() bool {
		quiet := false
		n.ask(func() {
			st, ok := n.runs[run].paneOf()
			quiet = ok && st.Quiet
		})
		return quiet
	})
}
