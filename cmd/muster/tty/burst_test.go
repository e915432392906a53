package tty

import (
	"runtime"
	"testing"
)

// A burst of 100 MB through a slow viewer does not grow the machine's memory.
func TestBurstGrowsNothing(t *testing.T) {
	x := look(Hosting{})
	b := make([]byte, 64<<10)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 100 << 20 / len(b) {
		if _, err := x.f.print.Write(b); err != nil {
			t.Fatal(err)
		}
		x.screen.mu.Lock()
		x.screen.b.Reset()
		x.screen.mu.Unlock()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
		t.Errorf("%d bytes more on the heap", grown)
	}
	x.l.Leave()
	<-x.left
	<-x.end
}
