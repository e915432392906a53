package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"sync"
	"testing"

	"muster/board"
	"muster/cmd/muster/api"
)

// M-27, AGT-04, AGT-06, AGT-09: clients at three nodes mint agents of the same keys, each with an id of its own, and bump their
// generations by ending them, while the leader is killed -9 and comes back. Whoever asked for a generation was answered the same
// agent; a key has one head; no generation was given twice, and none is missing.
func TestMintsThroughThreeNodes(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, 2)
	a := f.machines[0]
	f.allOnline(a)
	f.do(a, board.VPause, board.Pause{Why: "agents are declared by hand"})
	cards := make([]string, 3)
	for i := range cards {
		title := fmt.Sprint("card ", i)
		cards[i] = f.do(a, board.VCardAdd, board.CardAdd{CardFields: board.CardFields{Title: &title}})["id"].(string)
	}
	const rounds, kills = 12, 2
	var mu sync.Mutex
	seen := map[string]string{} // card and generation -> agent
	var wg sync.WaitGroup
	at := make(chan struct{}, 3*rounds*len(cards))
	for w, m := range f.machines {
		wg.Go(func() {
			gen := make([]uint64, len(cards))
			for i := range rounds {
				for k, card := range cards {
					at <- struct{}{}
					x, err := f.try(m, board.VAgentDeclare, board.AgentDeclare{Card: card, Next: gen[k], ID: fmt.Sprintf("ag-%d%d%010d", w, k, i)}, f.mint(m))
					if err != nil {
						t.Errorf("%s: %v", card, err)
						return
					}
					gen[k] = uint64(x["generation"].(float64))
					key, id := fmt.Sprint(card, " ", gen[k]), x["id"].(string)
					mu.Lock()
					if was := seen[key]; was != "" && was != id {
						t.Errorf("%s was answered %s and %s", key, was, id)
					}
					seen[key] = id
					mu.Unlock()
					if _, err := f.try(m, board.VAgentEnd, board.AgentEnd{Agent: id}, f.mint(m)); err != nil {
						t.Errorf("end of %s: %v", id, err)
						return
					}
				}
			}
		})
	}
	for range kills {
		for range rounds * len(cards) {
			<-at
		}
		l := f.leader()
		l.kill()
		l.start()
	}
	wg.Wait()
	f.sameState()
	list, err := api.Decode[[]api.Agent](a.api.Get(context.Background(), "/v1/agents", url.Values{"all": {"true"}}))
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]map[uint64]string{}
	for _, x := range list {
		if x.Card == "" {
			continue
		}
		if of[x.Card] == nil {
			of[x.Card] = map[uint64]string{}
		}
		if was := of[x.Card][x.Generation]; was != "" {
			t.Errorf("%s: generation %d is %s and %s", x.Card, x.Generation, was, x.ID)
		}
		of[x.Card][x.Generation] = x.ID
		if was := seen[fmt.Sprint(x.Card, " ", x.Generation)]; was != x.ID {
			t.Errorf("%s: generation %d is %s, and was answered as %q", x.Card, x.Generation, x.ID, was)
		}
	}
	for _, card := range cards {
		n := uint64(len(of[card]))
		if n < rounds || slices.Max(slices.Collect(maps.Keys(of[card]))) != n {
			t.Errorf("%s: generations %v", card, slices.Sorted(maps.Keys(of[card])))
		}
		head := f.do(a, board.VAgentDeclare, board.AgentDeclare{Card: card})
		if got := uint64(head["generation"].(float64)); got != n && got != n+1 {
			t.Errorf("%s: the head is generation %d of %d", card, got, n)
		}
	}
}
