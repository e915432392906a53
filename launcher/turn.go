package launcher

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode"

	"muster/board"
	"muster/board/lease"
)

// turnState is what a session told of its turns, by its program's hooks. Its keeper has it: it lives as long as the
// session, outlives every node, and needs no file that somebody watches.
type turnState struct {
	Turn  string        `json:"turn"`            // board.Turn...
	Says  string        `json:"says,omitempty"`  // what it asks, or what limit it is at
	Until int64         `json:"until,omitempty"` // end of that limit, ms since the epoch; 0: not known
	At    lease.Instant `json:"at,omitempty"`    // when, by the keeper's clock
	Ends  bool          `json:"ends,omitempty"`  // its program tells the ends of turns only
	Heard heardTexts    `json:"heard,omitzero"`  // marks of the texts that it took last, newest first
}

// heardTexts are a few: a node that asks typed one of them.
type heardTexts [4]string

func (h heardTexts) has(mark string) bool { return mark != "" && slices.Contains(h[:], mark) }

// after is the state after another word of the session. What is not said of a turn leaves it.
func (t turnState) after(said *turnState, now lease.Instant) turnState {
	if m := said.Heard[0]; m != "" && m != t.Heard[0] {
		copy(t.Heard[1:], t.Heard[:])
		t.Heard[0] = m
	}
	if said.Turn != "" && (said.Ends || said.Turn != t.Turn || said.Says != t.Says || said.Until != t.Until) {
		t.Turn, t.Says, t.Until, t.At, t.Ends = said.Turn, said.Says, said.Until, now, said.Ends
	}
	return t
}

// markOf names a text by what a program shows of it, whatever it makes of its spaces: a prompt is told as it was taken.
func markOf(text string) string {
	sum := sha256.Sum256([]byte(strings.Join(strings.FieldsFunc(text, unicode.IsSpace), " ")))
	return hex.EncodeToString(sum[:12])
}

// maxSaid bounds what is passed on of a session's question, in bytes.
const maxSaid = 300

// hookWord is the word of a hook, as far as anything of it is looked at: of Claude Code on standard input, of Codex's
// `notify` as an argument.
type hookWord struct {
	Event        string `json:"hook_event_name"`
	Prompt       string `json:"prompt"`
	Tool         string `json:"tool_name"`
	Notification string `json:"notification_type"`
	Source       string `json:"source"`
	Message      string `json:"message"`
	Error        string `json:"error"`
	Details      string `json:"error_details"`
	Input        struct {
		Command     string `json:"command"`
		Path        string `json:"file_path"`
		URL         string `json:"url"`
		Description string `json:"description"`
		Questions   []struct {
			Question string `json:"question"`
		} `json:"questions"`
	} `json:"tool_input"`

	Type     string   `json:"type"` // of Codex
	Messages []string `json:"input-messages"`
}

// turnOf reads a hook's word; false when it says nothing of a turn.
func turnOf(raw []byte) (said turnState, ok bool) {
	var w hookWord
	if err := json.Unmarshal(raw, &w); err != nil {
		if _, another := errors.AsType[*json.UnmarshalTypeError](err); !another { // a member of another kind is not looked at
			return said, false
		}
	}
	switch w.Event {
	case "SessionStart":
		if w.Source == "compact" { // in the middle of a turn
			return said, false
		}
		said.Turn = board.TurnIdle
	case "UserPromptSubmit":
		said.Turn, said.Heard[0] = board.TurnBusy, markOf(w.Prompt)
	case "PreToolUse", "PermissionRequest":
		said.Turn = board.TurnBusy
		if w.Event == "PermissionRequest" {
			said.Turn, said.Says = board.TurnPermission, w.asksFor()
		}
		if len(w.Input.Questions) > 0 {
			said.Turn, said.Says = board.TurnQuestion, w.Input.Questions[0].Question
		}
	case "PostToolUse", "PostToolUseFailure", "PermissionDenied":
		said.Turn = board.TurnBusy
	case "Notification":
		if w.Notification != "permission_prompt" {
			return said, false
		}
		said.Turn, said.Says = board.TurnPermission, w.Message
	case "Stop":
		said.Turn = board.TurnIdle
	case "StopFailure":
		said.Turn = board.TurnIdle
		if w.Error == "rate_limit" {
			said.Turn, said.Says = board.TurnLimit, w.Details
		}
	case "":
		if w.Type != "agent-turn-complete" {
			return said, false
		}
		said.Turn, said.Ends = board.TurnIdle, true
		if n := len(w.Messages); n > 0 {
			said.Heard[0] = markOf(w.Messages[n-1])
		}
	default:
		return said, false
	}
	said.Says = shortText(said.Says)
	return said, true
}

// asksFor says in one line what a tool is to do.
func (w *hookWord) asksFor() string {
	for _, s := range []string{w.Input.Command, w.Input.Path, w.Input.URL, w.Input.Description} {
		if s != "" {
			return w.Tool + ": " + s
		}
	}
	return w.Tool
}

// shortText is a text of a program as one line of a bounded length.
func shortText(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	if len(s) <= maxSaid {
		return s
	}
	return strings.ToValidUTF8(s[:maxSaid-3], "") + "..."
}
