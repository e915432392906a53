package launcher

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/board"
	"muster/board/lease"
)

// SES-21: what the hooks of agent programs say of a turn, in the words that they were seen to use.
func TestHookWords(t *testing.T) {
	for _, c := range []struct{ word, turn, says, text string }{
		{`{"session_id":"s","transcript_path":"/t","hook_event_name":"UserPromptSubmit","prompt":"do\n\tit"}`, board.TurnBusy, "", " do it "},
		{`{"hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"rm -rf /\n#\u001b[31m","description":"clean"}}`, board.TurnPermission, "Bash: rm -rf / #\x1b[31m", ""},
		{`{"hook_event_name":"PermissionRequest","tool_name":"Write","tool_input":{"file_path":"/a","content":"x"}}`, board.TurnPermission, "Write: /a", ""},
		{`{"hook_event_name":"PermissionRequest","tool_name":"Odd","tool_input":{"command":["a"]}}`, board.TurnPermission, "Odd", ""},
		{`{"hook_event_name":"PreToolUse","tool_name":"AskUserQuestion","tool_input":{"questions":[{"question":"Which one?"},{"question":"Why?"}]}}`, board.TurnQuestion, "Which one?", ""},
		{`{"hook_event_name":"PermissionRequest","tool_name":"AskUserQuestion","tool_input":{"questions":[{"question":"Which one?"}]}}`, board.TurnQuestion, "Which one?", ""},
		{`{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}`, board.TurnBusy, "", ""},
		{`{"hook_event_name":"PostToolUse","tool_name":"Bash"}`, board.TurnBusy, "", ""},
		{`{"hook_event_name":"Notification","notification_type":"permission_prompt","message":"Claude needs your permission"}`, board.TurnPermission, "Claude needs your permission", ""},
		{`{"hook_event_name":"SessionStart","source":"startup"}`, board.TurnIdle, "", ""},
		{`{"hook_event_name":"Stop","stop_hook_active":false}`, board.TurnIdle, "", ""},
		{`{"hook_event_name":"StopFailure","error":"rate_limit","error_details":"resets 3pm"}`, board.TurnLimit, "resets 3pm", ""},
		{`{"hook_event_name":"StopFailure","error":"server_error"}`, board.TurnIdle, "", ""},
		{`{"type":"agent-turn-complete","thread-id":"t","input-messages":["first","do it"],"last-assistant-message":"done"}`, board.TurnIdle, "", "do it"},
		{`{"hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"` + strings.Repeat("x", 1000) + `"}}`, board.TurnPermission, "Bash: " + strings.Repeat("x", maxSaid-9) + "...", ""},
	} {
		said, ok := turnOf([]byte(c.word))
		if !ok || said.Turn != c.turn || said.Says != c.says || (c.text != "") != (said.Heard[0] != "") || c.text != "" && said.Heard[0] != markOf(c.text) {
			t.Errorf("%.120s: %+v, %v", c.word, said, ok)
		}
	}
	for _, word := range []string{"", "{", "[]", "null", `"x"`, `{"hook_event_name":"SessionStart","source":"compact"}`, `{"hook_event_name":"Notification","notification_type":"idle_prompt"}`, `{"type":"other"}`, `{"hook_event_name":7}`} {
		if said, ok := turnOf([]byte(word)); ok {
			t.Errorf("%q says %+v", word, said)
		}
	}
}

func FuzzHookWord(f *testing.F) {
	f.Add([]byte(`{"hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"x"}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if said, _ := turnOf(raw); len(said.Says) > maxSaid || strings.ContainsAny(said.Says, "\n\r") {
			t.Errorf("%q", said.Says)
		}
	})
}

// The marks of the newest texts stay, whatever else is said.
func TestHeardTexts(t *testing.T) {
	var st turnState
	for i := range 6 {
		st = st.after(&turnState{Turn: board.TurnBusy, Heard: heardTexts{markOf(fmt.Sprint(i))}}, lease.Instant(i+1))
		st = st.after(&turnState{Turn: board.TurnIdle}, lease.Instant(i+1))
	}
	if !st.Heard.has(markOf(" 5\n")) || !st.Heard.has(markOf("2")) || st.Heard.has(markOf("1")) || st.Heard.has("") || st.At != 6 {
		t.Errorf("%+v", st)
	}
}

// says is a hook's word of a run's session, as if its program said it.
func (n *testNodeT) says(run, word string) {
	n.t.Helper()
	exe, err := os.Executable()
	must(n.t, err)
	cmd := exec.Command(exe, NoteVerb)
	cmd.Env = append(os.Environ(), "MUSTER_SECRET_FILE="+filepath.Join(n.cfg.Dir, "runs", run, fileSecret))
	cmd.Stdin = strings.NewReader(word)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		n.t.Fatalf("%s: %v: %s", word, err, out)
	}
}

// hook makes the session of a run say a hook's word, as its program would: within its environment.
func hook(file, word string) string {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return "until [ -e " + file + " ]; do sleep 0.05; done; printf '%s' '" + word + "' | " + exe + " " + NoteVerb + "\n"
}

// turn waits until the state has a session in a turn.
func (n *testNodeT) turn(run, want string) *board.Run {
	n.t.Helper()
	eventually(n.t, "turn "+want+" of "+run, func() bool { return n.fleet.run(run).Session.Turn == want })
	return n.fleet.run(run)
}

// IDL-02, SES-21: what a session's hooks say is told to the fleet as changes, by the node, and by the next life of it.
func TestTurnsAreTold(t *testing.T) {
	t.Parallel()
	n := paneNode(t)
	at := filepath.Join(t.TempDir(), "at")
	run := n.start("pane", "echo up\n"+
		hook(at+"1", `{"hook_event_name":"UserPromptSubmit","prompt":"x"}`)+
		hook(at+"2", `{"hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"make"}}`)+
		hook(at+"3", `{"hook_event_name":"PostToolUse"}`)+
		hook(at+"4", `{"hook_event_name":"Stop"}`)+"exec sleep 1000")
	n.showsLife(run)
	touch(t, at+"1")
	n.turn(run, board.TurnBusy)
	touch(t, at+"2")
	if r := n.turn(run, board.TurnPermission); r.Session.Says != "Bash: make" || !r.Session.Waiting {
		t.Errorf("%+v", r.Session)
	}
	must(t, n.Close())
	touch(t, at+"3")
	touch(t, at+"4")
	n.open()
	if r := n.turn(run, board.TurnIdle); r.Session.Silent == 0 || r.Session.Waiting {
		t.Errorf("%+v", r.Session)
	}
	if times := n.fleet.told(run, board.ReportIdle); times > 3 {
		t.Errorf("told %d times: more than changes; %q", times, n.fleet.reports(run))
	}
}

// IDL-03: of a pane without hooks its silence is told, since when its log has it.
func TestQuietPaneIsIdle(t *testing.T) {
	t.Parallel()
	n := paneNode(t)
	run := n.start("pane", "echo up; exec sleep 1000")
	n.showsLife(run)
	must(t, n.Close())
	hour := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(filepath.Join(n.cfg.Dir, "runs", run, fileLog), hour, hour))
	n.open()
	r := n.turn(run, board.TurnIdle)
	if silent := time.Duration(r.Claimed-r.Session.Silent) * time.Millisecond; silent != 0 { // never before its claim (M-02)
		t.Errorf("silent since %v before its claim", silent)
	}
}
