package node

import "muster/board"

// reading is what this machine says of itself with each contact (M-15): absent
// figures are unknown, and unknown restricts nothing.
func (n *Node) reading() board.Reading {
	r := board.Reading{Slots: n.slots(), Load: load1(), Estop: n.estop(), Pressure: "unknown"}
	free, total, ok := memory()
	if !ok {
		return r
	}
	r.FreeMB, r.Pressure = free, pressure(free, total)
	return r
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
