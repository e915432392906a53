package board

import (
	"encoding/json"
	"testing"

	"muster/board/workflow"
)

// Whatever a payload holds, Exec takes the event or refuses it: it never panics, a refusal changes nothing, and what
// is written is bounded (invariant 27).
func FuzzPayload(f *testing.F) {
	for _, p := range []string{`{}`, `{"code":1}`, `{"children":[{"title":"a"},{"title":null},7]}`, `{"kind":"needs_input","reason":["x"]}`, `{"seconds":1e308,"losses":-0.0}`,
		`{"text":{"a":{"b":[[[[]]]]}}}`, `{"turns":"many","worked":1,"waiting":null}`, `{"reset_at":99999999999999,"means":"rate_limit"}`, `{"resume_failed":true,"slot":"/../","why":"\u0000"}`,
		`{"title":"\n","body":7}`, `{"assignee":{"x":1}}`, `{"children":"abc","why":[]}`, `{"force":true,"error":"` + "\xff\xfe" + `"}`} {
		f.Add(p, uint8(3))
	}
	events := append([]string{"complete", "request_review", "request_changes", "block", "unblock", "cancel", "stop_run", "specify", "decompose", "reassign", "comment", "reopen", "reclaim", "forget", "archive"}, workflow.PlatformEvents...)
	w := newFleet(f)
	id := w.card("fuzzed")
	w.launched(id)
	f.Fuzz(func(t *testing.T, text string, which uint8) {
		var p map[string]any
		if json.Unmarshal([]byte(text), &p) != nil {
			return
		}
		for i, event := range events {
			if i%4 != int(which)%4 { // a quarter each: a try stays short
				continue
			}
			for _, who := range []Actor{Platform(), {Kind: ActorPerson, Name: "ann@atlas", Node: atlas}} {
				raw, err := json.Marshal(FireEvent{Card: id, Event: event, Payload: p})
				if err != nil {
					return
				}
				req := &Request{Actor: who, Verb: VEvent, Args: raw}
				env := &Env{Now: w.now, Seq: w.v.Seq() + 1, Workflows: w.ws, Nodes: func(string) Reading { return Reading{State: NodeOnline} }}
				txn, res := Exec(w.v, req, env)
				if res.Err != nil && (res.Err.Code == Internal || !txn.Empty()) {
					t.Fatalf("%s by %s with %q: %v, wrote %d", event, who.Kind, text, res.Err, len(txn.Ops))
				}
				if len(txn.Ops) > MaxTxnRecords || txn.Size() > MaxTxnBytes {
					t.Fatalf("%s with %q writes %d records, %d bytes", event, text, len(txn.Ops), txn.Size())
				}
			}
		}
	})
}
