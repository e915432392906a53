package node

import (
	"time"

	"muster/board"
)

// reading is what this machine says of itself with each contact (M-15): absent
// figures are unknown, and unknown restricts nothing.
func (n *Node) reading() board.Reading {
	r := n.machine()
	if n.cfg.Seams.Read != nil {
		n.cfg.Seams.Read(&r)
	}
	return r
}

func (n *Node) machine() board.Reading {
	r := board.Reading{Slots: n.slots(), Load: load1(), Pressure: "unknown"}
	n.estop(&r)
	n.readForTerms()
	if left, ok := n.space.left(); ok {
		r.DiskMB, r.NoSpace = left>>20, left < spaceLow
	}
	if n.launch != nil {
		count, bytes := n.launch.Workspaces()
		r.Workspaces, r.WorkMB = int64(count), (bytes+1<<20-1)>>20
	}
	n.mu.Lock()
	r.ClockMS = n.clockOff.Milliseconds()
	n.mu.Unlock()
	free, total, ok := memory()
	if !ok {
		return r
	}
	r.FreeMB, r.Pressure = free, memoryPressure(free, total)
	return r
}

// clockOff is how far this machine's wall clock is ahead of board time, by a
// contact sent and answered at these times: the answer was stamped somewhere in
// between. A slow answer says too little.
func clockOff(sent, got time.Time, stamped int64) (time.Duration, bool) {
	way := got.Sub(sent)
	if way < 0 || way > 2*time.Second || stamped == 0 {
		return 0, false
	}
	return sent.Add(way / 2).Sub(time.UnixMilli(stamped)), true
}

// pressure grades available memory: under 10 % or 512 MB critical, under 20 % or 1 GB elevated.
func pressure(freeMB, totalMB int64) string {
	switch {
	case freeMB*10 < totalMB || freeMB < 512:
		return "critical"
	case freeMB*5 < totalMB || freeMB < 1024:
		return "elevated"
	}
	return "normal"
}
