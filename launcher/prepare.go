package launcher

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster/board"
	"muster/launcher/workspace"
)

// prepJob is what a preparation works with: copies, it runs beside the loop.
type prepJob struct {
	dir   string
	order *board.Order
	want  *board.StartSpec
}

// Secret is the content of MUSTER_SECRET_FILE: who a session may speak as.
type Secret struct {
	Run    string `json:"run"`
	Role   string `json:"role"`
	Slot   string `json:"slot"`
	Secret string `json:"secret"`
}

// Hash is what the fleet knows of the secret: its SHA-256.
func (s *Secret) Hash() []byte {
	h := sha256.Sum256([]byte(s.Secret))
	return h[:]
}

// ReadSecret reads a run's secret from its folder.
func ReadSecret(dir string) (*Secret, error) {
	s := new(Secret)
	if err := readJSON(dir, fileSecret, s); err != nil {
		return nil, err
	}
	if s.Secret == "" {
		return nil, errors.New("the secret file is empty")
	}
	return s, nil
}

// prepareRun makes the folder and the workspace of a run. The secret is made
// here and leaves this machine only as a hash (M-25); text that people or
// agents wrote goes into files, never into words of a command (WSP-05).
func (r *Reconciler) prepareRun(ctx context.Context, j prepJob) (*Spec, error) {
	if j.want != nil && j.order != nil && j.want.Attach != 0 {
		return r.prepareAttached(j)
	}
	if j.want == nil || j.order == nil || len(j.want.Argv) == 0 {
		return nil, errors.New("its order does not say what to start")
	}
	w := j.want
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return nil, err
	}
	if err := makeRoom(j.dir); err != nil {
		return nil, err
	}
	var x board.SpecExtra
	if len(w.Extra) > 0 {
		if err := json.Unmarshal(w.Extra, &x); err != nil {
			return nil, fmt.Errorf("its harness cannot be read: %w", err)
		}
	}
	given, err := r.given(w, x.Scrub)
	if err != nil {
		return nil, err
	}
	place, err := r.makeWorkspace(ctx, w, given)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.cfg.Name, err)
	}
	home, note := "", ""
	if w.Agent != nil {
		if home, note, err = r.readyMemory(ctx, w.Agent, w.Run, w.Keep != ""); err != nil {
			return nil, err
		}
	}
	brief := strings.Replace(w.Prompt, board.MemoryNote, note, 1)
	secret := Secret{Run: w.Run, Role: w.Role, Slot: w.Slot, Secret: randomHex(32)}
	if err := writeJSON(j.dir, fileSecret, secret, false); err != nil {
		return nil, err
	}
	at(atFolder)
	for name, text := range map[string]string{fileBrief: brief, fileBody: w.Body} {
		if err := writeAtomic(j.dir, name, []byte(text), false); err != nil {
			return nil, err
		}
	}
	s := &Spec{
		V:   format,
		Run: w.Run, Node: r.cfg.Node, Key: w.LaunchKey, Nonce: randomHex(16), Argv: argv(w, filepath.Join(j.dir, fileBrief), note), AgentHome: home, Dir: place.Path, Kind: place.Kind, Verdict: x.Verdict,
		Exits: x.Exit, Signs: x.Signs, Final: x.Final, SessionKey: x.Session, Sessions: x.Files,
		Lease: ms(w.Lease), Kill: ms(w.Kill), Leave: ms(w.Leave), Memory: x.Memory, Estop: r.cfg.Estop,
		Card: w.Card, Slot: w.Slot, Role: w.Role, Keeps: w.Keep, Order: j.order.ID, Era: j.order.Era, Epoch: j.order.Seq, SessionID: w.SessionID,
	}
	if w.Surface == surfacePane {
		s.Surface, s.Ready, s.Typed = surfacePane, x.Ready, x.Prompt == "stdin" || x.Prompt == "typed"
	} else if x.Prompt == "stdin" {
		s.Stdin = filepath.Join(j.dir, fileBrief)
	}
	s.Env = r.environment(w, s, j.dir, given, place)
	if s.Surface == surfacePane && place.Kind != workspace.Dir {
		if err := r.seed(&x, s); err != nil { // its program asks a person then, who is told of it
			r.log.Warn("the first questions of a program are not answered", "run", w.Run, "err", err)
		}
	}
	return s, nil
}

// argv puts the prompt's path where the order left a place for it. In the words
// of a plain command the shell's own variable does it, so only a whole word is replaced.
func argv(w *board.StartSpec, brief, note string) []string {
	out := make([]string, len(w.Argv))
	for i, a := range w.Argv {
		switch {
		case a == board.BriefPath:
			a = brief
		case w.Harness != "command":
			a = strings.ReplaceAll(a, board.BriefPath, brief)
		}
		if w.Agent != nil {
			a = strings.Replace(a, board.MemoryNote, note, 1)
		}
		out[i] = a
	}
	return out
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(b)
}

