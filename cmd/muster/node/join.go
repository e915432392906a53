package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"muster/board"
	"muster/mesh"
)

// joinMsg is what a machine says at the door of a node of the fleet.
type joinMsg struct {
	Secret string       `json:"secret"`
	Node   board.NodeUp `json:"node"`
	Again  bool         `json:"again,omitempty"` // its folder is of this fleet: who is still listed needs no token
}

// joinAns is what the new machine needs until the state has come to it.
type joinAns struct {
	Fleet      string   `json:"fleet"`
	Generation uint64   `json:"generation"`
	Gossip     []byte   `json:"gossip"`
	Nodes      []peerID `json:"nodes"`
	Listed     bool     `json:"listed,omitempty"` // it was never out of the list: no token was used
}

// join introduces this machine to the fleet of its token: it checks the key of
// the node it reaches before it sends the secret (architecture.md §6).
func (n *Node) join(ctx context.Context) error {
	tok, err := ParseToken(n.cfg.Token)
	if err != nil {
		return err
	}
	if tok.Role != "node" {
		return board.Errorf(board.Invalid, "this token is for the role %q, not for joining", tok.Role).WithHint("make one with: muster token create")
	}
	if n.cfg.Seams.Mesh == nil {
		l, err := net.Listen("tcp", n.cfg.Listen) // the address must be known, and free, before anybody is told
		if err != nil {
			return fmt.Errorf("listen on %s: %w", n.cfg.Listen, err)
		}
		n.cfg.Listen = l.Addr().String()
		l.Close()
	}
	n.mem.Replica = n.cfg.Replica
	up, err := n.about()
	if err != nil {
		return err
	}
	up.Addrs = []string{orElse(n.cfg.Advertise, n.cfg.Listen)}
	ans, err := n.askUntil(ctx, tok, joinMsg{Secret: tok.Secret, Node: up})
	if err != nil {
		return err
	}
	if old, err := n.dir.setAside(); err != nil { // of this key's node, whose node.json was lost
		return err
	} else if old != "" {
		n.cfg.Progress("this machine comes back under its own id; what it held is kept in " + old)
	}
	n.mem.Fleet, n.mem.Name, n.mem.Generation, n.mem.Gossip, n.mem.Peers = ans.Fleet, n.cfg.Name, ans.Generation, ans.Gossip, ans.Nodes
	return n.dir.save(n.mem)
}

// joinTime bounds how long a join is asked again whose answer was lost.
const joinTime = 30 * time.Second

// lostAnswer is a join that was sent, and of which nobody here knows what became.
type lostAnswer struct{ error }

func (e lostAnswer) Unwrap() error { return e.error }

// askUntil asks again when the answer was lost: the fleet may have let this machine in, and
// then lets it ask again. Nobody to be reached at all is told at once.
func (n *Node) askUntil(ctx context.Context, tok *Token, msg joinMsg) (*joinAns, error) {
	until, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	for wait := 200 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		ans, err := n.askIn(ctx, tok, msg)
		var lost lostAnswer
		if err == nil || !errors.As(err, &lost) {
			return ans, err
		}
		n.cfg.Progress(fmt.Sprintf("the answer was lost (%v): asking again ...", lost.error))
		select {
		case <-time.After(wait):
			if until.Err() == nil {
				continue
			}
		case <-until.Done():
		}
		return nil, board.Errorf(board.Unavailable, "the fleet's answer to the join was lost, also for %s after: %v", joinTime, lost.error).
			WithHint("the same command again goes on where this ended: a machine that was let in needs no other token")
	}
}

// askIn asks the nodes of a token, one after the other, until one answers.
func (n *Node) askIn(ctx context.Context, tok *Token, msg joinMsg) (*joinAns, error) {
	var failed []string
	var lost *lostAnswer
	for _, p := range tok.Nodes {
		for _, addr := range p.Addrs {
			n.cfg.Progress(fmt.Sprintf("asking %s to let this machine in ...", addr))
			ans, err := n.joinAt(ctx, p.ID, addr, msg)
			if err == nil {
				return ans, nil
			}
			var refused *board.Error
			if errors.As(err, &refused) && refused.Code != board.Unavailable && refused.Code != board.UnknownOutcome {
				return nil, refused
			}
			if l := (lostAnswer{}); errors.As(err, &l) {
				lost = &l
			}
			failed = append(failed, fmt.Sprintf("%s: %v", addr, err))
		}
	}
	if lost != nil {
		return nil, *lost
	}
	return nil, board.Errorf(board.Unavailable, "no node of the fleet could be reached: %s", strings.Join(failed, "; ")).
		WithHint("is the fleet up, and its address reachable from here? A fleet on other machines needs: muster up --listen IP:PORT")
}

