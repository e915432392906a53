package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"muster/cmd/muster/api"
	"muster/cmd/muster/web"
	"muster/mesh"
)

func (n *Node) sockets() (user, session string) {
	return filepath.Join(n.cfg.Data, "muster.sock"), filepath.Join(n.cfg.Data, "session.sock")
}

// openDoors lets people and sessions in, last of all.
func (n *Node) openDoors() error {
	if n.cfg.Seams.Mesh == nil {
		user, session := n.sockets()
		sockets := api.Sockets{User: user, Session: session, InKeeperTree: n.launch.InKeeperTree, Logger: n.log.With("component", "api")}
		if err := n.openWeb(&sockets); err != nil {
			return err
		}
		srv, err := api.Serve(backend{n}, sockets)
		if err != nil {
			return err
		}
		n.api = srv
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /join", n.serveJoin)
	mux.HandleFunc("POST /twin", n.serveTwin)
	mux.HandleFunc("POST /listed", n.serveListed)
	mux.Handle("/", n.unlessRemoved(api.Handler(backend{n}, api.DoorToken, n.log.With("component", "door"))))
	n.door = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if id, ok := mesh.PeerOf(c); ok {
				ctx = context.WithValue(ctx, peerKey{}, id)
			}
			return ctx
		}}
	if err := n.openMonitor(); err != nil {
		return err
	}
	l := n.mesh.DoorListener()
	n.serving.Go(func() {
		if err := n.door.Serve(l); !errors.Is(err, http.ErrServerClosed) && n.ctx.Err() == nil {
			n.fail(fmt.Errorf("the door for other machines: %w", err))
		}
	})
	return nil
}

// openWeb shows the page, and lets people in by the node's own socket.
func (n *Node) openWeb(sockets *api.Sockets) error {
	if n.cfg.Web == nil {
		return nil
	}
	log := n.log.With("component", "web")
	c := *n.cfg.Web
	c.Data, c.Logger = n.cfg.Data, log
	c.User = api.Handler(backend{n}, api.DoorUser, log)
	c.Token = n.unlessRemoved(api.Handler(backend{n}, api.DoorToken, log))
	c.Secret = func(text string) (string, error) {
		t, err := ParseToken(text)
		return t.Secret, err
	}
	srv, err := web.Open(c)
	if err != nil {
		return err
	}
	n.web, sockets.Login = srv, srv.Login
	return nil
}

type peerKey struct{}
