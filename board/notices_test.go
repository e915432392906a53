package board

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

var (
	ann = Actor{Kind: ActorPerson, Name: "ann@atlas", Node: atlas}
	ben = Actor{Kind: ActorPerson, Name: "ben@atlas", Node: atlas}
	cat = Actor{Kind: ActorPerson, Name: "cat@borea", Node: atlas}
)

// by is a request of a person.
func by(a Actor, verb string) Request { return Request{Actor: a, Verb: verb} }

// comment says something on a card and gives the answer.
func (f *fleet) comment(a Actor, card, text string) map[string]any {
	f.t.Helper()
	return f.must(by(a, VEvent), FireEvent{Card: card, Event: "comment", Payload: map[string]any{"text": text}})
}

// inbox lists a person's notices as "kind card role".
func (f *fleet) inbox(a Actor) (list []string) {
	for _, n := range Inbox(f.v, a.Address(), false) {
		list = append(list, n.Kind+" "+n.Card+" "+n.Role)
	}
	return list
}

func (f *fleet) wantInbox(a Actor, want ...string) {
	f.t.Helper()
	if got := f.inbox(a); !slices.Equal(got, want) {
		f.t.Fatalf("inbox of %s: %q, want %q", a.Name, got, want)
	}
}

// mail lists what waits for the sessions of a card, as "kind state about".
func (f *fleet) mail(card string) (list []string) {
	EachDelivery(f.v, card, func(d *Delivery) bool {
		list = append(list, d.Kind+" "+d.State+" "+d.About)
		return true
	})
	return list
}

func (f *fleet) wantMail(card string, want ...string) {
	f.t.Helper()
	if got := f.mail(card); !slices.Equal(got, want) {
		f.t.Fatalf("mail of %s: %q, want %q", card, got, want)
	}
}

// pane makes the session of a run one with a terminal: profiles with panes are not started yet.
func (f *fleet) pane(run string) {
	h := GetHeld(f.v, run)
	h.Surface = "pane"
	f.v.Apply(&Txn{Ops: []Op{{Table: THeld, Key: run, Val: marshal(h)}}})
}

// launchedOn is a run whose session is there, on a card that waits for its own word.
func (f *fleet) launchedOn(card string) string {
	f.t.Helper()
	who := "agent"
	f.must(f.person(VCardEdit), CardEdit{Card: card, CardFields: CardFields{Assignee: &who}})
	return f.launched(card)
}

func (f *fleet) prompt(run string) string {
	f.t.Helper()
	var s StartSpec
	r := GetRun(f.v, run)
	o := GetOrder(f.v, r.Node, r.Order)
	if o == nil || json.Unmarshal(o.Spec, &s) != nil {
		f.t.Fatalf("run %s has no start order", run)
	}
	return s.Prompt
}

func (f *fleet) send(to, text string) map[string]any {
	f.t.Helper()
	return f.must(by(ann, VSend), Send{To: to, Text: text})
}

func (f *fleet) answerDelivery(o *Order, state string) Result {
	f.t.Helper()
	f.num["j-"+o.Node]++
	return f.do(Request{Actor: Actor{Kind: ActorNode, Node: o.Node}, Verb: VDelivered, Journal: "j-" + o.Node, Number: f.num["j-"+o.Node]}, Delivered{Order: o.ID, State: state})
}

func (f *fleet) deliverOrders() (list []*Order) {
	EachOrder(f.v, "", func(o *Order) bool {
		if o.Kind == OrderDeliver {
			list = append(list, o)
		}
		return true
	})
	return list
}

// NOT-01: a session is subscribed to its own card as worker, and to the cards that its own waits for, from its claim
// until it is gone; people who file, comment or review are subscribed too.
func TestSubscriptionsOfACard(t *testing.T) {
	f := newFleet(t)
	parent, child := f.card("parent"), f.card("child")
	own := f.launchedOn(parent)
	waits := f.launchedOn(child)
	f.must(f.person(VCardLink), CardLink{Card: child, After: []string{parent}})
	f.comment(ben, parent, "hm")
	got := fmt.Sprint(Subscribers(f.v, GetCard(f.v, parent)))
	want := fmt.Sprint([]Subscription{{parent, "ben", RoleSubscriber}, {parent, "ann", RoleCreator}, {parent, own, RoleWorker}, {parent, waits, RoleDependency}})
	if got != want {
		t.Fatalf("subscribers %s, want %s", got, want)
	}
	f.report(atlas, Report{Kind: ReportGone, Run: waits})
	if strings.Contains(fmt.Sprint(Subscribers(f.v, GetCard(f.v, parent))), waits) {
		t.Fatal("a session that is gone is still subscribed")
	}
}

