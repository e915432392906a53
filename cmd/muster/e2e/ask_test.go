package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
)

// do asks through one machine, and goes on through the others under the same id
// while that one cannot be reached.
func (f *fleet) do(m *machine, verb string, args any) map[string]any {
	f.t.Helper()
	data, err := f.try(m, verb, args, f.mint(m))
	if err != nil {
		f.t.Fatalf("%s: %v", verb, err)
	}
	return data
}

func (f *fleet) mint(m *machine) string {
	for _, x := range append([]*machine{m}, f.machines...) {
		if id, err := api.Decode[string](x.api.Get(context.Background(), "/v1/id", nil)); err == nil && id != "" {
			return id
		}
	}
	f.t.Error("no node gives a request id")
	return ""
}

// try has one request executed, whatever it takes, through whoever answers.
func (f *fleet) try(m *machine, verb string, args any, id string) (map[string]any, error) {
	return f.tryFrom(m, verb, args, id, false)
}

// tryFrom is try of a request of which a copy may be out already.
func (f *fleet) tryFrom(m *machine, verb string, args any, id string, retry bool) (map[string]any, error) {
	deadline := time.Now().Add(patience)
	for i := 0; ; i++ {
		via := m
		if i > 0 {
			via = f.machines[(indexOf(f.machines, m)+i)%len(f.machines)]
		}
		a, err := via.api.Do(context.Background(), verb, args, id, retry)
		if err == nil {
			out := map[string]any{}
			_ = json.Unmarshal(a.Data, &out)
			return out, nil
		}
		var e *board.Error
		if errors.As(err, &e) && e.Code != board.Unavailable && e.Code != board.UnknownOutcome {
			return nil, err
		}
		retry = true
		if time.Now().After(deadline) {
			return nil, err
		}
	}
}

func indexOf(list []*machine, m *machine) int {
	for i := range list {
		if list[i] == m {
			return i
		}
	}
	return 0
}

func (f *fleet) apply(lease string) {
	f.t.Helper()
	f.do(f.machines[0], board.VBoardApply, board.BoardApply{Board: "default", YAML: strings.Replace(shell, "LEASE", lease, 1)})
}

// add files a card that runs a script.
func (f *fleet) add(m *machine, title, script string, more func(*board.CardAdd)) string {
	f.t.Helper()
	return f.do(m, board.VCardAdd, cardAdd(title, script, more))["id"].(string)
}

func cardAdd(title, script string, more func(*board.CardAdd)) board.CardAdd {
	who := "sh"
	a := board.CardAdd{Board: "default", CardFields: board.CardFields{Title: &title, Body: &script, Assignee: &who}}
	if more != nil {
		more(&a)
	}
	return a
}

func (m *machine) card(id string) (api.CardDetail, error) {
	return api.Decode[api.CardDetail](m.api.Get(context.Background(), "/v1/cards/"+id, nil))
}

func (m *machine) cards() ([]api.Card, error) {
	return api.Decode[[]api.Card](m.api.Get(context.Background(), "/v1/cards", url.Values{"all": {"true"}}))
}

func (m *machine) runs(card string) ([]api.Run, error) {
	return api.Decode[[]api.Run](m.api.Get(context.Background(), "/v1/cards/"+card+"/runs", nil))
}

func client(data string) *api.Client {
	return &api.Client{Socket: filepath.Join(data, "muster.sock"), Timeout: 20 * time.Second}
}