func (n *Node) joinAt(ctx context.Context, id, addr string, msg joinMsg) (*joinAns, error) {
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	conn, err := n.dialDoor(ctx, addr, func(got mesh.NodeID) error {
		if string(got) != id {
			return board.Errorf(board.Refused, "the node at %s shows another key than the token says: it may be an impostor; nothing was sent to it", addr)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var ans *joinAns
	if err := postDoor(ctx, conn, "join", msg, &ans); err != nil {
		var said *board.Error
		if !errors.As(err, &said) || said.Code == board.Unavailable || said.Code == board.UnknownOutcome {
			err = lostAnswer{err}
		}
		return nil, err
	}
	if ans == nil {
		return nil, fmt.Errorf("%s gave no answer", addr)
	}
	return ans, nil
}

// postDoor asks one question at a door and reads its answer, if out is not nil.
func postDoor(ctx context.Context, conn net.Conn, path string, in, out any) error {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}}
	b, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://door/"+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 4<<20))
	if err != nil || out == nil {
		return err
	}
	var env struct {
		Data  json.RawMessage `json:"data"`
		Error *board.Error    `json:"error"`
	}
	if err := json.Unmarshal(body, &env); err != nil {
		return fmt.Errorf("%s does not speak muster: %w", conn.RemoteAddr(), err)
	}
	if env.Error != nil {
		return env.Error
	}
	return json.Unmarshal(env.Data, out)
}

// serveJoin is the door's only question without a role: the secret is checked
// by the leader, against a hash in the state.
func (n *Node) serveJoin(w http.ResponseWriter, r *http.Request) {
	answer := func(data *joinAns, err *board.Error) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"v": 1, "data": data, "error": err})
	}
	peer, shown := r.Context().Value(peerKey{}).(mesh.NodeID)
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(callTimeout)) // a stranger who says nothing holds nothing
	var msg joinMsg
	err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&msg)
	if err != nil || !shown || msg.Node.ID != string(peer) || string(mesh.IDOfKey(msg.Node.Key)) != msg.Node.ID {
		err := board.Errorf(board.Refused, "a machine joins by showing its own key").WithCheck(board.CheckToken)
		n.deny("a machine at "+r.RemoteAddr, err)
		answer(nil, err)
		return
	}
	if msg.Again && n.trust.has(peer) {
		answer(n.joinAnswer(&joinAns{Fleet: n.mem.Fleet, Listed: true}), nil)
		return
	}
	args, err := json.Marshal(board.NodeJoin{Node: msg.Node, Secret: msg.Secret})
	if err != nil {
		answer(nil, board.Errorf(board.Internal, "join: %v", err))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	defer cancel()
	res := n.Do(ctx, board.Request{ID: n.MintID(), Actor: board.Actor{Kind: board.ActorNode, Name: msg.Node.Name, Node: msg.Node.ID}, Verb: board.VNodeJoin, Args: args})
	if res.Err != nil {
		n.deny("a machine at "+r.RemoteAddr, res.Err)
		answer(nil, res.Err)
		return
	}
	ans := &joinAns{Fleet: n.mem.Fleet}
	if json.Unmarshal(res.Data, ans) != nil {
		answer(nil, board.Errorf(board.Internal, "join: the answer cannot be read"))
		return
	}
	answer(n.joinAnswer(ans), nil)
}

// joinAnswer adds where everybody is, and the key of gossip.
func (n *Node) joinAnswer(ans *joinAns) *joinAns {
	ans.Nodes = n.nodeList()
	if k := n.gossip.Load(); k != nil {
		ans.Gossip = *k
	}
	return ans
}

// nodeList is where the nodes of the fleet are, this one first.
func (n *Node) nodeList() []peerID {
	list := []peerID{{ID: string(n.ident.ID), Addrs: n.addrs()}}
	_ = n.store.View(func(v board.View) error {
		board.EachNode(v, func(x *board.Node) bool {
			if x.ID != string(n.ident.ID) {
				list = append(list, peerID{ID: x.ID, Addrs: x.Addrs})
			}
			return true
		})
		return nil
	})
	return list
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
