package launcher

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"muster/board"
	"muster/board/workflow"
)

// preset is a spec with what a preset says of ends.
func preset(t *testing.T, name string) *Spec {
	t.Helper()
	h := workflow.Default().Harnesses[name]
	s := &Spec{Exits: map[string]string{}}
	for code, means := range h.Exit {
		s.Exits[itoa(code)] = means
	}
	for _, x := range h.Signs {
		s.Signs = append(s.Signs, board.SpecSign{Line: x.Line, Where: x.Where, In: x.In, Matches: x.Matches, Failed: x.Failed, Means: x.Means})
	}
	for _, x := range h.Final {
		s.Final = append(s.Final, x)
	}
	return s
}

func codeOf(c int64) *int64 { return &c }

const (
	claudeInit   = `{"type":"system","subtype":"init","session_id":"s-1","tools":["Bash"]}` + "\n"
	claudeResult = `{"type":"result","subtype":"success","is_error":ERR,"api_error_status":STATUS,"num_turns":1,"result":"TEXT","session_id":"s-1","permission_denials":[DENIED]}` + "\n"
)

// claudeEnd is the last line of a Claude Code session, as it wrote them.
func claudeEnd(isErr, status, text, denied string) string {
	return claudeInit + strings.NewReplacer("ERR", isErr, "STATUS", status, "TEXT", text, "DENIED", denied).Replace(claudeResult)
}

func codexEnd(message string) string {
	return `{"type":"thread.started","thread_id":"t-1"}` + "\n" + `{"type":"turn.started"}` + "\n" +
		`{"type":"error","message":"` + message + `"}` + "\n" + `{"type":"turn.failed","error":{"message":"` + message + `"}}` + "\n"
}

