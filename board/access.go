package board

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"strings"
)

// The checks of refusals that say who may not: denials. They are counted and
// logged where they are given, by these names.
const (
	CheckToken      = "token"      // a token that is not known, has ended, or is for something else
	CheckRole       = "role"       // the role may not do that
	CheckScope      = "scope"      // a token of one board, and the request is about something else
	CheckSecret     = "secret"     // a run is not known by that secret, or not at that node
	CheckSuperseded = "superseded" // the run is over
	CheckSpeaker    = "speaker"    // for nodes or the fleet itself, or of another node's
	CheckUser       = "user"       // another user of the machine at a socket
	CheckSocket     = "socket"     // a session at its node's user's socket, or somebody else at the sessions'
)

// Denial is the check of an error that says who may not; "" of any other.
func Denial(err *Error) string {
	if err == nil || err.Code != Refused {
		return ""
	}
	switch err.Check {
	case CheckToken, CheckRole, CheckScope, CheckSecret, CheckSuperseded, CheckSpeaker, CheckUser, CheckSocket:
		return err.Check
	}
	return ""
}

// unknownSender tells that the state does not know who asked at all. The words of
// such a one are never written, not even the id of a retry: a stranger at a door
// would fill the log (invariant 23).
func unknownSender(err *Error) bool { return err.Check == CheckToken || err.Check == CheckSecret }

// authorize finds out what the sender may do, from the state only: roles are
// never taken from a request (architecture.md §6).
func (t *tx) authorize(need who) *Error {
	a := &t.req.Actor
	switch need {
	case byPlatform:
		if a.Kind != ActorPlatform {
			return Errorf(Refused, "%s is for the fleet itself", t.req.Verb).WithCheck(CheckSpeaker)
		}
		return nil
	case byNode:
		if a.Kind != ActorNode {
			return Errorf(Refused, "%s is for nodes", t.req.Verb).WithCheck(CheckSpeaker)
		}
		return nil
	}
	switch a.Kind {
	case ActorPlatform:
		return nil
	case ActorRun:
		return t.authorizeRun(need)
	case ActorPerson:
		return t.authorizePerson(need)
	}
	return Errorf(Refused, "%s is not for a %s", t.req.Verb, clip(a.Kind, 40)).WithCheck(CheckSpeaker)
}

// authorizePerson finds the role of a person: its token's, or what its node's
// socket allows. A node says who is at its door, never that it is another's.
func (t *tx) authorizePerson(need who) *Error {
	a := t.req.Actor
	n := GetNode(t, a.Node)
	if n == nil {
		return Errorf(Refused, "node %s is not in the fleet's list", clip(a.Node, 40)).WithCheck(CheckSpeaker)
	}
	role, hint := n.SocketRole(), "a manager can change it: muster node set "+n.Name+" local=manager"
	if t.req.Secret != "" {
		k := GetToken(t, HashSecret(t.req.Secret))
		if err := k.usable(t.env.Now, "manager", "member", "viewer"); err != nil {
			return err
		}
		if err := t.within(k.Board); err != nil {
			return err
		}
		role, a.Name, t.token = k.Role, k.Who(), k
		hint = "ask a manager for another token: muster token create --role manager"
	} else {
		a.Name = userOf(a.Name)
	}
	if RoleRank(role) < need.rank() {
		return Errorf(Refused, "%s: the role %q may not do that", t.req.Verb, role).WithCheck(CheckRole).WithHint("%s", hint)
	}
	t.req = t.as(Actor{Kind: ActorPerson, Role: role, Name: orElse(a.Name, "somebody") + "@" + n.Name, Node: a.Node})
	return nil
}

// rank is the least [RoleRank] of a person who may ask; 0: nobody's, and so everybody's who is known.
func (w who) rank() int {
	switch w {
	case byManager:
		return 3
	case byMember, byRun:
		return 2
	case byViewer:
		return 1
	}
	return 0
}

// RoleRank orders the roles of people: manager 3, member 2, viewer 1, none 0.
func RoleRank(role string) int {
	switch role {
	case "manager":
		return 3
	case "member":
		return 2
	case "viewer":
		return 1
	}
	return 0
}

// userOf is a name without the machine it claims to be from.
func userOf(name string) string {
	if i := strings.LastIndexByte(name, '@'); i >= 0 {
		name = name[:i]
	}
	return clip(name, 64)
}

// usable refuses a token that is not there, has ended, or is of none of the roles.
func (k *Token) usable(now int64, roles ...string) *Error {
	make := "ask a manager for: muster token create"
	switch {
	case k == nil:
		return Errorf(Refused, "this token is not known here: it was revoked, used up, has ended, or is of another fleet").WithCheck(CheckToken).WithHint("%s", make)
	case k.Expires != 0 && k.Expires <= now:
		return Errorf(Refused, "this token has ended").WithCheck(CheckToken).WithHint("%s", make)
	case !contains(roles, k.Role):
		return Errorf(Refused, "this token is for the role %q, and not for that", k.Role).WithCheck(CheckToken).WithHint("%s", make)
	}
	return nil
}

