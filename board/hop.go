package board

import "fmt"

// A request and its result cross from node to node in the codec of the records:
// half of what JSON costs, and an older node passes over what it does not know.

type requestWire struct{ *Request }

func (r requestWire) rest() *[]byte { return new([]byte) }

func (r requestWire) fields(w *wire) {
	args := []byte(r.Args)
	str(w, 1, &r.ID)
	w.bool(2, &r.Retry)
	w.nest(3, &r.Actor)
	str(w, 4, &r.Verb)
	w.bytes(5, &args)
	str(w, 6, &r.Journal)
	w.uint(7, &r.Number)
	str(w, 8, &r.Secret)
	str(w, 9, &r.Place)
	r.Args = args
	var v Vouch
	if r.Vouch != nil {
		v = *r.Vouch
	}
	if w.nest(10, vouchWire{&v}); v.Node != "" {
		r.Vouch = &v
	}
}

type vouchWire struct{ *Vouch }

func (v vouchWire) rest() *[]byte { return new([]byte) }

func (v vouchWire) fields(w *wire) {
	str(w, 1, &v.Node)
	str(w, 2, &v.Session)
	str(w, 3, &v.Harness)
	str(w, 4, &v.Surface)
	w.int(5, &v.PID)
	str(w, 6, &v.Pane)
	str(w, 7, &v.Dir)
	w.bytes(8, &v.SecretHash)
	w.int(9, &v.Ago)
}

// EncodeRequest is a request as it goes to another node; [DecodeRequest] reads it.
func EncodeRequest(r *Request) []byte { return marshal(requestWire{r}) }

// DecodeRequest reads what [EncodeRequest] made.
func DecodeRequest(b []byte) (Request, error) {
	var r Request
	if err := unmarshal(b, requestWire{&r}); err != nil {
		return Request{}, fmt.Errorf("request: %w", err)
	}
	return r, nil
}

type resultWire struct{ *Result }

func (r resultWire) rest() *[]byte { return new([]byte) }

func (r resultWire) fields(w *wire) {
	data := []byte(r.Data)
	e, refused := Error{}, r.Err != nil
	if refused {
		e = *r.Err
	}
	w.uint(1, &r.Seq)
	w.bytes(2, &data)
	str(w, 3, &e.Code)
	str(w, 4, &e.Check)
	str(w, 5, &e.Message)
	str(w, 6, &e.Hint)
	w.bool(7, &refused)
	if r.Data = data; refused {
		r.Err = &e
	}
}

// EncodeResult is an answer as it goes to another node; [DecodeResult] reads it.
func EncodeResult(r Result) []byte { return marshal(resultWire{&r}) }

// DecodeResult reads what [EncodeResult] made.
func DecodeResult(b []byte) (Result, error) {
	var r Result
	if err := unmarshal(b, resultWire{&r}); err != nil {
		return Result{}, fmt.Errorf("result: %w", err)
	}
	return r, nil
}
