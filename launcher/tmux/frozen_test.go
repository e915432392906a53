package tmux

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A server that is frozen fails what is asked of it within the time of whoever asks: those whose command was written,
// the one in the middle of writing, those that wait for their turn, and those that want a new connection. When it goes
// on it is driven on, with its panes.
func TestFrozenServerHoldsNobody(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	r := newReader(t, s, "s1")
	out, err := s.do(t.Context(), "display-message", "-p", "#{pid}")
	must(t, err)
	var pid int
	_, err = fmt.Sscan(out, &pid)
	must(t, err)
	must(t, syscall.Kill(pid, syscall.SIGSTOP))
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	for _, what := range []string{"on the connection that there is", "on a new one"} {
		var wg sync.WaitGroup
		for range 20 { // 200 kB: more than a pipe holds
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer cancel()
				if _, err := s.do(ctx, "display-message", "-p", strings.Repeat("x", 10<<10)); err == nil {
					t.Errorf("%s: a frozen server answered", what)
				}
			})
		}
		wg.Wait() // without a bound it would be held for ever
	}
	must(t, syscall.Kill(pid, syscall.SIGCONT))
	must(t, s.Paste(t.Context(), r.ID, []byte("after")))
	r.reads("after")
}
