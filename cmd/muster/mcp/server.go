package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"muster/board"
	"muster/cmd/muster/api"
)

// Config is who an agent acts as.
type Config struct {
	// Client reaches the node; it is asked for each call, because a session's secret changes.
	Client  func() (*api.Client, error)
	Session bool   // it is one: its card is known, and it sees its board only
	Card    string // of a session
	Role    string // of a session
	Board   string // that is meant when none is named
	Version string
}

// Serve answers one client until it hangs up or ctx ends.
func Serve(ctx context.Context, cfg Config, in io.ReadCloser, out io.WriteCloser) error {
	s, err := newServer(cfg)
	if err != nil {
		return err
	}
	err = s.sdk.Run(ctx, &sdk.IOTransport{Reader: in, Writer: out})
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return err
}

const (
	CallTime = 50 * time.Second // of one call: less than clients wait for a tool
	lookNode = 300 * time.Millisecond
	maxText  = 60_000 // bytes of one answer: more would fill the agent's context
	maxRows  = 100
)

// server is one client's.
type server struct {
	cfg Config
	sdk *sdk.Server
	err error // of a tool that cannot be described: a defect

	mu   sync.Mutex
	open map[[sha256.Size]byte]string // ids of requests whose outcome is not known, by their words
}

func newServer(cfg Config) (*server, error) {
	s := &server{cfg: cfg, open: map[[sha256.Size]byte]string{}}
	s.sdk = sdk.NewServer(&sdk.Implementation{Name: "muster", Title: "muster, a board of work", Version: cfg.Version}, &sdk.ServerOptions{Instructions: s.instructions()})
	s.cardTools()
	s.wordTools()
	if !cfg.Session {
		s.boardTools()
		s.managerTools()
	}
	return s, s.err
}

func (s *server) instructions() string {
	if !s.cfg.Session {
		return "muster is a board of work: cards are worked by agents on a fleet of machines. These tools act with your user's rights, on board " + s.boardOf("") +
			" unless another is named. Begin with status and attention; why explains any card that does not move. Ask a person before you stop, cancel or archive work."
	}
	end := "complete when the work is done, request_review when somebody is to check it, block when you cannot go on without a person or a thing"
	if s.cfg.Role == "reviewer" {
		end = "complete when the work is good, request_changes when it is not, block when you cannot tell without a person"
	}
	return "You work on card " + s.cfg.Card + " of a muster board, in one run. A tool without a card means yours. End your work with exactly one of these: " + end +
		". Work that is not ended by a word counts as failed. Say heartbeat with a line of news when something takes long. comment is for people and for who comes after you."
}

func (s *server) boardOf(name string) string {
	for _, b := range []string{name, s.cfg.Board} {
		if b != "" {
			return b
		}
	}
	return "default"
}

// hints tell a client what a tool does to the world.
type hints int

const (
	reads hints = iota
	writes
	ends // takes work away or ends it: clients ask a person first
)

// tool offers one. In outside a session every tool that takes a card must be told which.
func tool[In any](s *server, name, about string, h hints, run func(ctx context.Context, in In) (any, error)) {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		s.err = errors.Join(s.err, fmt.Errorf("tool %s: %w", name, err))
		return
	}
	if card := schema.Properties["card"]; card != nil && !s.cfg.Session && !slices.Contains(schema.Required, "card") {
		card.Description, schema.Required = "the card's id, as d-12", append(schema.Required, "card")
	}
	no, destroys := false, h == ends
	sdk.AddTool(s.sdk, &sdk.Tool{Name: name, Description: about, InputSchema: schema,
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: h == reads, DestructiveHint: &destroys, OpenWorldHint: &no}},
		func(ctx context.Context, _ *sdk.CallToolRequest, in In) (*sdk.CallToolResult, any, error) {
			ctx, cancel := context.WithTimeout(ctx, CallTime)
			defer cancel()
			x, err := run(ctx, in)
			if err != nil {
				return nil, nil, said(err)
			}
			text, err := textOf(x)
			if err != nil {
				return nil, nil, err
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil, nil
		})
}

