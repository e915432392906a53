package board

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"muster/board/workflow"
)

// maxSpec bounds a start order: it is pushed ahead of the state and kept in it.
const maxSpec = 512 << 10

// BriefPath stands in an argv for the path of the prompt's file, which only the
// executing node knows; the launcher puts it in.
const BriefPath = "$MUSTER_BRIEF"

// SpecExtra is what a harness is, as data for the launcher (StartSpec.Extra).
type SpecExtra struct {
	Prompt  string            `json:"prompt,omitempty"`  // how the prompt reaches the program: argument, stdin, typed, file
	Ready   string            `json:"ready,omitempty"`   // a pane shows this when it takes a text
	Scrub   []string          `json:"scrub,omitempty"`   // variables of the node that must not reach it
	Exit    map[string]string `json:"exit,omitempty"`    // exit code to meaning
	Signs   []SpecSign        `json:"signs,omitempty"`   // line of output to meaning
	Final   []SpecLine        `json:"final,omitempty"`   // the last lines of its work
	Session string            `json:"session,omitempty"` // member of a JSON line of output that holds the session's id
	Files   *SpecFiles        `json:"files,omitempty"`   // where the program keeps its sessions
	Seed    []SpecSeed        `json:"seed,omitempty"`    // answers to the first questions of a program in a pane
	Memory  int64             `json:"memory,omitempty"`  // limit of the session, bytes; 0: none
	Skills  []string          `json:"skills,omitempty"`
	Verdict string            `json:"verdict,omitempty"`
}

// SpecFiles says where a program keeps its sessions (workflow.SessionFiles).
type SpecFiles struct {
	Paths []string `json:"paths"`
	ID    string   `json:"id"`
	Dir   string   `json:"dir"`
}

// SpecSeed are settings of a program that are set where nothing stands (workflow.Seed).
type SpecSeed struct {
	Files []string `json:"files"` // the first whose variable is set, from a variable on: "$HOME/.x.json"
	JSON  string   `json:"json"`
}

// SeedFolders stands in such settings, as a member, for each folder that a node makes workspaces in.
const SeedFolders = "$MUSTER_FOLDERS"

// SpecLine names a JSON line of output by members and their text (workflow.Line).
type SpecLine = map[string]string

// SpecSign is what to look for in a session's newest output, and what it means (workflow.Sign).
type SpecSign struct {
	Line    SpecLine `json:"line"` // {} is any JSON line, null none
	Where   SpecLine `json:"where,omitempty"`
	In      string   `json:"in,omitempty"`
	Matches string   `json:"matches,omitempty"`
	Failed  bool     `json:"failed,omitempty"`
	Means   string   `json:"means"`
}

// startSpec renders everything a node needs to start the claimed run.
func (s *Scope) startSpec(cl *claim) ([]byte, *Error) {
	r, p, c := cl.run, cl.profile, s.card
	h := s.wf.Harnesses[p.Harness]
	if h == nil {
		return nil, Errorf(Refused, "card %s: profile %q: there is no harness %q", c.ID, p.Name, p.Harness).WithCheck("harness")
	}
	if h.Session.From == "minted" && r.Mode == ModeFresh {
		r.SessionID = sessionID(Lock(s.view, r))
	}
	s.actor = Actor{Kind: ActorRun, Role: r.Role, Name: r.ID, Run: r.ID} // the prompt speaks to the session
	s.session = map[string]any{"id": text(r.SessionID), "mode": r.Mode}
	skills := union(c.Skills, cl.spec.Skills)
	say := cl.spec.Prompt
	if rec := cl.goes.rec; rec != nil && cl.spec.Resume != nil && cl.goes.lost == "" {
		if before := GetRun(s.view, rec.Run); before != nil && before.Status == r.Status {
			say = cl.spec.Resume // it remembers the rest (PAN-08)
		}
	}
	prompt, err := s.Render(say)
	if err != nil {
		return nil, ruleError("card "+c.ID+": prompt of "+c.Status, err)
	}
	if len(skills) > 0 {
		prompt = strings.TrimRight(prompt, "\n") + "\nSkills pinned to this card: " + strings.Join(skills, ", ") + "\n"
	}
	prompt += mailText(s.view, c.ID, r.Slot)
	who, agent := s.specAgent(r)
	if agent != nil && begins(r, cl.goes.lost) {
		prompt = s.preamble(r, agent) + prompt
	}
	s.texts = map[string]any{"prompt": prompt, "brief": BriefPath}
	var argv []string
	there := r.Session.Manual && r.Keeps == "" // its node watches it, and starts nothing
	if !there {
		if argv, err = s.argv(p, h, r.Model, r.Mode != ModeFresh && cl.goes.lost == ""); err != nil {
			return nil, ruleError("card "+c.ID, err)
		}
	}
	spec := StartSpec{
		Run: r.ID, Card: c.ID, Board: c.Board, Title: c.Title, Slot: r.Slot, Role: r.Role, Profile: r.Profile, Harness: r.Harness,
		Surface: r.Surface, Model: r.Model, Argv: argv, Prompt: prompt, Body: GetBody(s.view, c.ID), Workspace: workspaceOf(c, p), Work: workSpec(s.wf, c, p),
		LaunchKey: r.LaunchKey, SessionID: r.SessionID, Mode: r.Mode, Lease: r.Lease, Kill: r.Kill, Leave: r.Leave, Grace: r.Grace, Stale: r.Stale,
		Lock: Lock(s.view, r), Extra: specExtra(h, p, skills), Agent: who,
	}
	if r.Keeps != "" {
		spec.Keep, spec.Message = r.Keeps, fmt.Sprintf("board-run-%s-r%d", c.ID, r.N)
	}
	if there {
		spec.Attach = r.PID
	}
	if err := s.specEnv(&spec, h, p, skills); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(&spec)
	if err != nil {
		return nil, Errorf(Internal, "card %s: its start cannot be written: %v", c.ID, err)
	}
	if len(raw) > maxSpec {
		return nil, Errorf(Exhausted, "card %s: its text and prompt take %d bytes, more than the %d a start carries", c.ID, len(raw), maxSpec).WithCheck("spec").
			WithHint("shorten the card's body, or put what is long into a file of its workspace")
	}
	return raw, nil
}