// NOT-01: who reviews is subscribed; who said --off stays off until its own word.
func TestReviewersSubscribeAndOffStays(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	run := f.launchedOn(card)
	f.must(Request{Actor: Actor{Kind: ActorRun, Run: run, Node: atlas}, Secret: "s-" + run, Verb: VEvent}, FireEvent{Card: card, Event: "request_review", Payload: map[string]any{"summary": "done"}})
	f.must(by(ben, VEvent), FireEvent{Card: card, Event: "block", Payload: map[string]any{"kind": "needs_input", "reason": "what now"}})
	if s := GetSub(f.v, card, "ben"); s == nil || s.How != "review" {
		t.Fatalf("the reviewer's subscription is %+v", s)
	}
	f.must(by(ben, VSubscribe), Subscribe{Card: card, Off: true})
	f.comment(ben, card, "I only wonder")
	f.comment(ann, card, "told to nobody")
	f.wantInbox(ben)
	f.must(by(ben, VSubscribe), Subscribe{Card: card})
	f.comment(ann, card, "told to ben")
	f.wantInbox(ben, "comment "+card+" subscriber")
}

// Whatever blocks a card is in the inbox of who filed it and who follows it, with the reason: the breaker's word too.
func TestBlocksAreInTheInbox(t *testing.T) {
	one, zero := int64(1), int64(0)
	for name, c := range map[string]struct {
		end  Report
		want string
	}{
		"the breaker":      {Report{Code: &one, Error: "out of luck"}, "exited: running -> blocked\nfailed 2 times in a row: out of luck"},
		"no verdict":       {Report{Code: &zero}, "exited: running -> blocked\n" + noVerdict},
		"a pane is closed": {Report{Code: &zero, Closed: true}, "exited: running -> blocked\nits pane was closed"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			card := f.card("x")
			f.must(by(ben, VSubscribe), Subscribe{Card: card})
			for GetCard(f.v, card).Status != "blocked" {
				f.must(f.person(VCardEdit), CardEdit{Card: card, CardFields: CardFields{Assignee: new("agent")}})
				c.end.Kind, c.end.Run = ReportExited, f.launchedOn(card)
				f.report(atlas, c.end)
			}
			for _, who := range []Actor{ann, ben} {
				list := Inbox(f.v, who.Address(), false)
				if len(list) != 1 || !strings.HasPrefix(list[0].Text, c.want) {
					t.Errorf("%s reads %+v, want one with %q", who.Name, list, c.want)
				}
			}
		})
	}
}

// NOT-02: comments, blocks, reassignment and completion are told to subscribers, never to who did them; kinds narrow it down.
func TestChangesAreToldToSubscribers(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	f.must(by(ben, VSubscribe), Subscribe{Card: card})
	f.must(by(cat, VSubscribe), Subscribe{Card: card, Kinds: []string{"complete"}})
	f.comment(ann, card, "first")
	f.must(by(ann, VEvent), FireEvent{Card: card, Event: "reassign", Payload: map[string]any{"assignee": "agent"}})
	f.must(by(ann, VEvent), FireEvent{Card: card, Event: "block", Payload: map[string]any{"kind": "needs_input", "reason": "which colour"}})
	f.must(by(ben, VEvent), FireEvent{Card: card, Event: "unblock"})
	f.must(by(ann, VEvent), FireEvent{Card: card, Event: "complete", Payload: map[string]any{"summary": "did it"}})
	f.wantInbox(ben, "comment "+card+" subscriber", "reassign "+card+" subscriber", "block "+card+" subscriber", "complete "+card+" subscriber")
	f.wantInbox(cat, "complete "+card+" subscriber")
	f.wantInbox(ann, "unblock "+card+" creator")
	if n := Inbox(f.v, "ben", false); n[2].Text != "block: ready -> blocked\nwhich colour" || n[2].Title != "x" || n[2].By != "ann@atlas" {
		t.Fatalf("the notice of the block is %+v", n[2])
	}
}

