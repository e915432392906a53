package node

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"muster/board"
	"muster/mesh"
	"muster/raftstore"
)

// handle answers the calls of peers: each method does one thing, and who asks is
// who its key says.
func (n *Node) handle(ctx context.Context, peer mesh.NodeID, method string, body []byte) ([]byte, error) {
	select {
	case <-n.ready:
	case <-ctx.Done():
		return nil, &mesh.RemoteError{Code: mesh.CodeBusy, Text: "starting"}
	}
	switch method {
	case "do":
		return n.fromPeer(ctx, peer, body)
	case "term": // the question that confirms leadership: this server's raft term, now
		return decoded(body, func(server string) (any, error) {
			if server != n.server() { // who lost its log does not speak for the voter it was (M-32)
				return nil, &mesh.RemoteError{Code: string(board.Unavailable), Text: "another store is here than " + server}
			}
			return n.store.Term(), nil
		})
	case "clock":
		return json.Marshal(n.cfg.Wall().UnixMilli())
	case "contact":
		return decoded(body, func(m contactMsg) (any, error) { return n.lease.contact(ctx, string(peer), m) })
	case "bye":
		n.lease.bye(string(peer))
		return nil, nil
	case "order":
		return decoded(body, func(m orderMsg) (any, error) {
			if !n.votes(peer) {
				return nil, nil // an order runs programs here: only who may lead pushes one (architecture.md §6)
			}
			if o := board.DecodeOrder(m.Order); o != nil && o.Node == string(n.ident.ID) {
				n.launch.Push(m.Term, *o)
			}
			return nil, nil
		})
	case "hello":
		return decoded(body, func(m helloMsg) (any, error) {
			n.mesh.Learn(peer, m.Addrs...)
			return helloAns{Leader: n.leaderNode(), Nodes: n.nodeList()}, nil
		})
	case "readings":
		if _, ok := n.store.LeaderTerm(); !ok { // who follows a leader that stepped down still asks it
			return nil, &mesh.RemoteError{Code: string(board.Unavailable), Text: n.cfg.Name + " does not lead"}
		}
		return json.Marshal(n.liveReadings())
	case "why":
		return decoded(body, func(card string) (any, error) { return n.why(card) })
	case "dryrun":
		return decoded(body, func(slug string) (any, error) { return n.dryRun(slug) })
	case "rounds":
		return decoded(body, func(k int) (any, error) { return n.rounds(k) })
	case "vouch":
		return decoded(body, func(m vouchMsg) (any, error) { return n.vouchFor(peer, m) })
	case "diff":
		return decoded(body, func(m diffMsg) (any, error) { return n.diff(ctx, m) })
	case "memory":
		return decoded(body, func(m memoryMsg) (any, error) { return n.memoryPiece(m) })
	case "log":
		return decoded(body, func(m logMsg) (any, error) { return n.readLog(ctx, m) })
	}
	return nil, &mesh.RemoteError{Code: string(board.Invalid), Text: "unknown method " + method}
}

// votes tells whether a peer is a voter, as far as this node knows.
func (n *Node) votes(peer mesh.NodeID) bool {
	return slices.ContainsFunc(n.store.Servers(), func(s raftstore.Server) bool { return s.Voter && s.Node == string(peer) })
}

// decoded answers a JSON question with JSON.
func decoded[T any](body []byte, fn func(T) (any, error)) ([]byte, error) {
	var m T
	if len(body) > 0 {
		if err := json.Unmarshal(body, &m); err != nil {
			return nil, &mesh.RemoteError{Code: string(board.Invalid), Text: err.Error()}
		}
	}
	out, err := fn(m)
	if e := new(board.Error); errors.As(err, &e) {
		return nil, &mesh.RemoteError{Code: string(e.Code), Text: e.Message} // a word of this node, not a failure of the call
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// logMsg asks for a piece of a run's log; Wait lets the answer wait for more.
type logMsg struct {
	Run  string `json:"run"`
	From int64  `json:"from"`
	Max  int    `json:"max"`
	Wait bool   `json:"wait"`
}

type logAns struct {
	Chunk []byte `json:"chunk"`
	Next  int64  `json:"next"`
	EOF   bool   `json:"eof"`
}

// logWait is how long one question for more of a log may wait.
const logWait = 15 * time.Second

func (n *Node) readLog(ctx context.Context, m logMsg) (*logAns, error) {
	if m.Wait {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, logWait)
		defer cancel()
	}
	b, next, eof, err := n.launch.ReadLog(ctx, m.Run, m.From, min(max(m.Max, 1), 1<<20), m.Wait)
	if err != nil {
		return nil, err
	}
	return &logAns{Chunk: b, Next: next, EOF: eof}, nil
}

// readingsAns is what the leader knows of the nodes.
type readingsAns struct {
	Term   uint64                   `json:"term"`
	Leader string                   `json:"leader"`
	Nodes  map[string]board.Reading `json:"nodes"`
	Alarms []string                 `json:"alarms,omitempty"`
}

func (n *Node) liveReadings() readingsAns {
	ans := readingsAns{Leader: n.leaderNode(), Term: n.store.Term(), Nodes: map[string]board.Reading{}}
	if a := n.lease.alarmed(); a != "" {
		ans.Alarms = append(ans.Alarms, a)
	}
	ans.Alarms = slices.Concat(ans.Alarms, n.lease.diverged(), n.lease.theirs())
	for _, p := range n.nodeList() {
		ans.Nodes[p.ID] = n.lease.State(p.ID)
	}
	return ans
}
