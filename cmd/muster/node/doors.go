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
	"muster/mesh"
)

func (n *Node) sockets() (user, session string) {
	return filepath.Join(n.cfg.Data, "muster.sock"), filepath.Join(n.cfg.Data, "session.sock")
}

// openDoors lets people and sessions in, last of all.
func (n *Node) openDoors() error {
	if n.cfg.Seams.Mesh == nil {
		user, session := n.sockets()
		srv, err := api.Serve(backend{n}, api.Sockets{User: user, Session: session, InKeeperTree: n.launch.InKeeperTree, Logger: n.log.With("component", "api")})
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
	l := n.mesh.DoorListener()
	n.serving.Go(func() {
		if err := n.door.Serve(l); !errors.Is(err, http.ErrServerClosed) && n.ctx.Err() == nil {
			n.fail(fmt.Errorf("the door for other machines: %w", err))
		}
	})
	return nil
}

type peerKey struct{}
