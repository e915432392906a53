package board

import (
	"fmt"
	"strings"
	"testing"
)

// M-17, M-37: a delivery is an order of the node that has the session, acknowledged through the log; then it is gone, and
// a second answer changes nothing. What may have been typed is never ordered again.
func TestDeliveryIsAcknowledged(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	run := f.launchedOn(card)
	f.pane(run)
	f.send(run, "one")
	f.send(card, "two")
	f.send(card, "three")
	list := f.deliverOrders()
	if len(list) != 3 {
		t.Fatalf("orders %+v", list)
	}
	if res := f.do(Request{Actor: Actor{Kind: ActorNode, Node: borea}, Verb: VDelivered, Journal: "j-borea", Number: 1}, Delivered{Order: list[0].ID, State: "delivered"}); res.Err != nil {
		t.Fatal(res.Err)
	}
	f.wantMail(card, "message ordered "+card, "message ordered "+card, "message ordered "+card) // another node's word counts for nothing
	for i, state := range []string{"delivered", "undelivered", "unknown"} {
		for range 2 {
			if res := f.answerDelivery(list[i], state); res.Err != nil {
				t.Fatal(res.Err)
			}
		}
	}
	f.wantMail(card, "message waiting "+card, "message unknown "+card)
	if len(f.deliverOrders()) != 0 {
		t.Fatal("an answered order still stands")
	}
}

// Words that no session could be told stand in the next run's prompt, under a heading; launched, they are taken. A start
// that is refused by its machine takes nothing.
func TestMailComesWithTheNextPrompt(t *testing.T) {
	f := newFleet(t)
	card, who := f.card("x"), "agent"
	f.must(f.person(VCardEdit), CardEdit{Card: card, CardFields: CardFields{Assignee: &who}})
	if out := f.send(card, "use the blue one"); out["state"] != DeliveryWaiting {
		t.Fatalf("sent: %v", out)
	}
	run := f.start(card, atlas)
	const heading = "Not told to a session of this card before:"
	if p := f.prompt(run); !strings.Contains(p, heading) || !strings.Contains(p, "ann@atlas: use the blue one") {
		t.Fatalf("the prompt is\n%s", p)
	}
	f.report(atlas, Report{Kind: ReportTaken, Run: run})
	f.report(atlas, Report{Kind: ReportRefused, Run: run, Error: "ESTOP"})
	f.wantMail(card, "message waiting "+card)
	run = f.start(card, atlas)
	if p := f.prompt(run); !strings.Contains(p, "ann@atlas: use the blue one") {
		t.Fatalf("lost with a refused start:\n%s", p)
	}
	f.send(card, "after the claim")
	f.report(atlas, Report{Kind: ReportTaken, Run: run})
	f.report(atlas, Report{Kind: ReportLaunched, Run: run, SecretHash: hash32("s-" + run)})
	f.wantMail(card, "message waiting "+card)
	EachDelivery(f.v, card, func(d *Delivery) bool {
		if !strings.Contains(d.Text, "after the claim") {
			t.Errorf("told already: %q", d.Text)
		}
		return true
	})
}

// A delivery whose session is gone before it was told is nobody's order any more: it comes with the next prompt, and says
// when it may have been told.
func TestMailOfASessionThatIsGone(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	run := f.launchedOn(card)
	f.pane(run)
	f.send(run, "typed")
	f.send(run, "never typed")
	f.answerDelivery(f.deliverOrders()[0], "unknown")
	one := int64(1)
	f.report(atlas, Report{Kind: ReportExited, Run: run, Code: &one})
	f.wantMail(card, "message unknown "+card, "message waiting "+card)
	if len(f.deliverOrders()) != 0 {
		t.Fatal("an order for a session that is gone")
	}
	f.now += 3600_000
	p := f.prompt(f.start(card, atlas))
	if !strings.Contains(p, "(it may have been told): ann@atlas: typed\n") || !strings.Contains(p, ": ann@atlas: never typed\n") {
		t.Fatalf("the prompt is\n%s", p)
	}
}

// M-37: at most 100 deliveries a slot; the older ones leave and the next prompt says how many. It is bounded itself.
func TestDeliveriesAreBounded(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	run := f.launchedOn(card)
	f.pane(run)
	for i := range maxDeliveries + 5 {
		f.send(run, fmt.Sprintf("message %03d %s", i, strings.Repeat("x", 100)))
	}
	if n := len(f.mail(card)); n != maxDeliveries || len(f.deliverOrders()) != maxDeliveries {
		t.Fatalf("%d deliveries, %d orders", n, len(f.deliverOrders()))
	}
	text := mailText(f.v, card, "worker")
	if n := strings.Count(text, "\n- 20"); n != maxPromptList || !strings.Contains(text, "(75 older ones are left out: muster events --card "+card+")") || len(text) > maxPromptMail+1000 {
		t.Fatalf("%d lines, %d bytes:\n%s", n, len(text), text)
	}
	if !strings.Contains(text, "message 104") || strings.Contains(text, "message 074") {
		t.Fatalf("not the newest:\n%s", text)
	}
}

// M-37: when its card is finished nobody reads on; people's words that nobody read stand in an event.
func TestMailEndsWithItsCard(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	run := f.launchedOn(card)
	f.pane(run)
	f.comment(ben, card, "a notice")
	f.send(run, "words")
	f.must(by(ann, VEvent), FireEvent{Card: card, Event: "complete", Payload: map[string]any{"summary": "done"}})
	f.wantMail(card)
	if len(f.deliverOrders()) != 0 || f.v.Has(TMailbox, SlotKey(card, "worker")) {
		t.Fatal("orders or a mailbox are left")
	}
	found := ""
	CardEvents(f.v, GetCard(f.v, card), func(e *Event) bool {
		if e.Kind == "undelivered" {
			found = string(e.Payload)
		}
		return true
	})
	if found != `{"messages":1}` {
		t.Fatalf("the event of what was not told: %q", found)
	}
	if res := f.do(by(ann, VSend), Send{To: card, Text: "late"}); code(res) != Refused {
		t.Fatalf("sent to a finished card: %v", res.Err)
	}
}
