package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/bench"
)

// P4a: from `card add` answered to the session's process running, asked at a node
// that does not lead and running there, in an idle fleet of three. No sleep, poll
// or CommitTimeout is on the path: what only a push can do is seen, an order taken
// by a node whose own state did not hold it yet. The times are printed beside
// what the machine needs for one fdatasync and one fork and exec; none is asserted.
func TestPathWithoutSleep(t *testing.T) {
	f := newFleet(t, 3, 4, "--verbose")
	fifo := filepath.Join(f.dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	f.do(f.machines[0], board.VBoardApply, board.BoardApply{Board: "default", YAML: `
version: 1
name: default
extends: default
profiles:
  word: {harness: command, args: [sh, -c, 'echo $MUSTER_CARD > ` + fifo + `']}
`})
	words := readWords(t, fifo)
	m := f.other(f.leader())
	const n = 20
	var answered, running, exec, sync []time.Duration
	profile := "word"
	for i := range n {
		title := fmt.Sprintf("card %d", i)
		id := f.mint(m)
		began := time.Now()
		ans, err := api.Decode[struct{ ID string }](m.api.Do(context.Background(), board.VCardAdd,
			board.CardAdd{Board: "default", CardFields: board.CardFields{Title: &title, Assignee: &profile, Machine: &m.name}}, id, false))
		if err != nil {
			t.Fatal(err)
		}
		told := time.Now()
		select {
		case w := <-words:
			if w.text != ans.ID {
				t.Fatalf("session of %s, want %s", w.text, ans.ID)
			}
			running, answered = append(running, w.at.Sub(told)), append(answered, told.Sub(began))
		case <-time.After(patience):
			t.Fatalf("card %s does not run: %s", ans.ID, f.whyNot(m, ans.ID))
		}
		f.await(m, "done", ans.ID) // idle again
		exec, sync = append(exec, forkExec(t)), append(sync, fdatasync(t, f.dir))
	}
	t.Logf("medians of %d: card add answered after %s; from there to its process running %s; one fdatasync %s, one fork and exec %s",
		n, median(answered), median(running), median(sync), median(exec))

	b, err := os.ReadFile(m.out)
	if err != nil {
		t.Fatal(err)
	}
	taken := regexp.MustCompile(`msg="order is taken".* claimed=(\d+) applied=(\d+)`).FindAllStringSubmatch(string(b), -1)
	ahead := 0
	for _, x := range taken {
		claimed, _ := strconv.Atoi(x[1])
		applied, _ := strconv.Atoi(x[2])
		if applied < claimed {
			ahead++
		}
	}
	t.Logf("%d of %d orders were taken before the node's own state held them", ahead, len(taken))
	if len(taken) != n {
		t.Errorf("%d orders were taken, want %d", len(taken), n)
	}
	if ahead < n/4 { // without the push it is none; a loaded machine may delay some
		t.Errorf("only %d of %d orders came by their push", ahead, n)
	}
	t.Log("state", f.sameState())
}

// said is a line of a session and when it was read.
type saidWord struct {
	text string
	at   time.Time
}

func readWords(t *testing.T, fifo string) <-chan saidWord {
	t.Helper()
	h, err := os.OpenFile(fifo, os.O_RDWR, 0) // both ends: it never ends
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	ch := make(chan saidWord, 64)
	go func() {
		for s := bufio.NewScanner(h); s.Scan(); {
			ch <- saidWord{strings.TrimSpace(s.Text()), time.Now()}
		}
	}()
	return ch
}

func forkExec(t *testing.T) time.Duration {
	t.Helper()
	at := time.Now()
	if err := exec.Command("/bin/true").Run(); err != nil {
		t.Fatal(err)
	}
	return time.Since(at)
}

func fdatasync(t *testing.T, dir string) time.Duration {
	t.Helper()
	h, err := os.OpenFile(filepath.Join(dir, "sync"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if _, err := h.Write(make([]byte, 512)); err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	if err := bench.Datasync(h); err != nil {
		t.Fatal(err)
	}
	return time.Since(at)
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2].Round(10 * time.Microsecond)
}