// NOT-02: the sessions of the cards that wait for a card are told of its changes, with the role dependency.
func TestSessionsAreToldOfWhatTheyWaitFor(t *testing.T) {
	f := newFleet(t)
	parent, child := f.card("parent"), f.card("child")
	waits := f.launchedOn(child)
	f.must(f.person(VCardLink), CardLink{Card: child, After: []string{parent}})
	f.comment(ben, parent, "look out")
	f.wantMail(child, "notice waiting "+parent)
	EachDelivery(f.v, child, func(d *Delivery) bool {
		if d.Run != waits {
			t.Errorf("it is for %s", d.Run)
		}
		return true
	})
}

// NOT-01: a person is a name, at whatever machine: one inbox, one subscription, and nobody is told its own word.
func TestOneInboxOnEveryMachine(t *testing.T) {
	f := newFleet(t)
	away := Actor{Kind: ActorPerson, Name: "ann@borea", Node: atlas}
	card := f.card("x") // by ann@atlas
	f.comment(ben, card, "hello")
	f.comment(away, card, "my own word")
	f.wantInbox(away, "comment "+card+" creator")
	f.wantInbox(ann, "comment "+card+" creator")
	f.must(by(away, VInboxAck), InboxAck{UpTo: EventID(Inbox(f.v, "ann", false)[0].Event)})
	f.wantInbox(ann)
	f.must(by(ann, VSubscribe), Subscribe{Card: card, Off: true})
	f.comment(ben, card, "again")
	f.wantInbox(away)
	if got := (Actor{Kind: ActorPerson, Name: Managers[1:] + "@atlas"}).Address(); got == Managers {
		t.Fatal("a person reads the mailbox of all managers by its name")
	}
}

// notify: dependants are the people and sessions of waiting cards; managers is a mailbox that each manager reads with a cursor of its own.
func TestNotifyDependantsAndManagers(t *testing.T) {
	f := newFleet(t)
	f.must(f.person(VBoardApply), BoardApply{Board: "default", YAML: commands + "on: {shout: [{do: [{notify: [managers, dependants]}]}]}\n"})
	parent := f.card("parent")
	title := "child"
	child := f.must(by(cat, VCardAdd), CardAdd{After: []string{parent}, CardFields: CardFields{Title: &title}})["id"].(string)
	f.must(by(ben, VSubscribe), Subscribe{Card: child})
	f.must(by(ann, VEvent), FireEvent{Card: parent, Event: "shout"})
	f.wantInbox(cat, "shout "+parent+" dependant")
	f.wantInbox(ben, "shout "+parent+" dependant")
	both := Inbox(f.v, "ann", true)
	if len(both) != 1 || both[0].To != Managers {
		t.Fatalf("a manager's inbox is %+v", both)
	}
	if n := Inbox(f.v, "cat@borea", true); len(n) != 1 {
		t.Fatalf("told twice, as dependant and manager: %+v", n)
	}
	f.must(by(ann, VInboxAck), InboxAck{UpTo: EventID(both[0].Event)})
	if len(Inbox(f.v, "ann", true)) != 0 || len(Inbox(f.v, "dan", true)) != 1 {
		t.Fatal("one manager's reading is every manager's")
	}
}

// NOT-03, NOT-06: a notice to a session has the board as sender, its label, a dedupe key, no queue, and says that it is
// automated; words of people may wait for the end of a turn. All of them are orders of the session's node.
func TestNoticeOfASession(t *testing.T) {
	f := newFleet(t)
	f.must(f.person(VBoardSet), BoardSet{Board: "default", Set: map[string]json.RawMessage{"label": json.RawMessage(`"Web Site"`)}})
	card := f.card("x")
	run := f.launchedOn(card)
	f.pane(run)
	f.comment(ben, card, "hello")
	f.send(run, "stop that")
	list := f.deliverOrders()
	if len(list) != 2 || list[0].Node != atlas || list[0].Run != run {
		t.Fatalf("orders %+v", list)
	}
	s := DeliverSpecOf(list[0])
	if s.From != "board:web-site" || s.FromName != "Web Site board" || s.Queue || !strings.Contains(s.Text, "automated notice") || !strings.Contains(s.Text, "nobody reads a reply") || !strings.Contains(s.Text, "hello") {
		t.Fatalf("the notice is %+v", s)
	}
	if s := DeliverSpecOf(list[1]); !s.Queue || s.Text != "ann@atlas: stop that" {
		t.Fatalf("the message is %+v", s)
	}
}

