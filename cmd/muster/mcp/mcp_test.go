package mcp

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/api/apitest"
)

const workflow = "version: 1\nname: default\nextends: default\nparams: {review: false}\nprofiles:\n  sh: {harness: command, args: [true]}\n"

// agent is a client of the protocol that speaks to a server of ours, as an agent's program does.
type agent struct {
	t *testing.T
	c *sdk.ClientSession
}

func newAgent(t *testing.T, cfg Config) *agent {
	t.Helper()
	ours, theirs := io.Pipe()
	back, answers := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, cfg, ours, answers) }()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil).Connect(ctx, &sdk.IOTransport{Reader: back, Writer: theirs}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		select {
		case err := <-served:
			if err != nil {
				t.Errorf("the server ended with %v", err)
			}
		case <-time.After(20 * time.Second):
			t.Error("the server goes on although its client hung up")
		}
		cancel()
	})
	return &agent{t, c}
}

// call is what a tool answered; failed tells of a tool's error.
func (a *agent) call(name string, args any) (text string, failed bool) {
	a.t.Helper()
	r, err := a.c.CallTool(a.t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		return err.Error(), true
	}
	for _, c := range r.Content {
		if x, ok := c.(*sdk.TextContent); ok {
			text += x.Text
		}
	}
	return text, r.IsError
}

// must is the answer of a tool that has to work.
func (a *agent) must(name string, args any) map[string]any {
	a.t.Helper()
	text, failed := a.call(name, args)
	if failed {
		a.t.Fatalf("%s %v: %s", name, args, text)
	}
	m := map[string]any{}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		a.t.Fatalf("%s: %v: %s", name, err, text)
	}
	return m
}

func (a *agent) tools() []*sdk.Tool {
	a.t.Helper()
	r, err := a.c.ListTools(a.t.Context(), nil)
	if err != nil {
		a.t.Fatal(err)
	}
	return r.Tools
}

