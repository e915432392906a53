package lease

import (
	"strings"
	"testing"
	"time"
)

const second = Instant(time.Second)

// at is an instant in seconds of a clock that did not start at zero.
func at(s float64) Instant { return 5000*second + Instant(s*float64(second)) }

// heard is a clock with one answered contact.
func heard(sent, received float64, term, index uint64) Clock {
	c := NewClock(DefaultConfig())
	return c.Answered(c.Sent(at(sent)), term, index, at(received))
}

// M-11, architecture.md §5: the node counts from the sending.
func TestClockCountsFromTheSending(t *testing.T) {
	c := heard(0, 4, 1, 7)
	if age, ok := c.Age(at(4)); !ok || age != 4*time.Second {
		t.Errorf("age right after an answer that took 4 s: %v, %v", age, ok)
	}
	if c.Fresh(at(10)) || !c.Fresh(at(9.9)) {
		t.Error("a contact is fresh for less than 10 s from its sending")
	}
	if d, ok := c.Deadline(60 * time.Second); !ok || d != at(60) {
		t.Errorf("deadline %v, want sending + lease %v", d, at(60))
	}
	if _, ok := c.Deadline(0); ok {
		t.Error("without a lease there is no deadline")
	}
}

// An answer that overtakes an older one is not taken back by it.
func TestClockKeepsTheYoungerSending(t *testing.T) {
	c := heard(3, 4, 1, 7)
	late := c.Answered(c.Sent(at(0)), 1, 7, at(5))
	if age, _ := late.Age(at(5)); age != 2*time.Second {
		t.Errorf("age %v after a late answer to an older contact, want 2s", age)
	}
}

// An answer of an older term than the last contact's is no contact.
func TestClockIgnoresAnOlderTerm(t *testing.T) {
	c := heard(0, 1, 5, 7)
	if got := c.Answered(c.Sent(at(2)), 4, 99, at(3)); got != c {
		t.Errorf("an answer of term 4 after term 5 changed the clock: %+v", got)
	}
	if c.TermOK(4) || !c.TermOK(5) || !c.TermOK(6) || c.Term() != 5 {
		t.Error("pushes count from the term of the last contact on")
	}
}

// Architecture.md §3, fresh contact: after a lapse, and at first, the node has
// to apply the commit index of the answer before it acts.
func TestClockLapse(t *testing.T) {
	c := NewClock(DefaultConfig())
	if ok, why := c.MayStart(at(0), 100); ok || !strings.Contains(why, "no contact") {
		t.Errorf("a node that was never in contact may start: %v %q", ok, why)
	}
	c = c.Answered(c.Sent(at(0)), 1, 40, at(1))
	if ok, why := c.MayStart(at(1), 39); ok || !strings.Contains(why, "entry 39 of 40") {
		t.Errorf("first contact, one entry behind: %v %q", ok, why)
	}
	if ok, _ := c.MayStart(at(1), 40); !ok {
		t.Error("first contact, caught up: may start")
	}
	c = c.Answered(c.Sent(at(3)), 1, 90, at(4))
	if ok, _ := c.MayStart(at(4), 40); !ok {
		t.Error("no lapse between two contacts: what is not applied does not matter")
	}
	if ok, why := c.MayStart(at(13), 90); ok || !strings.Contains(why, "10s old") {
		t.Errorf("after 10 s: %v %q", ok, why)
	}
	c = c.Answered(c.Sent(at(20)), 1, 120, at(21))
	if ok, _ := c.MayStart(at(21), 119); ok {
		t.Error("after a lapse the answer's index has to be applied")
	}
	// A second answer in time does not excuse from the first one's index.
	c = c.Answered(c.Sent(at(22)), 1, 130, at(23))
	if ok, _ := c.MayStart(at(23), 119); ok {
		t.Error("the index of the lapse still has to be applied")
	}
	if ok, _ := c.MayStart(at(23), 120); !ok {
		t.Error("the index of the lapse is enough")
	}
}

// A late answer that is itself too old does not make the contact fresh, and the
// next one finds the lapse still there.
func TestClockAnswerThatCameTooLate(t *testing.T) {
	c := heard(0, 11, 1, 40)
	if ok, _ := c.MayStart(at(11), 40); ok {
		t.Error("an answer 11 s after its sending is no fresh contact")
	}
	c = c.Answered(c.Sent(at(12)), 1, 60, at(13))
	if ok, _ := c.MayStart(at(13), 59); ok {
		t.Error("the lapse lasted until now: entry 60 has to be applied")
	}
}

// Architecture.md §3: the keeper's start deadline.
func TestStartBy(t *testing.T) {
	c := heard(0, 1, 1, 1)
	for lease, want := range map[time.Duration]Instant{0: at(10), 5 * time.Second: at(5), time.Hour: at(3600)} {
		if got := c.StartBy(lease); got != want {
			t.Errorf("lease %v: start by %v, want %v", lease, got, want)
		}
	}
	if got := NewClock(DefaultConfig()).StartBy(0); got >= 0 {
		t.Errorf("without a contact the start deadline is long past, got %v", got)
	}
}

func TestInterval(t *testing.T) {
	c := DefaultConfig()
	for shortest, want := range map[time.Duration]time.Duration{
		0: 3 * time.Second, time.Hour: 3 * time.Second, 6 * time.Second: 2 * time.Second,
	} {
		if got := c.Interval(shortest); got != want {
			t.Errorf("shortest lease %v: next contact after %v, want %v", shortest, got, want)
		}
	}
}

func TestConfigValidate(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	for _, break1 := range []func(*Config){
		func(c *Config) { c.MarginMin = 0 }, func(c *Config) { c.MarginPer = 0 },
		func(c *Config) { c.Contact = c.Fresh }, func(c *Config) { c.Offline = c.Contact },
	} {
		c := DefaultConfig()
		break1(&c)
		if c.Validate() == nil {
			t.Errorf("accepted: %+v", c)
		}
	}
}

// M-04: the epoch is (era, Seq of the claim).
func TestEpochOrder(t *testing.T) {
	order := []Epoch{{}, {1, 5}, {1, 9}, {2, 1}}
	for i, a := range order {
		for j, b := range order {
			if a.Less(b) != (i < j) {
				t.Errorf("%v < %v: %v", a, b, a.Less(b))
			}
		}
	}
}

// The keeper's own last checks, and its deadline.
func TestKeeper(t *testing.T) {
	good := LastCheck{By: at(10), Now: at(9.9)}
	if ok, why := KeeperMayExec(good); !ok {
		t.Errorf("refused: %s", why)
	}
	for word, c := range map[string]LastCheck{
		"voided": {Void: true, By: good.By, Now: good.Now},
		"ESTOP":  {Estop: true, By: good.By, Now: good.Now},
		"late":   {By: good.By, Now: good.By},
	} {
		if ok, why := KeeperMayExec(c); ok || !strings.Contains(why, word) {
			t.Errorf("%s: %v %q", word, ok, why)
		}
	}
	for now, want := range map[float64]Due{54.9: DueNothing, 55: DueTerm, 59.9: DueTerm, 60: DueKill, 9000: DueKill} {
		due, next := KeeperDue(at(60), 5*time.Second, at(now))
		if due != want {
			t.Errorf("at %v s of a deadline at 60 s: %v, want %v", now, due, want)
		}
		if due == DueNothing && next != at(55) || due != DueNothing && next != at(60) {
			t.Errorf("at %v s: look again at %v", now, next)
		}
	}
	if Extend(at(60), at(50)) != at(60) || Extend(at(60), at(70)) != at(70) {
		t.Error("a deadline only moves forward")
	}
}