// Usable is the token of a secret when its bearer may call with it at that time.
func Usable(v View, secret string, now int64) (*Token, *Error) {
	k := GetToken(v, HashSecret(secret))
	return k, k.usable(now, "manager", "member", "viewer")
}

// Who is the name of who calls with the token: the one it was made for, or the token's own.
func (k *Token) Who() string {
	if k.Name != "" {
		return k.Name
	}
	return "token:" + k.ID[:min(len(k.ID), 8)]
}

// spend counts a use of the token that asked, when its request changes something.
func (t *tx) spend() {
	if t.token == nil || len(t.out) == 0 {
		return
	}
	if k := GetToken(t, t.token.ID); k != nil { // it may have ended itself
		t.useToken(k)
	}
}

// useToken takes one of a token's uses; with the last it is gone.
func (t *tx) useToken(k *Token) {
	if k.Uses <= 0 { // without a bound
		return
	}
	if k.Uses--; k.Uses > 0 {
		t.putToken(k)
		return
	}
	t.delDue(k.Expires, DueExpire, k.ID)
	t.del(TToken, k.ID)
	t.event(nil, Event{Kind: "token_used_up", Payload: jsonOf(map[string]any{"id": k.ID[:8]})})
}

// aimed are the verbs that a token of one board may say: each names a card or a
// board by these keys. Whatever is not here is the fleet's, or could reach beyond.
var aimed = map[string]bool{VBoardApply: true, VBoardSet: true, VCardAdd: true, VCardEdit: true, VCardPut: true, VCardLink: true, VCardUnlink: true,
	VEvent: true, VStart: true, VMove: true, VForget: true, VPause: true, VResume: true, VSubscribe: true, VSend: true, VBarrier: true, VInboxAck: true}

// within refuses what a token of one board asks about another, or about the fleet.
func (t *tx) within(slug string) *Error {
	if slug == "" || t.req.Verb == VBarrier || t.req.Verb == VInboxAck {
		return nil
	}
	outside := Errorf(Refused, "%s: this token is for board %q alone", t.req.Verb, slug).WithCheck(CheckScope).WithHint("ask a manager for one of the fleet: muster token create")
	var a struct {
		Board     string   `json:"board"`
		Card      string   `json:"card"`
		To        string   `json:"to"`
		SubtaskOf string   `json:"subtask_of"`
		After     []string `json:"after"`
	}
	if !aimed[t.req.Verb] || json.Unmarshal(t.req.Args, &a) != nil {
		return outside
	}
	cards := append([]string{a.Card, a.To, a.SubtaskOf}, a.After...)
	named := 0
	for _, id := range cards {
		if id == "" {
			continue
		}
		named++
		if c := GetCard(t, id); c == nil || c.Board != slug {
			return outside
		}
	}
	pauses := t.req.Verb == VPause || t.req.Verb == VResume // of the fleet, when no board is named
	if a.Board != "" && a.Board != slug || a.Board == "" && (pauses || (named == 0 || t.req.Verb == VCardAdd) && slug != "default") {
		return outside
	}
	return nil
}

// authorizeRun takes a run's word only with its secret, and only while the run
// is current (RUN-02, M-04, invariant 3).
func (t *tx) authorizeRun(need who) *Error {
	a := t.req.Actor
	r := GetRun(t, a.Run)
	if r == nil || !r.opens(t.req.Secret) || a.Node != r.Node { // its session speaks through its own machine, and nobody else may for it
		return Errorf(Refused, "run %q is not known by that secret", clip(a.Run, 60)).WithCheck(CheckSecret)
	}
	c := GetCard(t, r.Card)
	if r.Gone != "" { // it dies with the session; one that went on has another secret (invariant 24)
		return superseded(r)
	}
	who := Actor{Kind: ActorRun, Role: r.Role, Name: r.ID, Node: a.Node, Run: r.ID, Agent: r.Agent.ID}
	if need == byViewer {
		t.req = t.as(who)
		return nil
	}
	if c == nil || c.Run != r.ID {
		return Errorf(Refused, "run %s is over (%s): its words are no longer taken", r.ID, orElse(r.Outcome, "superseded")).
			WithCheck(CheckSuperseded).WithHint("see: muster runs %s", r.Card)
	}
	if need != byRun {
		return Errorf(Refused, "%s is not for sessions", t.req.Verb).WithCheck(CheckRole)
	}
	t.req = t.as(who)
	return nil
}

// opens tells whether a secret is the run's; the state holds its SHA-256 only.
func (r *Run) opens(secret string) bool {
	got := sha256.Sum256([]byte(secret))
	return secret != "" && len(r.SecretHash) == len(got) && subtle.ConstantTimeCompare(got[:], r.SecretHash) == 1
}

// Opens tells whether the run's session is known by that secret at that node.
func (r *Run) Opens(node, secret string) bool { return r.Node == node && r.opens(secret) }

// as copies the request with another actor: the caller's is never changed.
func (t *tx) as(a Actor) *Request {
	r := *t.req
	r.Actor = a
	return &r
}
