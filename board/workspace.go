package board

import (
	"strings"

	"muster/board/workflow"
)

// WorkSpec is how a start's workspace is made, and what becomes of it (M-26).
type WorkSpec struct {
	Branch   string   `json:"branch,omitempty"`
	Base     string   `json:"base,omitempty"` // what a new branch starts from; "": the repository's own default
	Head     string   `json:"head,omitempty"` // commit that the card's work was last seen at: it must be there
	Push     string   `json:"push,omitempty"` // where the branch goes when a run has ended by its own word
	Setup    string   `json:"setup,omitempty"`
	Teardown string   `json:"teardown,omitempty"`
	Timeout  int64    `json:"timeout,omitempty"` // ms, of set-up and tear-down each
	Bring    []string `json:"bring,omitempty"`
}

// workspaceOf is the card's workspace, else what the profile says.
func workspaceOf(c *Card, p *workflow.Profile) string {
	if c.Workspace != "" {
		return c.Workspace
	}
	switch w := p.Workspace; w.Kind {
	case "dir":
		return "dir:" + w.Path
	case "worktree":
		return "worktree:" + w.Repo
	}
	return "scratch"
}

// giveWorkspace makes the folder or worktree of the first profile that asks for
// one the card's: all its slots work in it, whatever their own profiles say
// (M-35). A scratch folder is nothing that others would look for.
func (s *Scope) giveWorkspace(p *workflow.Profile) *Error {
	c := s.card
	kind := p.Workspace.Kind
	if c.Workspace == "" && (kind == "dir" || kind == "worktree") {
		c.Workspace, c.WorkProfile = workspaceOf(c, p), p.Name
	}
	if c.Branch != "" || !strings.HasPrefix(c.Workspace, "worktree:") {
		return nil
	}
	c.Branch = "muster/" + c.ID
	if w := workProfile(s.wf, c, p).Workspace; w.Kind == "worktree" && w.Branch != nil {
		b, err := s.Render(w.Branch)
		if err != nil {
			return ruleError("card "+c.ID+": branch of profile "+p.Name, err)
		}
		c.Branch = strings.TrimSpace(b)
	}
	return checkBranch(c.Branch)
}

// workProfile is the profile that says how the card's workspace is made.
func workProfile(wf *workflow.Workflow, c *Card, p *workflow.Profile) *workflow.Profile {
	if own := wf.Profile(c.WorkProfile); own != nil {
		return own
	}
	return p
}

// workSpec is what a profile says of a workspace of this kind; of another kind it says nothing.
func workSpec(wf *workflow.Workflow, c *Card, p *workflow.Profile) *WorkSpec {
	kind, _, _ := strings.Cut(workspaceOf(c, p), ":")
	w := &WorkSpec{}
	if kind == "worktree" {
		w.Branch, w.Head = c.Branch, c.WorkHead
	}
	if own := workProfile(wf, c, p).Workspace; own.Kind == kind {
		w.Base, w.Push, w.Setup, w.Teardown, w.Bring = own.Base, own.Push, own.Setup, own.Teardown, own.Bring
		if w.Timeout = own.Timeout * 1000; w.Timeout == 0 {
			w.Timeout = workflow.DefaultHookTimeout * 1000
		}
	}
	return w
}

// workLeft notes what a session left in its workspace: what is nowhere else ties
// the card to that machine until it is saved or left behind (M-05), and what was
// saved has to be found by a start elsewhere.
func (t *tx) workLeft(r *Run, a *Report) {
	c := GetCard(t, r.Card)
	if c == nil || a.Work == "" {
		return
	}
	node, left, head := r.Node, a.Work, c.WorkHead
	if a.Work != "uncommitted" && a.Work != "unpushed" {
		node, left, head = "", "", clip(a.Head, 64)
	}
	if r.Place != c.Workspace || r.Branch != c.Branch { // the card has another place since: nobody is to find that commit there
		head = c.WorkHead
	}
	if node == "" && c.WorkNode != "" && c.WorkNode != r.Node || c.WorkNode == node && c.WorkLeft == left && c.WorkHead == head {
		return
	}
	c.WorkNode, c.WorkLeft, c.WorkHead = node, left, head
	t.putCard(c)
}

// setPlace sets where a card's sessions work. What no machine could make is
// refused here, not by the machine that the card would be started on.
func setPlace(c *Card, f *CardFields) *Error {
	if f.Workspace != nil {
		if err := checkWorkspace(*f.Workspace); err != nil {
			return err
		}
		c.setWorkspace(*f.Workspace)
	}
	if f.Branch != nil && *f.Branch != "" {
		if c.Workspace != "" && !strings.HasPrefix(c.Workspace, "worktree:") {
			return Errorf(Invalid, "branch %q: a branch is that of a worktree, and card %s works in %s", clip(*f.Branch, 60), c.ID, clip(c.Workspace, 60))
		}
		if err := checkBranch(*f.Branch); err != nil {
			return err
		}
	}
	if f.Branch != nil {
		c.setBranch(*f.Branch)
	}
	return nil
}

