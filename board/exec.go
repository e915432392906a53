package board

import (
	"bytes"
	"encoding/json"
)

// handler decides one verb. It writes through t and answers with small data, or refuses.
type handler func(t *tx) (any, *Error)

// verb is one thing Exec can be asked: who may ask for it, and the handler.
type verb struct {
	who  who
	exec handler
}

// who may ask, at the least. What a run may say of which card is checked by its handler (invariant 24).
type who uint8

const (
	byManager who = iota // a person with that role
	byMember
	byViewer
	byRun      // a member, or a run within what its secret allows
	byNode     // a node of the list, about itself
	byPlatform // the leader
)

func verbOf(name string) (verb, bool) {
	switch name {
	case VFleetInit:
		return verb{byPlatform, fleetInit}, true
	case VBoardCreate:
		return verb{byManager, boardCreate}, true
	case VBoardApply:
		return verb{byManager, boardApply}, true
	case VBoardSet:
		return verb{byManager, boardSet}, true
	case VBoardArchive:
		return verb{byManager, boardArchive}, true
	case VCardAdd:
		return verb{byRun, cardAdd}, true
	case VCardEdit:
		return verb{byMember, cardEdit}, true
	case VCardPut:
		return verb{byManager, putStatus}, true
	case VCardLink:
		return verb{byMember, cardLink}, true
	case VCardUnlink:
		return verb{byMember, cardUnlink}, true
	case VEvent:
		return verb{byRun, fireEvent}, true
	case VStart:
		return verb{byManager, start}, true
	case VAdopt:
		return verb{byManager, adoptSession}, true
	case VMove:
		return verb{byManager, moveCard}, true
	case VForget:
		return verb{byManager, forgetSessions}, true
	case VTokenCreate:
		return verb{byManager, tokenCreate}, true
	case VTokenRevoke:
		return verb{byManager, tokenRevoke}, true
	case VNodeVote:
		return verb{byManager, nodeVote}, true
	case VPause:
		return verb{byManager, pause}, true
	case VResume:
		return verb{byManager, resume}, true
	case VDrain:
		return verb{byManager, drain}, true
	case VImportBegin:
		return verb{byManager, importBegin}, true
	case VImportSlice:
		return verb{byManager, importSlice}, true
	case VImportEnd:
		return verb{byManager, importEnd}, true
	case VSubscribe:
		return verb{byViewer, subscribe}, true
	case VInboxAck:
		return verb{byViewer, inboxAck}, true
	case VSend:
		return verb{byMember, send}, true
	case VWebhook:
		return verb{byManager, webhookSet}, true
	case VNodeSet:
		return verb{byManager, nodeSet}, true
	case VNodeLabel:
		return verb{byManager, nodeLabel}, true
	}
	return agentVerb(name)
}

// agentVerb are the verbs of agents, and of who is told of them.
func agentVerb(name string) (verb, bool) {
	switch name {
	case VAgentDeclare:
		return verb{byManager, agentDeclare}, true
	case VAgentEnd:
		return verb{byManager, agentEnd}, true
	case VAgentFork:
		return verb{byManager, agentFork}, true
	case VAgentMemory:
		return verb{byManager, agentMemory}, true
	case VOrgSet:
		return verb{byManager, orgSet}, true
	case VOrgHold:
		return verb{byNode, orgHold}, true
	case VOrgLend:
		return verb{byPlatform, orgLend}, true
	case VOrgWord:
		return verb{byNode, orgWord}, true
	}
	return fleetVerb(name)
}

// fleetVerb are the verbs that people never say.
func fleetVerb(name string) (verb, bool) {
	switch name {
	case VNodeJoin:
		return verb{byNode, nodeJoin}, true
	case VNodeUp:
		return verb{byNode, nodeUp}, true
	case VNodeUpdate:
		return verb{byNode, nodeUpdate}, true
	case VReport:
		return verb{byNode, report}, true
	case VNodeRemove:
		return verb{byManager, nodeRemove}, true
	case VGossip:
		return verb{byPlatform, gossipRotate}, true
	case VNodeRole:
		return verb{byPlatform, nodeRole}, true
	case VNodeState:
		return verb{byPlatform, nodeState}, true
	case VObserve:
		return verb{byPlatform, observe}, true
	case VGone:
		return verb{byPlatform, gone}, true
	case VReasons:
		return verb{byPlatform, reasons}, true
	case VDelivered:
		return verb{byNode, delivered}, true
	case VHookState:
		return verb{byPlatform, hookState}, true
	case VDue:
		return verb{byPlatform, due}, true
	case VFormat:
		return verb{byPlatform, raiseFormat}, true
	case VBarrier:
		return verb{byViewer, func(*tx) (any, *Error) { return nil, nil }}, true
	}
	return nextVerb(name)
}

