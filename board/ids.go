package board

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Bounds of the table of request ids (architecture.md §2).
const (
	MaxRequestIDs   = 200_000
	RequestIDTime   = 24 * 60 * 60 * 1000 // ms of board time
	evictPerRequest = 4
	walkPerRequest  = 6
)

// CheckBelow is the check of a first try whose id lies below the horizon: it was
// certainly not executed; whoever still waits mints a new id.
const CheckBelow = "id_below_horizon"

// ReqID makes the id of a request: era, the highest Seq its node has applied or
// been told, and random text.
func ReqID(f *Fleet, seq uint64, random string) string {
	return fmt.Sprintf("%d-%s.%d.%s", f.Era, f.EraTag, seq, random)
}

// ParseReqID is the reverse of [ReqID].
func ParseReqID(id string) (era string, seq uint64, err *Error) {
	parts := strings.SplitN(id, ".", 3)
	if len(parts) != 3 || len(id) > 128 || parts[2] == "" {
		return "", 0, Errorf(Invalid, "request id %q is not one of this fleet", clip(id, 60)).WithHint("take the id that a node gave: it is printed when an outcome is unknown")
	}
	seq, perr := strconv.ParseUint(parts[1], 10, 64)
	if perr != nil {
		return "", 0, Errorf(Invalid, "request id %q is not one of this fleet", clip(id, 60))
	}
	return parts[0], seq, nil
}

// HashSecret is the stored form of a secret: SHA-256 in hex.
func HashSecret(secret string) string {
	h := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(h[:])
}

// digest covers the caller's words: not what nodes attach (actor names, placement, the retry mark).
func digest(req *Request) []byte {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00", req.Actor.Kind, req.Actor.Run, req.Verb)
	h.Write(req.Args)
	return h.Sum(nil)[:16]
}

// earlier answers a request that was executed before, or may no longer be.
func earlier(v View, req *Request) (Result, bool) {
	if req.Journal != "" {
		o := GetOutbox(v, req.Journal)
		switch {
		case req.Actor.Kind != ActorNode || o != nil && o.Node != req.Actor.Node:
			return Result{Seq: v.Seq(), Err: Errorf(Refused, "journal %s is another node's", clip(req.Journal, 40))}, true
		case o != nil && req.Number <= o.Last:
			return Result{Seq: v.Seq()}, true
		}
		return Result{}, false
	}
	if req.ID == "" {
		return Result{}, false
	}
	if d := GetDone(v, req.ID); d != nil {
		return known(d, req), true
	}
	era, seq, err := ParseReqID(req.ID)
	if err != nil {
		return Result{Seq: v.Seq(), Err: err}, true
	}
	f := GetFleet(v)
	if f != nil && era == fmt.Sprintf("%d-%s", f.Era, f.EraTag) && seq >= GetIDs(v).Horizon && seq <= v.Seq() {
		return Result{}, false
	}
	if req.Retry {
		return Result{Seq: v.Seq(), Err: Errorf(UnknownOutcome, "request %s is too old to tell whether it was done", req.ID).WithCheck(CheckBelow).WithHint("look at what it should have changed before you ask again")}, true
	}
	return Result{Seq: v.Seq(), Err: Errorf(Conflict, "request id %s is no longer taken; nothing was done", req.ID).WithCheck(CheckBelow).WithHint("ask again without --request-id")}, true
}

func known(d *Done, req *Request) Result {
	if !bytes.Equal(d.Digest, digest(req)) {
		return Result{Seq: d.Seq, Err: Errorf(Conflict, "request id %s was used for another request", req.ID).WithHint("a retry must say exactly the same; ask again without --request-id for something new")}
	}
	res := Result{Seq: d.Seq, Data: d.Data}
	if d.Code != "" {
		res.Err = &Error{Code: Code(d.Code), Check: d.Check, Message: d.Message, Hint: d.Hint}
	}
	return res
}

// remember stores the outcome of the request's id, and lets old ids go.
func (t *tx) remember(err *Error, data []byte) {
	d := &Done{Seq: t.env.Seq, At: t.env.Now, Digest: digest(t.req), Data: data}
	if err != nil {
		d.Code, d.Check, d.Message, d.Hint = string(err.Code), err.Check, err.Message, err.Hint
	}
	t.put(TRequest, t.req.ID, d)
	if t.n == 0 { // no event carries the id: a row of its own, so that it is found when it is old
		t.write(Op{Table: TReqLog, Key: EventKey(t.env.Seq, 0), Val: []byte(t.req.ID)})
	}
	ids := GetIDs(t)
	ids.Count++
	if ids.Oldest == 0 {
		ids.Oldest = t.env.Now
	}
	t.evict(ids)
	t.put(TFleet, IDsKey, ids)
}

// evict drops the oldest ids beyond the bounds, a few a request: the work of one request stays small.
func (t *tx) evict(ids *IDTable) {
	for n, walked := 0, 0; n < evictPerRequest && walked < walkPerRequest; walked++ {
		if ids.Count <= MaxRequestIDs && t.env.Now-ids.Oldest <= RequestIDTime {
			return
		}
		seq, id := t.oldestID(ids.Walked + 1)
		if seq == 0 || seq >= t.env.Seq {
			return
		}
		d := GetDone(t, id)
		if id == "" || d == nil {
			ids.Walked = seq
			continue
		}
		if ids.Oldest = d.At; ids.Count <= MaxRequestIDs && t.env.Now-d.At <= RequestIDTime {
			return
		}
		t.del(TRequest, id)
		t.del(TReqLog, EventKey(seq, 0))
		ids.Walked, ids.Horizon = seq, max(ids.Horizon, seq)
		ids.Count--
		n++
	}
}

// oldestID is the first request id at or after a Seq: on the first event of its transaction, or in TReqLog.
func (t *tx) oldestID(from uint64) (seq uint64, id string) {
	key := ""
	t.Scan(TReqLog, "", EventKey(from, 0), func(k string, v []byte) bool {
		key, id = k, string(v)
		return false
	})
	steps := 0
	EachEvent(t, EventKey(from, 0), func(k string, e *Event) bool {
		steps++
		if key != "" && k >= key {
			return false
		}
		if steps > 4*walkPerRequest { // a long stretch of the fleet's own events: go on from here next time
			key, id = k, ""
			return false
		}
		if e.Req != "" {
			key, id = k, e.Req
			return false
		}
		return true
	})
	if key == "" {
		return 0, ""
	}
	seq, _ = strconv.ParseUint(key[:16], 16, 64)
	return seq, id
}
