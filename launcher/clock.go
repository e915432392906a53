package launcher

import "muster/board/lease"

// BootNow is the time on a clock that counts sleep, since some fixed moment of
// this boot. Leases and start deadlines are counted on it: Go's own monotonic
// clock stands still while a laptop sleeps.
func BootNow() lease.Instant { return bootNow() }

// BootID names this boot of the machine: moments of [BootNow] and process ids
// mean nothing in another one.
func BootID() string { return bootID() }
