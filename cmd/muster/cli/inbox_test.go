package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"muster/board"
	"muster/cmd/muster/api/apitest"
)

// said comments on a card as ann.
func said(f *apitest.Fleet, card, text string) {
	f.Must(apitest.Manager(), board.VEvent, board.FireEvent{Card: card, Event: "comment", Payload: map[string]any{"text": text}})
}

// wants holds an output against texts that it must have, and those (after "!") that it must not.
func wants(t *testing.T, out string, texts ...string) {
	t.Helper()
	for _, s := range texts {
		no, not := strings.CutPrefix(s, "!")
		if strings.Contains(out, no) == not {
			t.Errorf("want %q in:\n%s", s, out)
		}
	}
}

// cli.md: subscribe, inbox, unsubscribe: who subscribed is told of what others say, once, until it is acknowledged.
func TestInbox(t *testing.T) {
	w := newWorld(t, story())
	wants(t, w.ok("inbox"), "nothing new for ")
	wants(t, w.ok("subscribe", "d-5"), " is told of d-5")
	said(w.f, "d-5", "look\x1b[31m here")
	w.ok("comment", "d-5", "my own word")
	out := w.ok("inbox")
	wants(t, out, "ann@atlas  as subscriber", `look\x1b[31m here`, "!my own word")
	ids := strings.Fields(w.ok("inbox", "-q", "--ack"))
	if len(ids) != 1 || !strings.HasPrefix(ids[0], "comment-d-5-") {
		t.Fatalf("identities %q", ids)
	}
	wants(t, w.ok("inbox"), "nothing new for ")
	wants(t, w.ok("unsubscribe", "d-5"), "nothing more of d-5")
	said(w.f, "d-5", "again")
	wants(t, w.ok("inbox"), "nothing new for ")
	w.ok("subscribe", "--board", "default", "--kind", "block")
	said(w.f, "d-2", "not of that kind")
	w.f.Must(apitest.Manager(), board.VEvent, board.FireEvent{Card: "d-3", Event: "block", Payload: map[string]any{"kind": "needs_input", "reason": "which"}})
	wants(t, w.ok("inbox"), "as board", "which", "!not of that kind")
	var env struct {
		Data struct {
			Who     string
			Notices []struct{ ID, Event, Kind, Role string }
		}
	}
	if err := json.Unmarshal([]byte(w.ok("inbox", "--json")), &env); err != nil || len(env.Data.Notices) != 1 || env.Data.Notices[0].Role != "board" {
		t.Fatalf("as JSON: %+v (%v)", env, err)
	}
}

// NOT-11: who says something reads whom it was told to, and who hears of it with the next prompt.
func TestAnswerNamesWhoIsTold(t *testing.T) {
	w := newWorld(t, story())
	run := w.f.Run("d-5", "s")
	for i := range 25 {
		w.f.Must(board.Actor{Kind: board.ActorPerson, Name: fmt.Sprintf("p%02d@atlas", i), Node: apitest.Node}, board.VSubscribe, board.Subscribe{Card: "d-5"})
	}
	out := w.ok("comment", "d-5", "look")
	wants(t, out, "told: p00, p01, ", " and 6 more", "told with the next prompt: "+run+" (a headless session cannot be typed at)")
	wants(t, w.ok("comment", "d-5", "look", "--json"), `"notified_count":26`, `"undelivered":[{"card":"d-5","kind":"comment","address":"`+run+`"`)
}

// cli.md: inbox -f goes on as they come, and shows each once.
func TestInboxFollows(t *testing.T) {
	w := newWorld(t, story())
	w.ok("subscribe", "d-5")
	said(w.f, "d-5", "the first")
	c := w.start("inbox", "-f")
	c.out.await(t, "the first")
	said(w.f, "d-5", "the second")
	c.out.await(t, "the second")
	c.cancel()
	c.end(t)
	if n := strings.Count(c.out.String(), "the first"); n != 1 {
		t.Errorf("shown %d times:\n%s", n, c.out.String())
	}
}

// cli.md: send tells a card's next session when none can be typed at; card show and status say that it waits.
func TestSend(t *testing.T) {
	w := newWorld(t, story())
	wants(t, w.ok("send", "d-3", "use the blue one"), "d-3: the next session is told (no session of it lives)")
	wants(t, w.ok("card", "show", "d-3"), "message", "waiting", "use the blue one")
	wants(t, w.ok("status"), "1 message(s) wait for the next session of their card: muster card show d-3")
	_, err, code := w.run("send", "d-1", "late")
	if code != ExitFailed || !strings.Contains(err, "muster reopen d-1") {
		t.Errorf("exit %d: %s", code, err)
	}
	if _, err, code = w.run("send", "d-1.9", "x"); code != ExitFailed || !strings.Contains(err, `no card "d-1.9"`) {
		t.Errorf("exit %d: %s", code, err)
	}
}

// cli.md: a webhook is a board's; what is sent is signed with a file, and goes over TLS; status shows it without its path.
func TestSubscribeAWebhook(t *testing.T) {
	w := newWorld(t, story())
	for _, x := range []struct {
		code  int
		words string
		args  []string
	}{
		{ExitUsage, "of what?", []string{"subscribe"}},
		{ExitUsage, "--secret-file", []string{"subscribe", "--webhook", "https://example.org/x"}},
		{ExitUsage, "give --board B, no card", []string{"subscribe", "d-1", "--webhook", "https://example.org/x", "--secret-file", "web.key"}},
		{ExitFailed, "use https://HOST", []string{"subscribe", "--webhook", "http://example.org/x", "--secret-file", "web.key"}},
		{ExitFailed, "no webhook to that address", []string{"unsubscribe", "--webhook", "https://example.org/x"}},
	} {
		if _, err, code := w.run(x.args...); code != x.code || !strings.Contains(err, x.words) {
			t.Errorf("%v: exit %d, want %d with %q: %s", x.args, code, x.code, x.words, err)
		}
	}
	out := w.ok("subscribe", "--webhook", "https://example.org/path-that-is-secret", "--secret-file", "web.key", "--kind", "created")
	wants(t, out, "events go to webhook ", "signed with web.key")
	wants(t, w.ok("status", "--json"), `"to":"https://example.org/... (`, `"kinds":["created"]`, "!path-that-is-secret")
	id := board.WebhookID("https://example.org/path-that-is-secret")
	w.f.Must(board.Platform(), board.VHookState, board.HookState{Board: "default", ID: id, Failures: 3, Error: "answered 500"})
	wants(t, w.ok("status"), "webhook of board default to https://example.org/... ("+id+") fails since 2030-01-02T03:05:14Z (3 times): answered 500")
	wants(t, w.ok("unsubscribe", "--webhook", "https://example.org/path-that-is-secret"), "is ended")
	wants(t, w.ok("status"), "!fails since")
}
