package node

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"muster/board"
	"muster/mesh"
)

// One key is one node (invariant 15): two live processes with it would both vote,
// and run the same orders. A second one is met in three ways. At its start it looks
// where this node was last, and where a copy's fleet says that it is: who answers
// there with its own key is the node, and the second one ends before it has touched
// anything. Who comes up nonetheless raises the generation, and the leader tells the
// older process to end at its next contact. And who comes up from a copy without a
// leader does not vote (M-32).

// twinTimeout is how long one look at an address takes at most: nobody answers fast on a machine that is gone.
const twinTimeout = 500 * time.Millisecond

// noTwin refuses to start where another process answers with this node's own key.
func (n *Node) noTwin(ctx context.Context, addrs ...string) error {
	for _, addr := range addrs {
		addr, ok := reachableAs(addr)
		if !ok {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, twinTimeout)
		conn, err := n.dialDoor(ctx, addr, func(got mesh.NodeID) error {
			if got != n.ident.ID {
				return fmt.Errorf("node %s is there", got)
			}
			return nil
		})
		if err == nil {
			_ = postDoor(ctx, conn, "twin", twinMsg{Data: n.cfg.Data, PID: os.Getpid()}, nil) // so that it shows an alarm; it need not answer
			conn.Close()
		}
		cancel()
		if err == nil {
			return board.Errorf(board.Refused, "another process runs as this node already, at %s: the data folder %s is a copy of its folder, and was not used", addr, n.cfg.Data).
				WithHint("to add a node to the fleet: muster join TOKEN --data DIR, with an empty folder")
		}
	}
	return nil
}

// reachableAs is where a program that listens on addr can be reached from this machine.
func reachableAs(addr string) (string, bool) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port == "0" {
		return "", false
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	return net.JoinHostPort(host, port), true
}

// moved says why this folder is a copy of this node's, "" if it is not. A copy asks
// the fleet first: the node itself may still run, where it was not looked for.
func (n *Node) moved(ctx context.Context) (string, error) {
	if !n.mem.Stored {
		return "", nil
	}
	why := n.mem.Place.copied(n.dir.path("raft"))
	if why == "" {
		return "", nil
	}
	n.log.Error("this data folder was copied or put back since this node last wrote it", "why", why, "data", n.cfg.Data)
	led, seen := n.askAround(ctx)
	own := append(n.addrs(), n.mesh.Addr().String())
	seen = slices.DeleteFunc(seen, func(addr string) bool { return slices.Contains(own, addr) })
	if err := n.noTwin(ctx, seen...); err != nil {
		return "", err
	}
	if err := n.dir.setJournalAside(); err != nil {
		return "", err
	}
	if led { // the fleet goes on without this folder, even where it says that nobody else votes
		n.mem.Refetch = "its data folder was copied or put back (" + why + ")"
	}
	return why, nil
}

// askAround asks the peers whether another node leads, and where this one is.
func (n *Node) askAround(ctx context.Context) (led bool, seen []string) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var wg sync.WaitGroup
	var mu sync.Mutex
	self := string(n.ident.ID)
	for _, p := range n.mesh.Peers() {
		wg.Go(func() {
			var ans helloAns
			if n.call(ctx, string(p), "hello", helloMsg{}, &ans) != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			led = led || ans.Leader != "" && ans.Leader != self
			for _, x := range ans.Nodes {
				if x.ID == self {
					seen = append(seen, x.Addrs...)
				}
			}
		})
	}
	wg.Wait()
	return led, seen
}

// twinMsg is what a process that found itself to be a second one tells the first.
type twinMsg struct {
	Data string `json:"data"`
	PID  int    `json:"pid"`
}

// serveTwin takes the word of a second process: only who shows this node's own key is one.
func (n *Node) serveTwin(w http.ResponseWriter, r *http.Request) {
	var msg twinMsg
	peer, shown := r.Context().Value(peerKey{}).(mesh.NodeID)
	if err := json.NewDecoder(io.LimitReader(r.Body, 4<<10)).Decode(&msg); err != nil || !shown || peer != n.ident.ID {
		http.Error(w, "a second process of a node shows the node's own key", http.StatusForbidden)
		return
	}
	n.warn("a copy of %s's data folder was started beside it and refused: %s (process %d)", n.cfg.Name, msg.Data, msg.PID)
	_, _ = w.Write([]byte("{}")) // who asked may have gone
}

// older tells that a contact is of an earlier start of its node than the one the
// fleet knows: another process came up as that node since.
func (l *leading) older(peer string, msg contactMsg) bool {
	old := false
	_ = l.n.store.View(func(v board.View) error {
		x := board.GetNode(v, peer)
		switch {
		case x == nil || x.Generation <= msg.Generation:
		case x.Generation == msg.Generation+1 && msg.Start != "" && x.StartID == msg.Start: // its own start, whose answer it has not read yet
		default:
			old = true
		}
		return nil
	})
	return old
}

// superseded stops this process: another one is this node now.
func (n *Node) superseded() {
	n.fail(fmt.Errorf("this process was replaced: another one came up as node %s from a copy of its data folder, and the fleet counts on that one; "+
		"sessions go on. Keep one of the two folders (the other is not %s), and move the other away", n.cfg.Name, n.cfg.Data))
}
