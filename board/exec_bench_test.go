package board

import (
	"fmt"
	"testing"
)

// BenchmarkExecEvent is a person's event as the executor decides it: who may,
// the request's id, the workflow's step, what is written. What it costs must not
// depend on how many cards there are (goal P7).
func BenchmarkExecEvent(b *testing.B) {
	for _, cards := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("%d-cards", cards), func(b *testing.B) {
			w, id := filled(b, cards, 0)
			args := []byte(`{"card":"` + id + `","event":"comment","payload":{"text":"a word of two hundred bytes or so, as people write them under a card when they have looked at what a session did, and say what is still missing before it can be done, and by whom, and when"}}`)
			env := w.env()
			req := &Request{ID: ReqID(GetFleet(w.v), w.v.Seq(), "bench"), Actor: Actor{Kind: ActorPerson, Name: "ann@atlas", Node: "n-atlas"}, Verb: VEvent, Args: args}
			size := 0
			b.ReportAllocs()
			for b.Loop() {
				txn, res := Exec(w.v, req, env)
				if res.Err != nil {
					b.Fatal(res.Err)
				}
				size = txn.Size()
			}
			b.ReportMetric(float64(size), "B-written/op")
		})
	}
}