// NOT-04/M-17: keys hold kind, card and event, never a time; the same event is never two deliveries.
func TestKeysHoldNoTime(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	run := f.launchedOn(card)
	f.pane(run)
	f.comment(ben, card, "hello")
	o := f.deliverOrders()[0]
	ev := GetCard(f.v, card).LastEvent
	for ev != "" && GetEvent(f.v, ev).Kind != "comment" {
		ev = GetEvent(f.v, ev).Prev
	}
	if want := "notice-" + card + "-" + EventID(ev); DeliverSpecOf(o).Key != want {
		t.Fatalf("key %q, want %q", DeliverSpecOf(o).Key, want)
	}
}

// NOT-05: send_to_actor reaches the session of the card's run; without a run it does nothing.
func TestSendToActor(t *testing.T) {
	f := newFleet(t)
	f.must(f.person(VBoardApply), BoardApply{Board: "default", YAML: commands + "on: {nudge: [{do: [{send_to_actor: 'go on, {{ actor.name }}'}]}]}\n"})
	card := f.card("x")
	f.must(by(ben, VEvent), FireEvent{Card: card, Event: "nudge"})
	f.wantMail(card)
	run := f.launchedOn(card)
	f.pane(run)
	out := f.must(by(ben, VEvent), FireEvent{Card: card, Event: "nudge"})
	f.wantMail(card, "message ordered "+card)
	if s := DeliverSpecOf(f.deliverOrders()[0]); s.Text != "go on, ben@atlas" {
		t.Fatalf("sent %+v", s)
	}
	if fmt.Sprint(out["notified"]) != fmt.Sprintf("[map[address:%s card:%s kind:message]]", run, card) {
		t.Fatalf("the answer is %v", out)
	}
}

// NOT-08/M-20: a session on another machine is told the same commands as one beside the board: every node is a door.
func TestOneCommandFormOnEveryMachine(t *testing.T) {
	f := newFleet(t)
	f.must(Request{Actor: Platform(), Verb: VTokenCreate}, TokenCreate{ID: HashSecret("join"), Role: "node", TTL: 600})
	f.must(Request{Actor: Actor{Kind: ActorNode, Node: borea}, Verb: VNodeJoin}, NodeJoin{Secret: "join", Node: NodeUp{ID: borea, Name: "borea", Slots: 4, Journal: "j-borea"}})
	f.state[borea] = NodeOnline
	var texts []string
	for _, node := range []string{atlas, borea} {
		card, who := f.card("same"), "agent"
		f.must(f.person(VCardEdit), CardEdit{Card: card, CardFields: CardFields{Assignee: &who}})
		run := f.start(card, node)
		texts = append(texts, strings.NewReplacer(card, "CARD", GetRun(f.v, run).Agent.ID, "AGENT").Replace(f.prompt(run)))
	}
	if texts[0] != texts[1] || strings.Contains(texts[0], "--node") || !strings.Contains(texts[0], "muster comment TEXT") {
		t.Fatalf("told differently:\n%s\n---\n%s", texts[0], texts[1])
	}
}

// NOT-09: who is told is told what the card has become, wherever notify stands among the actions.
func TestNotifyRunsLast(t *testing.T) {
	f := newFleet(t)
	f.must(f.person(VBoardApply), BoardApply{Board: "default", YAML: commands + "on: {rename: [{do: [{notify: creator}, {set: {title: payload.title}}]}]}\n"})
	card := f.card("old")
	f.must(by(ben, VEvent), FireEvent{Card: card, Event: "rename", Payload: map[string]any{"title": "new"}})
	if n := Inbox(f.v, "ann", false); len(n) != 1 || n[0].Title != "new" {
		t.Fatalf("told %+v", n)
	}
}

