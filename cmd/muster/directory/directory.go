package directory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"muster/board"
)

// Timeout is how long one word may take (AGT-19).
const Timeout = 15 * time.Second

// Service is where an organisation's agents are known: the fleet itself ([Fleet]), or a
// directory that is spoken to over HTTP ([HTTP]). Both calls may be repeated. A refusal
// is a [*Refused], an agent that the directory does not know a [*Unknown]; any other
// error tells nothing of whether the word was taken.
type Service interface {
	Declare(ctx context.Context, d Declaration) error
	End(ctx context.Context, e End) error
}

// Declaration is what a directory is told of a new agent.
type Declaration struct {
	Org            string `json:"org"`
	ID             string `json:"id"`
	Name           string `json:"name"`
	Parent         string `json:"parent,omitempty"` // id of an agent that was declared before; "" of the root
	Profile        string `json:"profile,omitempty"`
	Root           bool   `json:"root,omitempty"`
	Sponsor        string `json:"sponsor,omitempty"` // person or board on whose behalf it works
	StarterSession string `json:"starter_session,omitempty"`
	Key            string `json:"-"` // of the word: see [DeclareKey]
}

// End is what a directory is told of an agent that has ended.
type End struct {
	Org    string `json:"org"`
	ID     string `json:"id"`
	Reason string `json:"reason,omitempty"`
	Key    string `json:"-"` // of the word: see [EndKey]
}

// DeclarationOf is the word about a new agent.
func DeclarationOf(a *board.Agent) Declaration {
	d := Declaration{Org: a.Org, ID: a.ID, Name: a.Name, Parent: a.Parent, Profile: a.Profile, Root: a.Kind == board.AgentRoot, Sponsor: a.Sponsor, Key: DeclareKey(a)}
	if d.Name == "" {
		d.Name = a.Profile
	}
	if a.StarterKind == board.StarterSession {
		d.StarterSession = a.Starter
	}
	return d
}

// EndOf is the word about an agent that has ended.
func EndOf(a *board.Agent) End {
	return End{Org: a.Org, ID: a.ID, Reason: a.Why, Key: EndKey(a)}
}

// DeclareKey is the SHA-256 of what an agent stands under: organisation, stable key and id (AGT-19).
func DeclareKey(a *board.Agent) string { return sum(a.Org + "/" + a.StableKey() + "/" + a.ID) }

// EndKey is the SHA-256 of organisation, agent, "end" and the board time since which the end waits, in ms (AGT-20).
func EndKey(a *board.Agent) string {
	return sum(a.Org + "/" + a.ID + "/end/" + strconv.FormatInt(a.Ending, 10))
}

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

// Refused says that the directory does not take this word, though it may take others.
type Refused struct{ Text string }

func (e *Refused) Error() string { return e.Text }

// Unknown says that the directory does not know an agent that it was told of, or that was to be its parent.
type Unknown struct{ Agent string }

func (e *Unknown) Error() string {
	return fmt.Sprintf("the directory does not know %s", e.Agent)
}

// Fleet is the fleet as the directory of an organisation that has no other: what is told stands in the state already.
type Fleet struct{}

// Declare implements [Service].
func (Fleet) Declare(context.Context, Declaration) error { return nil }

// End implements [Service].
func (Fleet) End(context.Context, End) error { return nil }
