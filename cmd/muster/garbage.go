package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// A node lives on a few megabytes and makes garbage with every request: under
// load Go's own rule (collect when the heap has doubled) collects many times a
// second, which costs a tenth of the processor. So a node that collects often
// gets room for garbage, as long as it does; a quiet one gives it back.
const (
	garbageRoom  = 32 << 20 // bytes of garbage that a busy node may leave lying
	goPercent    = 100      // Go's own rule, as a percentage of what lives
	mostPercent  = 400
	busyInterval = 250 * time.Millisecond // collections that follow sooner are those of a busy node
)

// gcPercent is the percentage until the next collection, of which live bytes
// outlived the last; since is how long ago the one before was, under percent.
func gcPercent(live uint64, since time.Duration, percent int) int {
	if since > busyInterval*time.Duration(percent)/goPercent {
		return goPercent
	}
	return int(min(max(garbageRoom*100/max(live, 1), goPercent), mostPercent))
}

// paceGarbage begins to follow the collections of this process. It needs no
// timer: it is called by each. Who sets GOGC has decided.
func paceGarbage() {
	if os.Getenv("GOGC") != "" {
		return
	}
	p := &pacer{percent: goPercent, last: time.Now()}
	p.arm()
}

type pacer struct {
	percent int
	last    time.Time
}

// arm has the next collection call collected, by an object that it frees.
func (p *pacer) arm() {
	runtime.AddCleanup(&struct{ _ [16]byte }{}, (*pacer).collected, p)
}

func (p *pacer) collected() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	now := time.Now()
	if next := gcPercent(live[0].Value.Uint64(), now.Sub(p.last), p.percent); next != p.percent {
		p.percent = next
		debug.SetGCPercent(next)
	}
	p.last = now
	p.arm()
}