// world is a fleet with a card that is worked on.
func world(t *testing.T) (f *apitest.Fleet, dir, card, run string) {
	t.Helper()
	f, dir = apitest.New(), filepath.Join(t.TempDir(), "d")
	srv, err := f.Serve(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	f.Must(apitest.Manager(), board.VBoardApply, board.BoardApply{Board: "default", YAML: workflow})
	title, body, who := "paint it", "blue, two coats", "sh"
	card, _ = f.Must(apitest.Manager(), board.VCardAdd, board.CardAdd{Board: "default", CardFields: board.CardFields{Title: &title, Body: &body, Assignee: &who}})["id"].(string)
	return f, dir, card, f.Run(card, "s1")
}

func inSession(dir, run, secret, card string) Config {
	return Config{Session: true, Card: card, Role: "worker", Version: "test", Client: func() (*api.Client, error) {
		return &api.Client{Socket: filepath.Join(dir, "session.sock"), Auth: "Run " + run + ":" + secret, Timeout: 10 * time.Second}, nil
	}}
}

func outside(dir string) Config {
	c := &api.Client{Socket: filepath.Join(dir, "muster.sock"), Timeout: 10 * time.Second}
	return Config{Version: "test", Client: func() (*api.Client, error) { return c, nil }}
}

var sessionTools = []string{"block", "comment", "complete", "create", "decompose", "heartbeat", "list", "request_changes", "request_review", "show", "specify", "why"}

// TestToolsExplainThemselves: a session is offered what it may do and no more; every
// tool and every argument says what it is; outside a session the card must be named.
func TestToolsExplainThemselves(t *testing.T) {
	_, dir, card, run := world(t)
	for _, x := range []struct {
		name string
		cfg  Config
	}{{"session", inSession(dir, run, "s1", card)}, {"people", outside(dir)}} {
		t.Run(x.name, func(t *testing.T) {
			a, names := newAgent(t, x.cfg), []string{}
			for _, tool := range a.tools() {
				names = append(names, tool.Name)
				raw, err := json.Marshal(tool.InputSchema)
				if err != nil {
					t.Fatal(err)
				}
				var schema struct {
					Required   []string                                `json:"required"`
					Properties map[string]struct{ Description string } `json:"properties"`
				}
				if err := json.Unmarshal(raw, &schema); err != nil {
					t.Fatal(err)
				}
				if len(tool.Description) < 20 || tool.Annotations == nil {
					t.Errorf("%s says nothing of itself", tool.Name)
				}
				for k, p := range schema.Properties {
					if p.Description == "" {
						t.Errorf("%s: %s says nothing of itself", tool.Name, k)
					}
				}
				if _, takes := schema.Properties["card"]; takes && tool.Name != "events" && slices.Contains(schema.Required, "card") == x.cfg.Session {
					t.Errorf("%s: is its card required? %v", tool.Name, schema.Required)
				}
			}
			slices.Sort(names)
			if x.cfg.Session && !slices.Equal(names, sessionTools) {
				t.Errorf("%q", names)
			}
			if !x.cfg.Session {
				for _, want := range append(slices.Clone(sessionTools), "status", "attention", "unblock", "start", "cancel", "log", "dispatch", "workflow") {
					if !slices.Contains(names, want) {
						t.Errorf("there is no %s in %q", want, names)
					}
				}
			}
			if said := a.c.InitializeResult().Instructions; !strings.Contains(said, map[bool]string{true: card, false: "attention"}[x.cfg.Session]) {
				t.Errorf("instructions: %s", said)
			}
		})
	}
}

// TestSessionWorksItsCard: by tools alone, as its run, on its own card.
func TestSessionWorksItsCard(t *testing.T) {
	f, dir, card, run := world(t)
	a := newAgent(t, inSession(dir, run, "s1", card))
	if x := a.must("show", nil); x["body"] != "blue, two coats" || x["id"] != card || x["status"] != "running" {
		t.Errorf("show: %v", x)
	}
	a.must("heartbeat", map[string]any{"note": "first coat"})
	a.must("comment", map[string]any{"text": "the <first> coat & is dry"})
	made := a.must("create", map[string]any{"title": "buy paint", "body": "more blue", "labels": map[string]string{"a": "b"}})
	list := a.must("list", nil)
	if rows, _ := list["cards"].([]any); len(rows) != 2 {
		t.Errorf("list: %v", list)
	}
	if x := a.must("why", map[string]any{"card": made["card"]}); x["card"] != made["card"] || x["text"] == "" {
		t.Errorf("why: %v of %v", x, made)
	}
	if x := a.must("complete", map[string]any{"summary": "two coats"}); x["to"] != "done" {
		t.Errorf("complete: %v", x)
	}
	var said []string
	for _, r := range f.Said() {
		if r.Verb == board.VEvent {
			var e board.FireEvent
			if err := json.Unmarshal(r.Args, &e); err != nil {
				t.Fatal(err)
			}
			if e.Card != card {
				t.Errorf("%s is said of %s", e.Event, e.Card)
			}
			said = append(said, e.Event)
		}
	}
	if want := []string{"heartbeat", "comment", "complete"}; !slices.Equal(said, want) {
		t.Errorf("said %q", said)
	}
	x := newAgent(t, outside(dir)).must("show", map[string]any{"card": card})
	if text, _ := json.Marshal(x["comments"]); !strings.Contains(string(text), "coat \\u0026 is dry") {
		t.Errorf("its thread: %s", text)
	}
}

// TestToolErrorsSayWhatNext: what is refused is a tool's error with the reason, and the server goes on.
func TestToolErrorsSayWhatNext(t *testing.T) {
	f, dir, card, run := world(t)
	f.Must(apitest.Manager(), board.VBoardCreate, board.BoardCreate{Slug: "secret"})
	title := "not yours"
	other, _ := f.Must(apitest.Manager(), board.VCardAdd, board.CardAdd{Board: "secret", CardFields: board.CardFields{Title: &title}})["id"].(string)
	a := newAgent(t, inSession(dir, run, "s1", card))
	for _, x := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"show", map[string]any{"card": other}, ""},
		{"show", map[string]any{"card": "d-999"}, "no card"},
		{"list", map[string]any{"board": "secret"}, ""},
		{"comment", map[string]any{"text": ""}, "text is empty"},
		{"block", map[string]any{"reason": "x"}, "kind"},
		{"block", map[string]any{"reason": "x", "kind": "lunch"}, "kind"},
		{"complete", map[string]any{"summary": "x", "colour": "blue"}, "colour"},
		{"decompose", map[string]any{"children": []any{}}, "into what"},
		{"specify", nil, "title or a body"},
	} {
		if text, failed := a.call(x.tool, x.args); !failed || !strings.Contains(text, x.want) || strings.Contains(text, "not yours") {
			t.Errorf("%s %v: failed %v, %s", x.tool, x.args, failed, text)
		}
	}
	wrong := newAgent(t, inSession(dir, run, "guessed", card))
	if text, failed := wrong.call("complete", map[string]any{"summary": "x"}); !failed || !strings.Contains(text, "secret") {
		t.Errorf("a wrong secret: %v %s", failed, text)
	}
	a.must("complete", map[string]any{"summary": "it still works"})
}

