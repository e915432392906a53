package mesh

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// The door lets a stranger in, tells the server whose key it is, and the client
// checks the server's key before it sends a byte (T1).
func TestDoor(t *testing.T) {
	f := newFleet(t)
	a := f.start(nil)
	srv := &http.Server{
		ReadHeaderTimeout: 5 * time.Second,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			id, _ := PeerOf(c)
			return context.WithValue(ctx, ctxKey{}, id)
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id, _ := r.Context().Value(ctxKey{}).(NodeID)
			_, _ = io.WriteString(w, "key of "+string(id))
		}),
	}
	done := make(chan struct{})
	go func() { _ = srv.Serve(a.DoorListener()); close(done) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	stranger := newIdentityIn(t)
	want := func(id NodeID) error {
		if id != a.Self() {
			return errors.New("wrong key")
		}
		return nil
	}
	for _, id := range []*Identity{stranger, nil} {
		hc := &http.Client{Transport: &http.Transport{
			DisableKeepAlives: true,
			DialTLSContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
				return DialDoor(ctx, id, addr, want)
			},
		}}
		resp, err := hc.Get("https://" + a.Addr().String() + "/")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		shown := "key of "
		if id != nil {
			shown += string(id.ID)
		}
		if string(body) != shown {
			t.Errorf("got %q, want %q", body, shown)
		}
	}
	wrong := errors.New("hash is not in the token")
	if _, err := DialDoor(t.Context(), stranger, a.Addr().String(), func(NodeID) error { return wrong }); !errors.Is(err, wrong) {
		t.Errorf("a wrong key at the door: %v", err)
	}
}

type ctxKey struct{}

// A machine that joins shows a key that is not listed yet: while it waits for its answer another
// may be let in, and the node list be looked at again. Its connection stands.
func TestRecheckLeavesTheDoor(t *testing.T) {
	f := newFleet(t)
	a := f.start(nil)
	c, err := DialDoor(ctxFor(t, 5*time.Second), newIdentityIn(t), a.Addr().String(), anybody)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in, err := a.DoorListener().Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	a.Recheck()
	if _, err := in.Write([]byte("x")); err != nil {
		t.Fatalf("the door's side was cut: %v", err)
	}
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Errorf("the answer is lost: %v", err)
	}
}

// The door's places are bounded and given back.
func TestDoorLimit(t *testing.T) {
	f := newFleet(t)
	a := f.start(func(c *Config) { c.DoorLimit = 2 })
	got := make(chan net.Conn, 10)
	go func() {
		for {
			c, err := a.DoorListener().Accept()
			if err != nil {
				return
			}
			got <- c
		}
	}()
	dial := func() error {
		c, err := DialDoor(ctxFor(t, 5*time.Second), nil, a.Addr().String(), anybody)
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = c.Close() })
		return nil
	}
	for range 2 {
		if err := dial(); err != nil {
			t.Fatal(err)
		}
	}
	first := <-got
	<-got
	if err := dial(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the third is refused", func() bool { return a.Stats().HandshakesRefused == 1 })
	_ = first.Close()
	if err := dial(); err != nil {
		t.Fatal(err)
	}
	<-got
}