func (s *Scope) argv(p *workflow.Profile, h *workflow.Harness, model string, resume bool) ([]string, error) {
	needs := p.Args
	for _, l := range []*workflow.Launch{h.Headless, h.Pane} {
		if l == nil {
			continue
		}
		for _, a := range slices.Concat(l.Fresh, l.Resume) {
			s.need(a.When.Reads())
			s.need(a.Each.Reads())
			needs = append(append(slices.Clip(needs), a.Text), a.Args...)
		}
	}
	for _, t := range needs {
		s.need(t.Reads())
	}
	s.member("profile", "")
	if m, ok := s.vars["profile"].(map[string]any); ok && model != "" {
		m["model"] = model // the card's model goes before the profile's (PAN-02)
	}
	return s.wf.Argv(p, resume, s.vars)
}

// specEnv renders the environment. What comes from the executing node stays a name (M-24).
func (s *Scope) specEnv(spec *StartSpec, h *workflow.Harness, p *workflow.Profile, skills []string) *Error {
	env, from := map[string]string{}, map[string]string{}
	for k, v := range map[string]string{"MUSTER_TENANT": s.card.Tenant, "MUSTER_BRANCH": s.card.Branch, "MUSTER_EFFORT": s.card.Effort,
		"MUSTER_SKILLS": strings.Join(skills, ","), "MUSTER_MODEL": spec.Model} {
		if v != "" {
			env[k] = v
		}
	}
	for i, set := range []map[string]workflow.Env{h.Env, p.Env} { // the profile's own values win
		for _, k := range sortedKeys(set) {
			delete(env, k)
			delete(from, k)
			if v := set[k]; v.From != "" {
				from[k] = v.From
			} else {
				text, err := s.Render(v.Text)
				if err != nil {
					return ruleError(fmt.Sprintf("card %s: profile %q: env %s", s.card.ID, p.Name, k), err)
				}
				if strings.IndexByte(text, 0) >= 0 {
					return Errorf(Refused, "card %s: profile %q: env %s holds a zero byte", s.card.ID, p.Name, k).WithCheck("spec")
				}
				if text == "" && i == 0 {
					continue // a preset's variable that comes to nothing
				}
				env[k] = text
			}
		}
	}
	spec.Env, spec.EnvFrom = env, from
	return nil
}

func specExtra(h *workflow.Harness, p *workflow.Profile, skills []string) json.RawMessage {
	x := SpecExtra{Prompt: h.Prompt, Scrub: h.Scrub, Session: h.Session.JSON, Memory: p.Memory, Skills: skills, Verdict: p.Verdict}
	if f := h.Session.Files; f != nil {
		x.Files = &SpecFiles{Paths: f.Paths, ID: f.ID, Dir: f.Dir}
	}
	for _, seed := range h.Seed {
		if seed.Permissions == "" || seed.Permissions == p.Permissions {
			x.Seed = append(x.Seed, SpecSeed{seed.Files, seed.JSON})
		}
	}
	if h.Ready != nil {
		x.Ready, _ = h.Ready.Constant()
	}
	for code, means := range h.Exit {
		if x.Exit == nil {
			x.Exit = map[string]string{}
		}
		x.Exit[fmt.Sprint(code)] = means
	}
	for _, sign := range h.Signs {
		x.Signs = append(x.Signs, SpecSign{sign.Line, sign.Where, sign.In, sign.Matches, sign.Failed, sign.Means})
	}
	for _, line := range h.Final {
		x.Final = append(x.Final, line)
	}
	raw, err := json.Marshal(x)
	if err != nil {
		return nil
	}
	return raw
}

// union joins lists without duplicates, in order (LAU-13).
func union(lists ...[]string) (out []string) {
	for _, list := range lists {
		for _, s := range list {
			if s != "" && !contains(out, s) {
				out = append(out, s)
			}
		}
	}
	return out
}

// sessionID is the id of a new session, made from what makes its run unique:
// Exec has no random source, and the same claim gives the same id.
func sessionID(lock string) string {
	h := sha256.Sum256([]byte("muster session " + lock))
	h[6] = h[6]&0x0f | 0x80 // UUID version 8: made by the application
	h[8] = h[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
}
