package board

import (
	"reflect"
	"testing"
)

// §2: a request, and its answer, come to the leader as they were sent: every field that they have.
func TestARequestCrossesTheHopWhole(t *testing.T) {
	seed := int64(0)
	var req Request
	fill(reflect.ValueOf(&req).Elem(), &seed)
	req.Actor.raw = nil
	got, err := DecodeRequest(EncodeRequest(&req))
	got.Actor.raw = nil
	if err != nil || !reflect.DeepEqual(got, req) {
		t.Errorf("sent %+v, got %+v (%v)", req, got, err)
	}
	full := Result{Seq: 7, Data: []byte(`{"a":1}`), Err: &Error{Code: Refused, Check: "c", Message: "m", Hint: "h"}}
	for _, res := range []Result{full, {Seq: 7, Data: []byte(`{}`)}, {Seq: 1}, {Err: &Error{}}} {
		if got, err := DecodeResult(EncodeResult(res)); err != nil || !reflect.DeepEqual(got, res) {
			t.Errorf("sent %+v, got %+v (%v)", res, got, err)
		}
	}
}

// Invariant 27: what a peer sends instead is an error, never a panic.
func FuzzRequestFromAPeer(f *testing.F) {
	f.Add(EncodeRequest(&Request{ID: "1-t.2.x", Verb: VEvent, Args: []byte(`{}`)}))
	f.Add(EncodeResult(Result{Seq: 3, Err: &Error{Code: Refused, Message: "no"}}))
	f.Add([]byte(`{"verb":"card.add"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := DecodeRequest(b); err == nil {
			if again, err := DecodeRequest(EncodeRequest(&r)); err != nil || again.Verb != r.Verb || again.ID != r.ID {
				t.Errorf("%+v is read again as %+v (%v)", r, again, err)
			}
		}
		if r, err := DecodeResult(b); err == nil {
			if again, err := DecodeResult(EncodeResult(r)); err != nil || again.Seq != r.Seq || (again.Err == nil) != (r.Err == nil) {
				t.Errorf("%+v is read again as %+v (%v)", r, again, err)
			}
		}
	})
}