// Exec turns a request into a transaction or a refusal. It is pure: see the
// package comment. An empty Txn writes nothing; a refusal of a request that is
// marked as a retry, or that comes from an outbox, writes its id or its number,
// so that a slower copy cannot succeed later (architecture.md §2).
func Exec(v View, req *Request, env *Env) (Txn, Result) {
	if res, done := earlier(v, req); done {
		return Txn{}, res
	}
	if env.Held != nil {
		env.Held.follow(v, env)
	}
	t := newTx(v, req, env)
	raw, err := t.decide()
	if err != nil && unknownSender(err) {
		return Txn{}, Result{Seq: v.Seq(), Err: err} // nobody that the fleet does not know makes it write, a retry's id included
	}
	if err != nil {
		return Refuse(v, req, env, err)
	}
	return t.finish(raw, nil)
}

// Refuse is the transaction and the answer of a request that is refused: it is
// empty unless the refusal has to be remembered.
func Refuse(v View, req *Request, env *Env, err *Error) (Txn, Result) {
	if req.Journal == "" && (req.ID == "" || !req.Retry) {
		return Txn{}, Result{Seq: v.Seq(), Err: err}
	}
	return newTx(v, req, env).finish(nil, err)
}

// decide runs the request's handler; a panic of it is a refusal (invariant 22).
func (t *tx) decide() (raw json.RawMessage, err *Error) {
	defer func() {
		if p := recover(); p != nil {
			raw, err = nil, Errorf(Internal, "%s: %v", t.req.Verb, p)
		}
	}()
	data, err := t.run()
	if err != nil {
		return nil, err
	}
	if data != nil {
		var jerr error
		if raw, jerr = json.Marshal(data); jerr != nil {
			return nil, Errorf(Internal, "%s: answer: %v", t.req.Verb, jerr)
		}
	}
	return raw, t.fits(len(raw))
}

// finish adds what tells a second copy of the request: its id, or its number.
func (t *tx) finish(raw json.RawMessage, err *Error) (Txn, Result) {
	if err != nil || len(t.out) > 0 {
		if t.req.ID != "" {
			t.remember(err, raw)
		} else {
			t.anonymous()
		}
	}
	if t.req.Journal != "" {
		t.putOutbox(&Outbox{Journal: t.req.Journal, Node: t.req.Actor.Node, Last: t.req.Number})
	}
	out := t.txn()
	if out.Empty() {
		return Txn{}, Result{Seq: t.Seq(), Data: raw, Err: err}
	}
	return out, Result{Seq: t.env.Seq, Data: raw, Err: err}
}

func (t *tx) run() (any, *Error) {
	v, ok := verbOf(t.req.Verb)
	if !ok {
		return nil, Errorf(Invalid, "unknown verb %q", t.req.Verb).WithHint("this node may be older than the one you speak to; see: muster version")
	}
	if err := t.authorize(v.who); err != nil {
		return nil, err
	}
	data, err := v.exec(t)
	if err == nil {
		t.spend()
	}
	return data, err
}

// fits holds the bounds of one transaction, with room for what [tx.finish] adds
// (an answer of so many bytes among it): beyond this nothing refuses it.
func (t *tx) fits(answer int) *Error {
	x := t.txn()
	if n := len(x.Ops); n > maxOps {
		return Errorf(Exhausted, "%s would change %d records at once; the bound is %d", t.req.Verb, n, maxOps).WithHint("do it in smaller steps")
	}
	if n := x.Size() + answer; n > maxBytes {
		return Errorf(Exhausted, "%s would write %d bytes at once; the bound is %d", t.req.Verb, n, maxBytes).WithHint("keep large text in files")
	}
	return nil
}

// args decodes the request's args strictly: an unknown key is an error.
func args[T any](t *tx) (T, *Error) {
	var a T
	if len(t.req.Args) == 0 {
		return a, nil
	}
	d := json.NewDecoder(bytes.NewReader(t.req.Args))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return a, Errorf(Invalid, "%s: %v", t.req.Verb, err)
	}
	return a, nil
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