// TestAgainUnderTheSameID: an agent that was not told calls again with the same words; the request keeps its id and is a retry.
func TestAgainUnderTheSameID(t *testing.T) {
	f, dir, card, _ := world(t)
	a := newAgent(t, outside(dir))
	words := map[string]any{"card": card, "text": "once"}
	f.Fail = board.Errorf(board.UnknownOutcome, "no answer in time: it may or may not have been done")
	before := len(f.Asked())
	if text, failed := a.call("comment", words); !failed || !strings.Contains(text, "same words") {
		t.Fatalf("%v %s", failed, text)
	}
	f.Fail = nil
	a.must("comment", words)
	a.must("comment", words)
	asked := f.Asked()[before:]
	first, second, third := asked[0], asked[len(asked)-2], asked[len(asked)-1]
	if first.ID == "" || second.ID != first.ID || !second.Retry {
		t.Errorf("the second: %q, retry %v; the first was %q", second.ID, second.Retry, first.ID)
	}
	if third.ID == first.ID || third.Retry {
		t.Errorf("a word that is said once more is another: %q %v", third.ID, third.Retry)
	}
}

// TestManagersAssistant: the whole board, by the rights of who starts it.
func TestManagersAssistant(t *testing.T) {
	f, dir, card, run := world(t)
	a := newAgent(t, outside(dir))
	if x := a.must("status", nil); x["leader"] != "atlas" {
		t.Errorf("status: %v", x)
	}
	if text, _ := a.call("workflow", nil); !strings.Contains(text, "extends: default") {
		t.Errorf("workflow: %s", text)
	}
	a.must("pause", map[string]any{"board": "default", "why": "lunch"})
	a.must("resume", map[string]any{"board": "default"})
	newAgent(t, inSession(dir, run, "s1", card)).must("block", map[string]any{"reason": "which blue?", "kind": "needs_input"})
	if text, _ := a.call("attention", nil); !strings.Contains(text, "which blue?") {
		t.Errorf("attention: %s", text)
	}
	a.must("unblock", map[string]any{"card": card, "why": "navy"})
	if x := a.must("show", map[string]any{"card": card}); x["status"] == "blocked" {
		t.Errorf("show: %v", x)
	}
	a.must("edit", map[string]any{"card": card, "title": "paint it navy", "priority": 3})
	if x := a.must("events", map[string]any{"card": card, "last": 5}); len(x["events"].([]any)) == 0 {
		t.Errorf("events: %v", x)
	}
	f.Join("lent", "viewer")
	if text, failed := a.call("cancel", map[string]any{"card": card, "why": "no"}); !failed {
		t.Errorf("a viewer's assistant cancels: %s", text)
	}
}

// TestAnswersAreBounded: an agent's context is small.
func TestAnswersAreBounded(t *testing.T) {
	text, err := textOf(strings.Repeat("ä", maxText))
	if err != nil || len(text) > maxText+100 || !strings.Contains(text, "cut here") || strings.Contains(text, "\uFFFD") {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	x := rowsOf(make([]api.Card, 250), 0)
	if len(x.Cards) != maxRows || x.More != 150 || x.Note == "" {
		t.Errorf("%d rows, %d more", len(x.Cards), x.More)
	}
}