// HLS-08: what an end means is said by the preset: code, signs in the stream, and
// for a rate limit when it ends. The lines are those of the real programs.
func TestWhatAnEndMeans(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	must(t, err)
	now := time.Date(2026, 12, 1, 22, 30, 0, 0, berlin)
	at := func(day, hour, min int) int64 { return time.Date(2026, 12, day, hour, min, 0, 0, berlin).UnixMilli() }
	for _, c := range []struct {
		name, harness, log string
		exit               Exit
		kind, text         string
		at                 int64
		in                 time.Duration
	}{
		{name: "a script's rate limit", harness: "command", exit: Exit{Code: codeOf(75)}, kind: "rate_limit"},
		{name: "a script that is done", harness: "command", log: "rate limit\n", exit: Exit{Code: codeOf(0)}, kind: "completed"},
		{name: "a script's crash", harness: "command", exit: Exit{Code: codeOf(2)}, kind: "crash"},
		{name: "a signal", harness: "command", exit: Exit{Signal: "SIGKILL"}, kind: "crash"},
		{name: "stopped", harness: "command", exit: Exit{Signal: "SIGTERM", Stopped: true}, kind: "stopped"},
		{name: "lease", harness: "command", exit: Exit{Signal: "SIGTERM", Lapsed: true}, kind: "lease"},
		{name: "memory", harness: "command", exit: Exit{Signal: "SIGKILL", Memory: true}, kind: "memory"},
		{name: "a code nobody saw", harness: "command", kind: "crash"},

		{name: "no word", harness: "claude-code", log: claudeEnd("false", "null", "hi", ""), exit: Exit{Code: codeOf(0)}},
		{name: "speaks of limits", harness: "claude-code", log: claudeEnd("false", "null", "You've hit your limit, 429", ""), exit: Exit{Code: codeOf(0)}},
		{name: "denied", harness: "claude-code", log: claudeEnd("false", "null", "hi", `{"tool_name":"Bash","tool_input":{"command":"touch x"}}`), exit: Exit{Code: codeOf(0)},
			kind: "denied", text: `"tool_name":"Bash"`},
		{name: "429", harness: "claude-code", log: claudeEnd("true", "429", "API Error: Request rejected (429) · busy", ""), exit: Exit{Code: codeOf(1)},
			kind: "rate_limit", text: "API Error: Request rejected (429) · busy"},
		{name: "limit with clock and zone", harness: "claude-code", log: claudeEnd("true", "429", "You've hit your session limit · resets 3am (Europe/Berlin)", ""), exit: Exit{Code: codeOf(1)},
			kind: "rate_limit", text: "You've hit your session limit · resets 3am (Europe/Berlin)", at: at(2, 3, 1)},
		{name: "weekly limit", harness: "claude-code", log: claudeEnd("true", "null", "You've hit your weekly limit · resets Dec 4 at 9am (Europe/Berlin)", ""), exit: Exit{Code: codeOf(1)},
			kind: "rate_limit", text: "You've hit your weekly limit · resets Dec 4 at 9am (Europe/Berlin)", at: at(4, 9, 1)},
		{name: "limit with an event", harness: "claude-code", exit: Exit{Code: codeOf(1)},
			log:  `{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1796166000,"rateLimitType":"five_hour"}}` + "\n" + claudeEnd("true", "429", "You've hit your limit", ""),
			kind: "rate_limit", text: "You've hit your limit", at: 1796166000000},
		{name: "limit with clock and an event", harness: "claude-code", exit: Exit{Code: codeOf(1)},
			log: `{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1796166001,"rateLimitType":"five_hour"}}` + "\n" +
				claudeEnd("true", "429", "You've hit your session limit · resets 12am (Europe/Berlin)", ""),
			kind: "rate_limit", text: "You've hit your session limit · resets 12am (Europe/Berlin)", at: 1796166001000},
		{name: "old form of the limit", harness: "claude-code", log: claudeEnd("true", "null", "Claude AI usage limit reached|1796166000", ""), exit: Exit{Code: codeOf(1)},
			kind: "rate_limit", text: "Claude AI usage limit reached|1796166000", at: 1796166000000},
		{name: "a limit that passed", harness: "claude-code", exit: Exit{Code: codeOf(0)},
			log: `{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1796166000}}` + "\n" + claudeEnd("false", "null", "hi", "")},
		{name: "a limit, and another end", harness: "claude-code", log: claudeEnd("true", "429", "busy", "") + claudeEnd("true", "null", "broken", ""), exit: Exit{Code: codeOf(1)}, kind: "crash"},
		{name: "401", harness: "claude-code", log: claudeEnd("true", "401", "Failed to authenticate. API Error: 401 no", ""), exit: Exit{Code: codeOf(1)}, kind: "auth", text: "401"},
		{name: "too long", harness: "claude-code", log: claudeEnd("true", "400", "Prompt is too long", ""), exit: Exit{Code: codeOf(1)}, kind: "context", text: "Prompt is too long"},
		{name: "nothing to resume", harness: "claude-code", log: "No conversation found with session ID: 1\n" + claudeEnd("true", "null", "", ""), exit: Exit{Code: codeOf(1)},
			kind: "no_session", text: "No conversation found with session ID: 1"},
		{name: "code of its own", harness: "gemini", log: "quota 429\n", exit: Exit{Code: codeOf(53)}, kind: "turn_limit"},
		{name: "stopped by a signal of its own", harness: "claude-code", log: claudeInit, exit: Exit{Code: codeOf(143)}, kind: "stopped"},
		{name: "hangs after its result", harness: "claude-code", log: claudeEnd("false", "null", "hi", ""), exit: Exit{Code: codeOf(143), Hung: true}, kind: "hang"},
		{name: "crash with noise", harness: "claude-code", log: claudeInit + "\x1b[31m\xff{\n{}\n", exit: Exit{Code: codeOf(1)}, kind: "crash"},

		{name: "usage limit", harness: "codex", log: codexEnd("You’ve hit your usage limit. Upgrade to Pro, or try again at 11:05 PM."), exit: Exit{Code: codeOf(1)},
			kind: "rate_limit", text: "You’ve hit your usage limit. Upgrade to Pro, or try again at 11:05 PM.", at: at(1, 23, 6)},
		{name: "usage limit on another day", harness: "codex", log: codexEnd("You’ve hit your usage limit. Try again at Dec 3rd, 2026 3:05 PM."), exit: Exit{Code: codeOf(1)},
			kind: "rate_limit", text: "You’ve hit your usage limit. Try again at Dec 3rd, 2026 3:05 PM.", at: at(3, 15, 6)},
		{name: "usage limit for days", harness: "codex", log: codexEnd("You've hit your usage limit. Try again in 2 days 3 hours."), exit: Exit{Code: codeOf(1)},
			kind: "rate_limit", text: "You've hit your usage limit. Try again in 2 days 3 hours.", in: 51 * time.Hour},
		{name: "429 of an API", harness: "codex", log: codexEnd("Rate limit reached for m: Please try again in 11.054s. Visit"), exit: Exit{Code: codeOf(1)},
			kind: "rate_limit", text: "Rate limit reached for m: Please try again in 11.054s. Visit", in: 11054 * time.Millisecond},
		{name: "401 of an API", harness: "codex", log: codexEnd("unexpected status 401 Unauthorized: no"), exit: Exit{Code: codeOf(1)}, kind: "auth", text: "unexpected status 401 Unauthorized: no"},
		{name: "nothing to resume", harness: "codex", log: "Error: thread/resume: thread/resume failed: no rollout found for thread id 1\n", exit: Exit{Code: codeOf(1)},
			kind: "no_session", text: "Error: thread/resume: thread/resume failed: no rollout found for thread id 1"},
	} {
		t.Run(c.harness+"/"+c.name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.WriteFile(filepath.Join(dir, fileLog), []byte(c.log), 0o600))
			c.exit.Started = true
			spec := preset(t, c.harness)
			var m Meaning
			if got := meaningAt(dir, spec, &c.exit, now); got != nil {
				m = *got
			}
			m.rough = false
			if want := (Meaning{Kind: c.kind, Text: c.text, ResetAt: c.at, ResetIn: c.in.Milliseconds()}); m != want {
				t.Errorf("means %+v\nwant  %+v", m, want)
			}
		})
	}
}

