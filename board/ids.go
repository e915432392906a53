package board

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// Bounds of the table of request ids (architecture.md §2).
const (
	MaxRequestIDs = 200_000
	RequestIDTime = 24 * 60 * 60 * 1000 // ms of board time

	evictAtOnce = 16        // ids that one request drops, so that not every request does
	evictEarly  = 60 * 1000 // ms before their time that ids are dropped together with those whose time it is
	walkAtOnce  = 64        // events that one request reads to find them

	// What is left of a transaction's bounds when its request's own outcome, a
	// row of the table and what it drops are written with it.
	maxOps   = MaxTxnRecords - 2*evictAtOnce - 4
	maxBytes = MaxTxnBytes - 16<<10
)

// CheckBelow is the check of a first try whose id lies below the horizon: it was
// certainly not executed; whoever still waits mints a new id.
const CheckBelow = "id_below_horizon"

// ReqID makes the id of a request: era, the highest Seq its node has applied or
// been told, and random text.
func ReqID(f *Fleet, seq uint64, random string) string { return ReqIDIn(f.EraText(), seq, random) }

// ReqIDIn is [ReqID] for who knows the fleet's [Fleet.EraText].
func ReqIDIn(era string, seq uint64, random string) string {
	return era + "." + strconv.FormatUint(seq, 10) + "." + random
}

// EraText is the era in a request id: its number and its random half.
func (f *Fleet) EraText() string { return strconv.FormatUint(f.Era, 10) + "-" + f.EraTag }

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
	b := make([]byte, 0, 3+len(req.Actor.Kind)+len(req.Actor.Run)+len(req.Verb)+len(req.Args))
	for _, s := range [...]string{req.Actor.Kind, req.Actor.Run, req.Verb} {
		b = append(append(b, s...), 0)
	}
	sum := sha256.Sum256(append(b, req.Args...))
	return sum[:16]
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
	if f != nil && era == f.EraText() && seq >= GetIDs(v).Horizon && seq <= v.Seq() {
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
	changed := t.evict(ids)
	if ids.Oldest == 0 {
		ids.Oldest, changed = t.env.Now, true
	}
	if changed {
		t.put(TFleet, IDsKey, ids)
	}
}

// anonymous counts a transaction without a request id. These are the rarer
// ones: so the row of the table is not written by every event.
func (t *tx) anonymous() {
	ids := GetIDs(t)
	ids.Others++
	t.put(TFleet, IDsKey, ids)
}

// Count is the number of ids in the table at a Seq: every transaction since
// Walked has one, but for the others.
func (i *IDTable) Count(seq uint64) int64 {
	return max(0, int64(seq)-int64(i.Walked)-i.Others)
}

// move takes Walked up to a Seq; one says that there was an id at it, and at no other.
func (i *IDTable) move(seq uint64, one int64) {
	i.Others = max(0, i.Others-int64(seq-i.Walked)+one)
	i.Walked = seq
}

// evict drops the oldest ids beyond the bounds, some at once and not by every
// request; the work of one request stays small. It tells whether ids changed.
func (t *tx) evict(ids *IDTable) (changed bool) {
	if ids.Count(t.env.Seq) <= MaxRequestIDs+evictAtOnce && (ids.Oldest == 0 || t.env.Now-ids.Oldest <= RequestIDTime) {
		return false
	}
	old, walked := t.oldest(ids.Walked + 1)
	for _, o := range old {
		d := GetDone(t, o.id)
		if d == nil {
			ids.move(o.seq, 1)
			continue
		}
		if ids.Oldest = d.At; ids.Count(t.env.Seq) <= MaxRequestIDs && t.env.Now-d.At <= RequestIDTime-evictEarly {
			return true
		}
		t.del(TRequest, o.id)
		t.del(TReqLog, EventKey(o.seq, 0))
		ids.move(o.seq, 1)
		ids.Horizon = max(ids.Horizon, o.seq)
	}
	if len(old) == 0 && walked == t.env.Seq-1 { // none is left but this request's own
		ids.Oldest = t.env.Now
	}
	if walked > ids.Walked { // a long stretch of the fleet's own events: go on from here next time
		ids.move(walked, 0)
	}
	return true
}

// anID is a request id and the transaction that it was executed in.
type anID struct {
	seq uint64
	id  string
}

// oldest finds the oldest ids from a Seq on, in order, in a bounded walk. All
// ids up to walked are among them.
func (t *tx) oldest(from uint64) (list []anID, walked uint64) {
	start, end := EventKey(from, 0), EventKey(t.env.Seq, 0)
	walked = t.env.Seq - 1
	steps := 0
	EachEvent(t, start, func(k string, e *Event) bool {
		if k >= end {
			return false
		}
		if e.Req != "" {
			list = append(list, anID{seqOfKey(k), e.Req})
		}
		if steps++; steps == walkAtOnce || len(list) == evictAtOnce {
			walked = seqOfKey(k)
			return false
		}
		return true
	})
	t.Scan(TReqLog, "", start, func(k string, v []byte) bool {
		if k >= end || seqOfKey(k) > walked {
			return false
		}
		list = append(list, anID{seqOfKey(k), string(v)})
		return len(list) < 2*evictAtOnce
	})
	slices.SortFunc(list, func(a, b anID) int { return cmp.Compare(a.seq, b.seq) })
	if len(list) > evictAtOnce {
		list = list[:evictAtOnce]
		walked = list[len(list)-1].seq
	}
	return list, walked
}

// seqOfKey is the Seq in the key of an event.
func seqOfKey(key string) uint64 {
	seq, _ := strconv.ParseUint(key[:16], 16, 64)
	return seq
}