// setWorkspace gives a card another place: what was saved was not of it.
func (c *Card) setWorkspace(ws string) {
	if c.Workspace != ws {
		c.Workspace, c.WorkProfile, c.WorkHead = ws, "", ""
	}
}

func (c *Card) setBranch(branch string) {
	if c.Branch != branch {
		c.Branch, c.WorkHead = branch, ""
	}
}

// worksIn notes where a run works for good: its card may be given another place meanwhile.
func (r *Run) worksIn(c *Card, p *workflow.Profile, from *Run) {
	switch {
	case from != nil: // the session stays where it is
		r.Place, r.Branch = from.Place, from.Branch
	case r.Session.Manual:
		r.Place = "dir:" + strings.TrimPrefix(r.Workspace, "dir:")
	default:
		r.Place, r.Branch = workspaceOf(c, p), c.Branch
	}
}

// checkWorkspace refuses what is no workspace on any machine (T27, T28).
func checkWorkspace(ws string) *Error {
	kind, rest, _ := strings.Cut(ws, ":")
	switch {
	case ws == "" || ws == "scratch":
	case kind == "dir" && strings.HasPrefix(rest, "/") && oneLine(rest) && len(rest) <= 4096:
	case kind == "worktree" && rest != "":
		if strings.HasPrefix(rest, "-") || strings.Contains(rest, "::") || !oneLine(rest) || len(rest) > 4096 {
			return Errorf(Invalid, "repository %q is no URL, path or name", clip(rest, 60))
		}
	default:
		return Errorf(Invalid, "workspace %q: use scratch, dir:/PATH or worktree:REPO", clip(ws, 60))
	}
	return nil
}

// checkBranch refuses what git takes for no branch, or for something else (T28).
func checkBranch(b string) *Error {
	bad := b == "" || len(b) > 200 || strings.HasPrefix(b, "-") || strings.HasSuffix(b, ".") || b == "@" || b == "HEAD" ||
		strings.Contains(b, "..") || strings.Contains(b, "@{") || strings.ContainsAny(b, " ~^:?*[\\") || !oneLine(b)
	for part := range strings.SplitSeq(b, "/") {
		bad = bad || part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock")
	}
	if bad {
		return Errorf(Invalid, "branch %q is no name for a branch", clip(b, 60))
	}
	return nil
}

// folderOf is the folder on its machine in which a start would work because somebody named it; "" where muster makes its own.
func folderOf(c *Card, p *workflow.Profile) string {
	if dir, named := strings.CutPrefix(workspaceOf(c, p), "dir:"); named {
		return dir
	}
	return ""
}

// FolderFree refuses a start on the planned node in a folder that somebody named
// while a session of another card is in it, or is to be by what was taken: one card
// at a time has a folder (WSP-02). Check is "workspace".
func (r *Room) FolderFree(s *Scope, p *workflow.Profile) (err *Error) {
	dir := folderOf(s.card, p)
	if dir == "" {
		return nil
	}
	r.EachOn(s.node.ID, func(h *Held) {
		if err == nil && h.Card != s.card.ID && !idlePane(h) && r.folder(s.view, h) == dir {
			err = Errorf(Refused, "card %s: its folder %s on %s is worked in by card %s", s.card.ID, clip(dir, 100), s.nodeName(h.Node), h.Card).
				WithCheck("workspace").WithHint("see: muster runs %s", h.Card)
		}
	})
	return err
}

// folder is the folder that a session works in, or is to: of what was only taken there is no run yet.
func (r *Room) folder(v View, h *Held) string {
	if run := GetRun(v, h.Run); run != nil {
		if dir, named := strings.CutPrefix(run.Place, "dir:"); named {
			return dir
		}
		return ""
	}
	c, f := GetCard(v, h.Card), r.boards[h.Board].flow
	if c == nil || f == nil || f.err != nil {
		return ""
	}
	if p := f.wf.Profile(h.Profile); p != nil {
		return folderOf(c, p)
	}
	return ""
}

// folderFree holds the folder of a claim against what is held: by force, too.
func (st *step) folderFree(p *workflow.Profile) *Error {
	if folderOf(st.c, p) == "" {
		return nil
	}
	room, done := st.t.room()
	defer done()
	return room.FolderFree(st.s, p)
}
