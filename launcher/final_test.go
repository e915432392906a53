package launcher

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/board"
)

// A session that has said the last word of its work and does not end is ended after
// its time to leave; one that says more goes on.
func TestHangAfterTheLastWord(t *testing.T) {
	t.Parallel()
	k := testKeepers(t)
	for _, c := range []struct {
		name, script string
		hung         bool
	}{
		{"hangs", `echo '{"type":"result","ok":true}'; echo 'a warning' >&2; while :; do sleep 0.05; done`, true},
		{"says more", `echo '{"type":"result"}'; echo '{"type":"assistant"}'; i=0; while [ $i -lt 30 ]; do sleep 0.1; i=$((i+1)); done; exit 3`, false},
		{"ends in time", `echo '{"type":"result"}'; exit 3`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, _ := testSpec(t, sh(c.script), func(s *Spec) {
				s.Final, s.Leave = []board.SpecLine{{"type": "result"}}, 1100*time.Millisecond
			})
			e := finish(t, start(t, k, dir), dir)
			if e.Hung != c.hung || e.Means == nil || (e.Means.Kind == meansHang) != c.hung {
				t.Errorf("record %+v, means %+v; want hung %v", e, e.Means, c.hung)
			}
			if c.hung && !strings.Contains(e.Error, "last word of its work") {
				t.Errorf("error %q does not say it", e.Error)
			}
			if !c.hung && (e.Code == nil || *e.Code != 3) {
				t.Errorf("record %+v, want its own end", e)
			}
		})
	}
}

// The newest JSON line is found behind other text, whatever its length, and what is
// being written is none yet.
func TestNewestLine(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	for name, c := range map[string]struct {
		log  string
		want bool
	}{
		"nothing":       {"", false},
		"last":          {"x\n{\"type\":\"result\"}\n", true},
		"behind text":   {"{\"type\":\"result\"}\nbye\n\n", true},
		"long":          {"{\"type\":\"a\"}\n{\"type\":\"result\",\"result\":\"" + long + "\"}\n", true},
		"behind long":   {"{\"type\":\"result\"}\n" + long + "\n" + long + "\n", true},
		"more was said": {"{\"type\":\"result\"}\n{\"type\":\"a\",\"t\":\"" + long + "\"}\n", false},
		"half":          {"{\"type\":\"a\"}\n{\"type\":\"result\"", false},
		"only a word":   {"{\"type\":\"result\"}", true},
		"binary":        {"\xff\x00{\"type\":\"result\"}\n", false},
	} {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, fileLog), []byte(c.log), 0o600))
		if got := isFinal(dir, []board.SpecLine{{"type": "result"}}); got != c.want {
			t.Errorf("%s: final %v, want %v", name, got, c.want)
		}
	}
}