// NOT-10: a notice has an identity of kind, card and event; one event is one notice, whatever roles its reader has.
func TestNoticesHaveAnIdentity(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	f.must(by(ann, VSubscribe), Subscribe{Card: card})
	f.must(by(ann, VSubscribe), Subscribe{Board: "default"})
	f.comment(ben, card, "one")
	f.comment(ben, card, "two")
	list := Inbox(f.v, "ann", true)
	if len(list) != 2 || list[0].ID() == list[1].ID() || list[0].ID() != "comment-"+card+"-"+EventID(list[0].Event) {
		t.Fatalf("notices %+v", list)
	}
}

const asking = "on: {nag: [{do: [{ask: {text: 'what now?', as: asked}}]}]}\n"

// NOT-10: a request made of a session stands in a list of its own until the session says something; delivering it is no answer.
func TestRequestsOfASessionStayUntilAnswered(t *testing.T) {
	f := newFleet(t)
	f.must(f.person(VBoardApply), BoardApply{Board: "default", YAML: commands + asking})
	card := f.card("x")
	run := f.launchedOn(card)
	f.pane(run)
	f.must(by(ann, VEvent), FireEvent{Card: card, Event: "nag"})
	f.comment(ben, card, "beside it")
	for _, o := range f.deliverOrders() {
		if res := f.answerDelivery(o, "delivered"); res.Err != nil {
			t.Fatal(res.Err)
		}
	}
	f.wantMail(card, "ask asked "+card)
	if a := OpenAsks(f.v, card); len(a) != 1 || a[0].Text != "what now?" {
		t.Fatalf("open requests %+v", a)
	}
	f.must(Request{Actor: Actor{Kind: ActorRun, Run: run, Node: atlas}, Secret: "s-" + run, Verb: VEvent}, FireEvent{Card: card, Event: "comment", Payload: map[string]any{"text": "going on"}})
	if a := OpenAsks(f.v, card); len(a) != 0 {
		t.Fatalf("still asked: %+v", a)
	}
}

// NOT-11: the answer says who was told, and who could not be, with the reason.
func TestAnswerSaysWhoWasTold(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	run := f.launchedOn(card)
	out := f.comment(ben, card, "hello")
	if got, want := fmt.Sprint(out["notified"]), fmt.Sprintf("[map[address:ann card:%s kind:comment]]", card); got != want {
		t.Errorf("notified %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(out["undelivered"]), fmt.Sprintf("[map[address:%s card:%s error:a headless session cannot be typed at kind:comment]]", run, card); got != want {
		t.Errorf("undelivered %s, want %s", got, want)
	}
}

// M-21: the cursor of an inbox is an event id in the state; what was read does not come back, what came after stays.
func TestInboxCursor(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	for _, s := range []string{"one", "two", "three"} {
		f.comment(ben, card, s)
	}
	list := Inbox(f.v, "ann", false)
	f.must(by(ann, VInboxAck), InboxAck{UpTo: EventID(list[1].Event)})
	f.wantInbox(ann, "comment "+card+" creator")
	f.must(by(ann, VInboxAck), InboxAck{UpTo: EventID(list[0].Event)}) // an older word does not turn it back
	if box := GetMailbox(f.v, "ann"); box.Read != list[1].Event || box.Count != 1 {
		t.Fatalf("mailbox %+v", box)
	}
	if res := f.do(by(ann, VInboxAck), InboxAck{UpTo: "99999.0"}); code(res) != Invalid {
		t.Fatalf("acknowledged what has not happened: %v", res.Err)
	}
}

// A mailbox that nobody reads stays bounded, and says how much it has lost.
func TestMailboxIsBounded(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	for i := range maxMailbox + 3 {
		f.comment(ben, card, fmt.Sprint(i))
	}
	n := 0
	f.v.Scan(TNotice, "ann/", "", func(string, []byte) bool { n++; return true })
	if box := GetMailbox(f.v, "ann"); n != maxMailbox || box.Count != maxMailbox || box.Lost != 3 {
		t.Fatalf("%d notices, mailbox %+v", n, box)
	}
}
