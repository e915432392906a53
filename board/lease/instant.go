package lease

import (
	"errors"
	"time"
)

// Instant is a moment on one machine's clock that goes on while the machine
// sleeps (CLOCK_BOOTTIME), in nanoseconds from any fixed origin. Go's own
// monotonic clock stands still during sleep and must not be used. Instants of
// two machines, or of two boots, are not comparable.
type Instant int64

// Add is the instant d later.
func (t Instant) Add(d time.Duration) Instant { return t + Instant(d) }

// Sub is the time from u to t.
func (t Instant) Sub(u Instant) time.Duration { return time.Duration(t - u) }

// Epoch is a place in the history of the fleet: an era and a Seq of it. As the
// Seq of a claim it is the fencing token of the run (M-04), compared per card
// and slot; as the Seq of the applied state it tells what a node has seen.
type Epoch struct {
	Era uint64 // number of the era; a higher era beats any Seq
	Seq uint64
}

// Less tells whether e is before o.
func (e Epoch) Less(o Epoch) bool {
	return e.Era < o.Era || e.Era == o.Era && e.Seq < o.Seq
}

// Config holds the times the protocol lives by. Leader and nodes of a fleet
// must agree on Fresh; everything else is one side's own.
type Config struct {
	Contact   time.Duration // longest time between two contacts of a node
	Fresh     time.Duration // a node starts nothing when its contact is this old
	Offline   time.Duration // a node not heard for this long is offline
	MarginMin time.Duration // least time the leader adds to a lease before a session is gone
	MarginPer int           // the margin is at least lease/MarginPer
}

// DefaultConfig holds the times of architecture.md §5.
func DefaultConfig() Config {
	return Config{
		Contact:   3 * time.Second,
		Fresh:     10 * time.Second,
		Offline:   10 * time.Second,
		MarginMin: 5 * time.Second,
		MarginPer: 50,
	}
}

// Validate says what is wrong with the times, if anything.
func (c Config) Validate() error {
	switch {
	case c.Contact <= 0 || c.Fresh <= 0 || c.Offline <= 0 || c.MarginMin <= 0 || c.MarginPer <= 0:
		return errors.New("lease: every time and MarginPer must be above zero")
	case c.Contact >= c.Fresh || c.Contact >= c.Offline:
		return errors.New("lease: Contact must be shorter than Fresh and Offline, or a healthy node lapses between two contacts")
	}
	return nil
}

// Margin is what the leader adds to a lease before it counts the session gone:
// room for the kill to take effect and for clocks that run at different rates.
func (c Config) Margin(lease time.Duration) time.Duration {
	return max(c.MarginMin, lease/time.Duration(c.MarginPer))
}

// Interval is the time until a node's next contact, given its shortest lease
// (0: it has none): every 3 s, or a third of that lease.
func (c Config) Interval(shortest time.Duration) time.Duration {
	if shortest <= 0 {
		return c.Contact
	}
	return min(c.Contact, shortest/3)
}