// textOf is an answer as an agent reads it: text as it is, all else as JSON.
func textOf(x any) (string, error) {
	text, ok := x.(string)
	if !ok {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(x); err != nil {
			return "", err
		}
		text = strings.TrimSuffix(b.String(), "\n")
	}
	if len(text) <= maxText {
		return text, nil
	}
	cut := text[:maxText]
	for !utf8.ValidString(cut) {
		cut = cut[:len(cut)-1]
	}
	return fmt.Sprintf("%s\n[cut here: %d bytes more; ask for less]", cut, len(text)-len(cut)), nil
}

// said is an error as an agent reads it: what is wrong, and what to do.
func said(err error) error {
	var e *board.Error
	if !errors.As(err, &e) {
		return err
	}
	text := e.Message
	if e.Check != "" {
		text += " [" + e.Check + "]"
	}
	switch {
	case e.Code == board.UnknownOutcome:
		text += "\nIt may or may not have been done. Call the tool again with the same words: it is then done once, if it was not."
	case e.Hint != "":
		text += "\nHint: " + e.Hint
	}
	return errors.New(text)
}

// card is the one that is meant.
func (s *server) card(named string) (string, error) {
	switch {
	case named != "":
		return named, nil
	case s.cfg.Card != "":
		return s.cfg.Card, nil
	}
	return "", errors.New("which card? give its id, as d-12; list shows them")
}

// patiently asks until the node is there: it may be starting anew.
func (s *server) patiently(ctx context.Context, ask func(*api.Client) (*api.Answer, error)) (*api.Answer, error) {
	for {
		c, err := s.cfg.Client()
		if err != nil {
			return nil, err
		}
		a, err := ask(c)
		if !errors.Is(err, &board.Error{Code: board.Unavailable, Check: "no_node"}) {
			return a, err
		}
		select {
		case <-ctx.Done():
			return a, err
		case <-time.After(lookNode):
		}
	}
}

// get reads what a path holds.
func get[T any](ctx context.Context, s *server, path string, q url.Values) (T, error) {
	return api.Decode[T](s.patiently(ctx, func(c *api.Client) (*api.Answer, error) { return c.Get(ctx, path, q) }))
}

// done is what came of a request.
type done struct {
	Card    string `json:"card,omitempty"`
	From    string `json:"from,omitempty"`
	To      string `json:"to,omitempty"`
	Run     string `json:"run,omitempty"`
	Machine string `json:"machine,omitempty"`
	Created any    `json:"created,omitempty"` // ids of cards
	Done    bool   `json:"done"`
}

// do has a request executed once, also when an agent asks again because it was not told.
func (s *server) do(ctx context.Context, verb string, args any) (any, error) {
	words, err := json.Marshal([]any{verb, args})
	if err != nil {
		return nil, err
	}
	key := sha256.Sum256(words)
	s.mu.Lock()
	id := s.open[key]
	s.mu.Unlock()
	again := id != ""
	a, err := s.patiently(ctx, func(c *api.Client) (*api.Answer, error) {
		if id == "" {
			var err error
			if id, err = c.Mint(ctx); err != nil {
				return nil, err
			}
		}
		return c.Do(ctx, verb, args, id, again)
	})
	s.mu.Lock()
	delete(s.open, key)
	if e := new(board.Error); errors.As(err, &e) && e.Code == board.UnknownOutcome {
		s.open[key] = id
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	var r struct {
		ID       string `json:"id"`
		From     string `json:"from"`
		To       string `json:"to"`
		Run      string `json:"run"`
		Machine  string `json:"machine"`
		Children any    `json:"children"`
	}
	if json.Unmarshal(a.Data, &r) != nil {
		return done{Done: true}, nil // what it answered is no object
	}
	return done{Card: r.ID, From: r.From, To: r.To, Run: r.Run, Machine: r.Machine, Created: r.Children, Done: true}, nil
}

// event fires an event of the workflow on a card.
func (s *server) event(ctx context.Context, card, event string, payload map[string]any, why string) (any, error) {
	id, err := s.card(card)
	if err != nil {
		return nil, err
	}
	return s.do(ctx, board.VEvent, board.FireEvent{Card: id, Event: event, Payload: payload, Why: why})
}