// refuse says why this machine will not start a run now, "" when it will.
func (r *Reconciler) refuse(n *run) string {
	switch {
	case n.attached():
		return "" // it is there
	case exists(r.cfg.Estop):
		return fmt.Sprintf("%s: ESTOP is set (remove %s to lift it)", r.cfg.Name, r.cfg.Estop)
	case n.want == nil:
		return ""
	case r.cfg.Accept != nil && r.cfg.Accept(n.want.Board, n.want.Harness) != "":
		return r.cfg.Accept(n.want.Board, n.want.Harness)
	case n.want.Surface == surfacePane && r.refusePane() != "":
		return r.refusePane()
	case n.want.Keep != "" && r.runs[n.want.Keep] != nil && r.runs[n.want.Keep].attached():
		return fmt.Sprintf("%s: the session of run %s was attached by hand, and nobody can type there for it", r.cfg.Name, n.want.Keep)
	case n.want.Harness != "" && n.want.Harness != "command" && len(n.want.Argv) > 0:
		// A program of the profile's own command is the card's affair; a harness is the machine's.
		if _, err := findProgram(&Spec{Argv: n.want.Argv[:1], Env: r.baseEnv(), Dir: "/"}); err != nil {
			return fmt.Sprintf("%s: harness %s: %v", r.cfg.Name, n.want.Harness, err)
		}
	}
	return ""
}

// passed are the variables of the node's own environment that sessions get:
// what programs need to find themselves, and no secret of the node or of
// whoever started it.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM", "COLORTERM", "EDITOR",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "GOPATH", "GOROOT", "CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME", "NVM_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
}

var passedPrefixes = []string{"LC_", "XDG_"}

func (r *Reconciler) baseEnv() []string {
	var env []string
	for _, kv := range r.cfg.Env {
		key, _, _ := strings.Cut(kv, "=")
		if slices.Contains(passed, key) || slices.ContainsFunc(passedPrefixes, func(p string) bool { return strings.HasPrefix(key, p) }) {
			env = append(env, kv)
		}
	}
	// A session says its words with this same binary.
	path := cmp.Or(envOf(env, "PATH"), "/usr/local/bin:/usr/bin:/bin")
	if bin := filepath.Dir(r.cfg.Binary); r.cfg.Binary != "" && !slices.Contains(filepath.SplitList(path), bin) {
		path += string(filepath.ListSeparator) + bin
	}
	return append(env, "PATH="+path)
}

// given is what a session's environment is made of besides what makes it a
// session: what the machine gives, and what the profile says (values taken from
// this node's environment by name, M-24).
func (r *Reconciler) given(w *board.StartSpec, scrub []string) ([]string, error) {
	env := slices.DeleteFunc(r.baseEnv(), func(kv string) bool {
		key, _, _ := strings.Cut(kv, "=")
		return slices.Contains(scrub, key)
	})
	for _, key := range sorted(w.Env) {
		env = append(env, key+"="+w.Env[key])
	}
	for _, key := range sorted(w.EnvFrom) {
		from := w.EnvFrom[key]
		if !slices.ContainsFunc(r.cfg.Env, func(kv string) bool { return strings.HasPrefix(kv, from+"=") }) {
			return nil, fmt.Errorf("%s: env %s is to be taken from %s, which is not set in the environment of this node", r.cfg.Name, key, from)
		}
		env = append(env, key+"="+envOf(r.cfg.Env, from))
	}
	for _, kv := range env {
		if strings.ContainsRune(kv, 0) {
			return nil, errors.New("a value of its environment holds a zero byte")
		}
	}
	return env, nil
}

// environment is a session's whole environment: last, so that nothing overrides
// it, what makes it a session.
func (r *Reconciler) environment(w *board.StartSpec, s *Spec, dir string, env []string, place workspace.Place) []string {
	own := map[string]string{
		"MUSTER_SOCKET": r.cfg.Socket, "MUSTER_CARD": w.Card, "MUSTER_RUN": w.Run, "MUSTER_BOARD": w.Board, "MUSTER_NODE": r.cfg.Name,
		"MUSTER_SLOT": w.Slot, "MUSTER_ROLE": w.Role, "MUSTER_WORKSPACE": s.Dir, "MUSTER_LOCK": w.Lock, envNonce: s.Nonce, "PWD": s.Dir,
		"MUSTER_BRIEF":       filepath.Join(dir, fileBrief),
		"MUSTER_BODY":        filepath.Join(dir, fileBody),
		"MUSTER_SECRET_FILE": filepath.Join(dir, fileSecret),
		"MUSTER_PORT_BASE":   strconv.Itoa(place.Port),
	}
	if w.Agent != nil {
		own["MUSTER_AGENT_ID"], own["MUSTER_AGENT_HOME"] = w.Agent.ID, s.AgentHome
	}
	if place.Branch != "" {
		own["MUSTER_BRANCH"] = place.Branch
	}
	if s.Surface == surfacePane {
		own["TERM"] = paneTerm
	}
	for i, kv := range env { // a value may stand for one of these
		if key, name, _ := strings.Cut(kv, "=$"); own[name] != "" {
			env[i] = key + "=" + own[name]
		}
	}
	for _, key := range sorted(own) {
		env = append(env, key+"="+own[key])
	}
	return dedupe(env)
}

// dedupe keeps the last value of each variable.
func dedupe(env []string) []string {
	last := map[string]int{}
	for i, kv := range env {
		key, _, _ := strings.Cut(kv, "=")
		last[key] = i
	}
	out := env[:0:0]
	for i, kv := range env {
		if key, _, _ := strings.Cut(kv, "="); last[key] == i {
			out = append(out, kv)
		}
	}
	return out
}

func sorted(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
