package launcher

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"muster/launcher/workspace"
)

// A script of a workspace runs under a keeper of its own, in a folder like a
// run's: its tree is known whatever dies, its limit is the keeper's deadline,
// and no process of it is left when it counts as ended.

func (r *Reconciler) jobsDir() string { return filepath.Join(r.cfg.Dir, "jobs") }

// runScript runs a set-up or tear-down to the end of its tree. When ctx ends
// first, the tree is ended and the cause is the answer.
func (r *Reconciler) runScript(ctx context.Context, x workspace.Script) error {
	dir := filepath.Join(r.jobsDir(), x.Card+"."+x.Name)
	if err := r.endJob(ctx, dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	now := r.cfg.Now()
	s := &Spec{V: format, Run: x.Card + "." + x.Name, Node: r.cfg.Node, Nonce: randomHex(16), Argv: []string{"sh", "-c", x.Text}, Dir: x.Dir,
		Boot: BootID(), StartBy: now.Add(x.Limit), Deadline: now.Add(x.Limit), Lease: x.Limit, Kill: min(scriptKill, x.Limit/2), Card: x.Card}
	s.Env = dedupe(append(append([]string{}, x.Env...), envNonce+"="+s.Nonce))
	if err := writeJSON(dir, fileSpec, s, false); err != nil {
		return err
	}
	link, err := r.cfg.Runner.Start(dir)
	if err != nil {
		return err
	}
	defer link.Close()
	defer r.atWork(link)()
	at(atScript)
	select {
	case <-link.Done():
	case <-ctx.Done():
		if err := link.Stop(0, "its start is not wanted any more"); err == nil {
			<-link.Done()
		}
		return errors.Join(context.Cause(ctx), r.endJob(context.WithoutCancel(ctx), dir))
	}
	exit, err := r.exitOf(ctx, dir)
	if err != nil {
		return err
	}
	said := lastLines(tailOf(dir, 2<<10))
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	switch {
	case exit.Lapsed:
		return fmt.Errorf("it took longer than %s and was ended%s", x.Limit, said)
	case exit.Error != "":
		return errors.New(exit.Error)
	case exit.Signal != "":
		return fmt.Errorf("it was ended by signal %s%s", exit.Signal, said)
	case exit.Code == nil || *exit.Code != 0:
		return fmt.Errorf("it %s%s", codeText(exit.Code), said)
	}
	return nil
}

func codeText(code *int64) string {
	if code == nil {
		return "left no exit code"
	}
	return fmt.Sprintf("ended with exit code %d", *code)
}

// lastLines is what a script said last, for people.
func lastLines(b []byte) string {
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(b), "?")), "\n")
	text := strings.Join(lines[max(0, len(lines)-5):], "; ")
	if text == "" {
		return ""
	}
	return ": " + text
}

// atWork makes a script's keeper known to the node's own socket, which takes
// nothing from below a keeper; call the answer when it has ended.
func (r *Reconciler) atWork(link Session) func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.jobs[link] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.jobs, link)
	}
}

// exitOf is how a script ended; what a dead keeper left behind is ended before.
func (r *Reconciler) exitOf(ctx context.Context, dir string) (*Exit, error) {
	exit, err := ReadExit(dir)
	if err != nil || exit != nil {
		return exit, err
	}
	if err := r.cfg.Runner.End(ctx, dir); err != nil {
		return nil, err
	}
	if exit, err = ReadExit(dir); exit == nil && err == nil {
		err = errors.New("its end is not known")
	}
	return exit, err
}

// endJob ends what an earlier life left of a script, and removes its folder.
func (r *Reconciler) endJob(ctx context.Context, dir string) error {
	if !exists(dir) {
		return nil
	}
	link, err := r.cfg.Runner.Adopt(ctx, dir)
	if err != nil {
		return err
	}
	if link != nil {
		defer link.Close()
		if err := link.Stop(0, "its node has begun anew"); err != nil {
			return err
		}
		select {
		case <-link.Done():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if exists(filepath.Join(dir, fileSpec)) {
		if _, err := r.exitOf(ctx, dir); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}

// endJobs ends every script of an earlier life: their starts are over, and the
// next one runs its set-up again.
func (r *Reconciler) endJobs(ctx context.Context) error {
	names, err := os.ReadDir(r.jobsDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range names {
		if strings.HasPrefix(e.Name(), hookPrefix) {
			continue // it goes on: its order tells whether it is wanted
		}
		if err := r.endJob(ctx, filepath.Join(r.jobsDir(), e.Name())); err != nil {
			r.log.Error("a script of an earlier life is not verified dead", "script", e.Name(), "err", err)
		}
	}
	return err
}
