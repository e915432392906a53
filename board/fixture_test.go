package board

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

var fixtures = flag.Bool("board.fixtures", false, "write the file of records that the version of now makes, if it is not there; one that is there is never changed")

const firstRecords = "testdata/records-1.txt"

// everyRecord are all records of the state, and what travels between nodes, each with every field set.
func everyRecord() (list []record) {
	for _, r := range []record{new(Fleet), new(IDTable), new(Board), new(WorkflowDoc), new(Card), new(Run), new(Session), new(Held), new(SlotRec), new(Event),
		new(Link), new(Order), new(Node), new(Token), new(Done), new(Outbox), new(Due), new(Reason), new(Actor), new(Sub), new(Notice), new(Mailbox), new(Delivery), new(Webhook), new(Import), new(Cooldown),
		new(Agent), new(Head), new(Assignment), new(RunAgent), new(MemoryRef)} {
		seed := int64(0)
		fill(reflect.ValueOf(r).Elem(), &seed)
		list = append(list, r)
	}
	return list
}

// architecture.md §7, §9: a record that the first version wrote is read by every later one, field for field, and
// written as it was: no tag was given away, no type changed.
func TestRecordsOfTheFirstVersion(t *testing.T) {
	if _, err := os.Stat(firstRecords); os.IsNotExist(err) && *fixtures {
		var s strings.Builder
		for _, r := range everyRecord() {
			fmt.Fprintf(&s, "%s %s\n", reflect.TypeOf(r).Elem().Name(), hex.EncodeToString(marshal(r)))
		}
		req := &Request{ID: "1-tag.3.x", Retry: true, Actor: Actor{Kind: ActorPerson, Name: "ann"}, Verb: VCardAdd, Args: []byte(`{"board":"default"}`), Journal: "j", Number: 4, Secret: "s"}
		fmt.Fprintf(&s, "request %s\n", hex.EncodeToString(EncodeRequest(req)))
		fmt.Fprintf(&s, "result %s\n", hex.EncodeToString(EncodeResult(Result{Seq: 9, Data: []byte(`{"id":"d-1"}`), Err: Errorf(Refused, "no").WithCheck("c").WithHint("h")})))
		if err := os.WriteFile(firstRecords, []byte(s.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(firstRecords)
	if err != nil {
		t.Fatal(err)
	}
	now := map[string]record{}
	for _, r := range everyRecord() {
		now[reflect.TypeOf(r).Elem().Name()] = r
	}
	for line := range strings.Lines(string(text)) {
		name, x, _ := strings.Cut(strings.TrimSpace(line), " ")
		b, err := hex.DecodeString(x)
		if err != nil {
			t.Fatal(err)
		}
		switch name {
		case "request":
			if r, err := DecodeRequest(b); err != nil || r.ID != "1-tag.3.x" || !r.Retry || r.Verb != VCardAdd || r.Number != 4 || r.Secret != "s" || r.Actor.Name != "ann" {
				t.Errorf("request: %+v, %v", r, err)
			}
			continue
		case "result":
			if r, err := DecodeResult(b); err != nil || r.Seq != 9 || r.Err == nil || r.Err.Hint != "h" {
				t.Errorf("result: %+v, %v", r, err)
			}
			continue
		}
		full := now[name]
		if full == nil {
			t.Errorf("there is no record %s any more, and states hold some", name)
			continue
		}
		r := reflect.New(reflect.TypeOf(full).Elem()).Interface().(record)
		if err := unmarshal(b, r); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if u := reflect.ValueOf(r).Elem().FieldByName("unknown"); u.IsValid() && !u.IsZero() {
			t.Errorf("%s has fields that nobody knows any more", name)
		}
		if again := marshal(r); hex.EncodeToString(again) != x {
			t.Errorf("%s is written otherwise than it was read:\n%x\n%s", name, again, x)
		}
	}
}
