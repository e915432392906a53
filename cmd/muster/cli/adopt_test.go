package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"muster/board"
)

// SES-24, SES-28, cli.md: a session that a person has works a card; the answer says how it speaks as its run, and what it
// says there counts.
func TestAdoptASession(t *testing.T) {
	w := newWorld(t, story())
	for _, x := range []struct {
		code  int
		words string
		args  []string
	}{
		{ExitUsage, "which session?", []string{"adopt", "d-5"}},
		{ExitFailed, "no process of yours names it", []string{"adopt", "d-5", "--session", "s-1"}},
		{ExitFailed, "no profile of vim", []string{"adopt", "d-5", "--session", "s-1", "--pid", "4711", "--harness", "vim"}},
		{ExitFailed, "slot", []string{"adopt", "d-5", "--session", "s-1", "--pid", "4711", "--slot", "a/b"}},
	} {
		if _, err, code := w.run(x.args...); code != x.code || !strings.Contains(err, x.words) {
			t.Errorf("%v: exit %d, want %d with %q: %s", x.args, code, x.code, x.words, err)
		}
	}
	var env struct{ Data adopted }
	if err := json.Unmarshal([]byte(w.ok("adopt", "d-5", "--session", "s-1", "--pid", "4711", "--slot", "mine", "--json")), &env); err != nil {
		t.Fatal(err)
	}
	x := env.Data
	if x.ID != "d-5" || x.Machine != "atlas" || x.To != "running" || !strings.HasSuffix(x.Env["MUSTER_SECRET_FILE"], "/runs/"+x.Run+"/secret.json") || x.Env["MUSTER_CARD"] != "d-5" {
		t.Fatalf("%+v", x)
	}
	wants(t, w.ok("runs", "d-5", "--json"), `"slot":"mine"`)
	w.f.Secrets[x.Run] = "s"
	w.inSession(x.Run, "d-5", "s")
	wants(t, w.ok("request-review", "--summary", "by hand"), "d-5: running -> review")
	said := w.f.Said()
	if last := said[len(said)-1]; last.Actor.Kind != board.ActorRun || last.Actor.Run != x.Run {
		t.Errorf("said by %+v", last.Actor)
	}
}