// A line longer than what is read at first is found whole, and of a log of any
// size only its end is read.
func TestMeaningOfALongLine(t *testing.T) {
	spec := preset(t, "claude-code")
	for _, size := range []int{meansTail / 2, meansTail * 3, meansMost * 2} {
		dir := t.TempDir()
		text := strings.Repeat("x", size)
		must(t, os.WriteFile(filepath.Join(dir, fileLog), []byte("first\n"+claudeEnd("true", "429", text, "")), 0o600))
		m := meaning(dir, spec, &Exit{Started: true, Code: codeOf(1)})
		want := "rate_limit"
		if size > meansMost {
			want = "crash"
		}
		if m == nil || m.Kind != want || len(m.Text) > meansText+8 {
			t.Errorf("%d bytes mean %.60v, want %s", size, m, want)
		}
	}
}

// What is no program's time is no reset, and one that is past or years away is not believed.
func TestResetOfALimit(t *testing.T) {
	now := time.Date(2026, 12, 31, 22, 30, 0, 0, time.UTC)
	ms := func(d time.Duration) int64 { return now.Add(d).UnixMilli() }
	for _, c := range []struct {
		groups map[string]string
		at, in int64
	}{
		{map[string]string{"reset_at": "1798760000"}, 1798760000000, 0},
		{map[string]string{"reset_at": "1798760000123"}, 1798760000123, 0},
		{map[string]string{"reset_at": "2026-12-31T23:00:00Z"}, ms(30 * time.Minute), 0},
		{map[string]string{"reset_at": "2026-12-31T22:00:00Z"}, 0, 0},
		{map[string]string{"reset_at": "4000000000"}, 0, 0},
		{map[string]string{"reset_at": "soon"}, 0, 0},
		{map[string]string{"reset_in": "90"}, 0, 90_000},
		{map[string]string{"reset_in": "1h20m"}, 0, 4_800_000},
		{map[string]string{"reset_in": "1 week"}, 0, 7 * 86400_000},
		{map[string]string{"reset_in": "1e300 days"}, 0, 0},
		{map[string]string{"reset_clock": "3 a.m."}, ms(4*time.Hour + 31*time.Minute), 0},
		{map[string]string{"reset_clock": "22:30"}, ms(time.Minute), 0},
		{map[string]string{"reset_clock": "22:30:20"}, ms(20 * time.Second), 0},
		{map[string]string{"reset_clock": "22:10"}, 0, 0}, // over
		{map[string]string{"reset_clock": "21:20"}, ms(22*time.Hour + 51*time.Minute), 0},
		{map[string]string{"reset_clock": "Jan 2, 3:04 PM"}, ms(40*time.Hour + 35*time.Minute), 0},
		{map[string]string{"reset_clock": "3am", "reset_zone": "Nowhere/At_All"}, 0, 0},
		{map[string]string{"reset_clock": "noonish"}, 0, 0},
	} {
		if at, in := resetOf(c.groups, now); at != c.at || in != c.in {
			t.Errorf("%v: at %d, in %d; want %d, %d", c.groups, at, in, c.at, c.in)
		}
	}
}

// A preset reaches the launcher whole.
func TestSignsHaveTheSameFields(t *testing.T) {
	a, b := reflect.TypeFor[workflow.Sign](), reflect.TypeFor[board.SpecSign]()
	if a.NumField() != b.NumField() {
		t.Errorf("a sign has %d fields in a workflow and %d in an order", a.NumField(), b.NumField())
	}
}
