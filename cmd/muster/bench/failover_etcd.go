package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// etcdCrowd is an etcd whose leaders are ended, with a connection to each member.
type etcdCrowd struct {
	*Etcd
	value []byte
	mu    sync.Mutex
	conns []*grpcConn // nil: of a member that was ended
}

func newEtcdCrowd(ctx context.Context, e *Etcd) (*etcdCrowd, error) {
	c := &etcdCrowd{Etcd: e, value: make([]byte, eventText)}
	var err error
	c.conns, err = e.dial(ctx, etcdMembers)
	return c, err
}

func (c *etcdCrowd) close() {
	for i := range c.conns {
		c.hangUp(i)
	}
}

func (c *etcdCrowd) hangUp(member int) {
	c.mu.Lock()
	conn := c.conns[member]
	c.conns[member] = nil
	c.mu.Unlock()
	if conn != nil {
		conn.close()
	}
}

func (c *etcdCrowd) size() int { return etcdMembers }

func (c *etcdCrowd) leader(ctx context.Context) (int, error) {
	for {
		for i, addr := range c.clients {
			if text, err := get(ctx, "http://"+addr+"/metrics"); err == nil {
				if v, err := metric(text, "etcd_server_is_leader"); err == nil && v == 1 {
					return i, nil
				}
			}
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("no etcd member leads: %w", ctx.Err())
		case <-time.After(probeEvery):
		}
	}
}

func (c *etcdCrowd) event(ctx context.Context, member, n int) error {
	c.mu.Lock()
	conn := c.conns[member]
	c.mu.Unlock()
	if conn == nil {
		return fmt.Errorf("etcd member %d was ended", member)
	}
	_, err := conn.call(ctx, putPath, putRequest(fmt.Sprintf("bench/%04d", n%1000), c.value))
	return err
}

func (c *etcdCrowd) end(member int, by syscall.Signal) error {
	err := c.members[member].cmd.Process.Signal(by)
	c.hangUp(member)
	return err
}

func (c *etcdCrowd) back(ctx context.Context, member int) error {
	m := c.members[member]
	select {
	case <-m.ended:
	case <-ctx.Done():
		return fmt.Errorf("etcd member %d does not end: %w", member, ctx.Err())
	}
	if err := m.again(); err != nil {
		return err
	}
	if err := c.waitHealthy(ctx); err != nil {
		return err
	}
	conn, err := dialGRPC(ctx, c.clients[member])
	if err != nil {
		return fmt.Errorf("dial etcd: %w", err)
	}
	c.mu.Lock()
	c.conns[member] = conn
	c.mu.Unlock()
	return nil
}

// again starts a member that has ended, on what it has.
func (m *etcdMember) again() error {
	log, err := os.OpenFile(m.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("etcd: log: %w", err)
	}
	defer log.Close()
	cmd, ended := exec.Command(m.cmd.Path, m.cmd.Args[1:]...), make(chan struct{})
	cmd.Env, cmd.Stdout, cmd.Stderr = m.cmd.Env, log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start etcd: %w", err)
	}
	m.cmd, m.ended = cmd, ended
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	return nil
}
