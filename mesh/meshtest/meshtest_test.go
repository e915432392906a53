package meshtest

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"muster/mesh"
)

func echo(_ context.Context, peer mesh.NodeID, method string, body []byte) ([]byte, error) {
	switch method {
	case "refuse":
		return nil, &mesh.RemoteError{Code: "conflict", Text: "no"}
	case "fail":
		return nil, errors.New("plain")
	}
	return append([]byte(string(peer)+" "), body...), nil
}

func trio() (w *Network, a, b, c *Node) {
	w = New(1)
	return w, w.Add(ID("a"), echo, nil), w.Add(ID("b"), echo, nil), w.Add(ID("c"), echo, nil)
}

func closeAll(nodes ...*Node) {
	for _, n := range nodes {
		_ = n.Close()
	}
}

// The twin tells its outcomes apart just as the real one does.
func TestCallOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, a, b, c := trio()
		defer closeAll(a, b, c)
		ctx := t.Context()
		out, err := a.Call(ctx, b.Self(), "m", []byte("x"))
		if err != nil || string(out) != string(a.Self())+" x" {
			t.Fatalf("got %q, %v", out, err)
		}
		var remote *mesh.RemoteError
		if _, err := a.Call(ctx, b.Self(), "refuse", nil); !errors.As(err, &remote) || remote.Code != "conflict" {
			t.Errorf("got %v", err)
		}
		if _, err := a.Call(ctx, b.Self(), "fail", nil); !errors.As(err, &remote) || remote.Code != mesh.CodeInternal {
			t.Errorf("got %v", err)
		}
		w.Cut(a.Self(), b.Self())
		if _, err := a.Call(ctx, b.Self(), "m", nil); !errors.Is(err, mesh.ErrNotSent) {
			t.Errorf("the way there is cut: %v", err)
		}
		w.Heal()
		w.Cut(b.Self(), a.Self())
		if _, err := a.Call(ctx, b.Self(), "m", nil); !errors.Is(err, mesh.ErrConnLost) {
			t.Errorf("the way back is cut: %v", err)
		}
		w.Heal()
		w.Partition([]mesh.NodeID{a.Self(), c.Self()})
		if _, err := a.Call(ctx, b.Self(), "m", nil); !errors.Is(err, mesh.ErrNotSent) {
			t.Errorf("across a partition: %v", err)
		}
		if _, err := a.Call(ctx, c.Self(), "m", nil); err != nil {
			t.Errorf("inside a partition: %v", err)
		}
		if s := a.Presence()[b.Self()].State; s != mesh.StateDead {
			t.Errorf("a sees b %s", s)
		}
		w.Heal()
		w.Drop(1, 0)
		if _, err := a.Call(ctx, b.Self(), "m", nil); !mesh.Ambiguous(err) {
			t.Errorf("a dropped request: %v", err)
		}
		w.Drop(0, 1)
		if _, err := a.Call(ctx, b.Self(), "m", nil); !mesh.Ambiguous(err) {
			t.Errorf("a dropped answer: %v", err)
		}
	})
}

// A call under way ends when its peer is killed, cut off, or the time is up.
func TestCallUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(1)
		hang := func(ctx context.Context, _ mesh.NodeID, _ string, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		a, b := w.Add(ID("a"), echo, nil), w.Add(ID("b"), hang, nil)
		got := make(chan error, 1)
		call := func(ctx context.Context) {
			_, err := a.Call(ctx, b.Self(), "m", nil)
			got <- err
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		call(ctx)
		if err := <-got; !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Hour || !mesh.Ambiguous(err) {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		go call(t.Context())
		synctest.Wait()
		w.Partition()
		if err := <-got; !errors.Is(err, mesh.ErrConnLost) {
			t.Errorf("cut off: %v", err)
		}
		w.Heal()
		go call(t.Context())
		synctest.Wait()
		_ = b.Close()
		if err := <-got; !errors.Is(err, mesh.ErrConnLost) {
			t.Errorf("killed: %v", err)
		}
		if _, err := a.Call(t.Context(), b.Self(), "m", nil); !errors.Is(err, mesh.ErrNotSent) {
			t.Errorf("to a dead node: %v", err)
		}
		_ = a.Close()
	})
}

// Dial waits for the way, gives both ends their peer, and a cut closes both.
func TestDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, a, b, c := trio()
		defer closeAll(a, b, c)
		w.Partition()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := a.Dial(ctx, b.Self(), mesh.ALPNRaft); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		go func() {
			time.Sleep(time.Minute)
			w.Heal()
			far, err := b.RaftListener().Accept()
			if err != nil {
				t.Error(err)
				return
			}
			if id, _ := mesh.PeerOf(far); id != a.Self() {
				t.Errorf("accepted from %s", id)
			}
			_, _ = far.Write([]byte("hi"))
		}()
		near, err := a.Dial(t.Context(), b.Self(), mesh.ALPNRaft)
		if err != nil {
			t.Fatal(err)
		}
		if id, _ := mesh.PeerOf(near); id != b.Self() {
			t.Errorf("dialed %s", id)
		}
		buf := make([]byte, 2)
		if _, err := io.ReadFull(near, buf); err != nil || string(buf) != "hi" {
			t.Fatalf("got %q, %v", buf, err)
		}
		w.Cut(a.Self(), b.Self())
		if _, err := near.Read(buf); err == nil {
			t.Error("a cut connection is still open")
		}
	})
}

// Recheck ends what is no longer trusted; pushes and the directory work.
func TestTrustPushAndDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(1)
		listed := true
		got := make(chan string, 1)
		a := w.Add(ID("a"), echo, nil)
		b := w.Add(ID("b"), func(_ context.Context, peer mesh.NodeID, method string, body []byte) ([]byte, error) {
			got <- method + " " + string(body)
			return nil, nil
		}, func(mesh.NodeID) bool { return listed })
		defer closeAll(a, b)
		a.Push(b.Self(), "order", []byte("1"))
		if s := <-got; s != "order 1" {
			t.Errorf("got %q", s)
		}
		a.SetPeer(b.Self(), "x:1")
		a.SetPeer(b.Self(), "y:1")
		a.SetPeer(a.Self(), "z:1")
		if p := a.Peers(); len(p) != 1 || p[0] != b.Self() {
			t.Errorf("peers %v", p)
		}
		<-a.Changed()
		listed = false
		b.Recheck()
		<-a.Changed()
		if s := a.Presence()[b.Self()].State; s != mesh.StateDead {
			t.Errorf("after removal a sees %s", s)
		}
		if _, err := a.Call(t.Context(), b.Self(), "m", nil); !errors.Is(err, mesh.ErrNotSent) {
			t.Errorf("after removal: %v", err)
		}
		a.Push(b.Self(), "order", []byte("2"))
		a.Forget(b.Self())
		synctest.Wait()
		if len(got) != 0 || len(a.Peers()) != 0 {
			t.Error("a push to who does not trust us arrived, or a forgotten peer is known")
		}
	})
}
