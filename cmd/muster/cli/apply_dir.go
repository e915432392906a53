package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/document"
)

const maxJournal = 256 << 20

// journal is an apply on its way: what is asked under which id. It is written before the first is asked, so that a run
// after one that was killed asks all of it again under the same ids: what was done is answered, and not done twice.
type journal struct {
	Steps []*sentStep       `json:"steps"`
	Taken map[string]string `json:"taken"` // hashes of the files that are taken back

	again bool              // it was written by a run before
	ids   map[string]string // of cards that were filed, by their files' names
}

type sentStep struct {
	document.Step
	ID   string `json:"id"`
	done bool
}

// applyAnswer is what an apply of a folder says.
type applyAnswer struct {
	Board  string `json:"board"`
	Dir    string `json:"dir"`
	DryRun bool   `json:"dry_run"`
	Steps  int    `json:"steps"` // requests that were made, or would be
	*document.Plan
	Problems []document.Problem `json:"problems"`
	Filed    map[string]string  `json:"filed"` // new cards, by their files' names
	Kept     []string           `json:"kept"`  // files that were changed again meanwhile
}

// applyDir takes a folder back. Either all of it goes, or nothing is begun and what stands in the way is shown.
func (a *app) applyDir(ctx context.Context, slug, dir string, o document.Options, dry bool) error {
	f, err := openFolder(dir, false)
	if err != nil {
		return err
	}
	defer f.close()
	if slug != "" && slug != f.base.Board {
		return board.Errorf(board.Refused, "%s is the folder of board %s, not of %s", dir, f.base.Board, slug).WithCheck("folder").WithHint("leave the board out, or give its folder")
	}
	j, err := f.journal()
	if err != nil {
		return err
	}
	now, err := a.liveBoard(ctx, f.base.Board)
	if err != nil {
		return err
	}
	if now.Fleet != f.base.Fleet {
		return board.Errorf(board.Refused, "%s is the folder of a board of another fleet", dir).WithCheck("folder").WithHint("to bring a board here: muster board export there, muster board import here")
	}
	out := applyAnswer{Board: f.base.Board, Dir: dir, DryRun: dry, Filed: map[string]string{}, Kept: []string{}}
	if j != nil {
		if dry {
			return board.Errorf(board.Refused, "%s: an apply was broken off here; what it has left to do is done first", dir).WithCheck("folder").WithHint("end it: muster board apply --dir %s", dir)
		}
		if !a.quiet && !a.json {
			fmt.Fprintln(a.io.Err, "muster: going on with the apply that was broken off here")
		}
		out.Plan = &document.Plan{Changes: []document.Change{}, Incoming: []document.Change{}, Conflicts: []document.Conflict{}}
	} else {
		b, problems := document.Parse(f.files)
		out.Problems = append(append([]document.Problem{}, f.problems...), problems...)
		out.Plan = document.Compare(f.effective(), b, now, o)
		if len(out.Problems)+len(out.Conflicts) > 0 || dry {
			return a.sayPlan(&out)
		}
		if j, err = a.newJournal(ctx, f, out.Plan); err != nil {
			return err
		}
	}
	if err := a.carryOut(ctx, f, j, &out); err != nil {
		return err
	}
	return a.sayPlan(&out)
}

func (f *folder) journal() (*journal, error) {
	raw, err := f.content(applyFile, maxJournal)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	j := &journal{again: true, ids: map[string]string{}}
	if err := json.Unmarshal(raw, j); err != nil {
		return nil, board.Errorf(board.Invalid, "%s cannot be read: %v", applyFile, err).WithHint("look at the board and at the folder, then remove that file")
	}
	return j, nil
}

// newJournal gives each step the id under which it happens at most once.
func (a *app) newJournal(ctx context.Context, f *folder, p *document.Plan) (*journal, error) {
	j := &journal{Taken: map[string]string{}, ids: map[string]string{}}
	for name, raw := range f.files {
		j.Taken[name] = document.FileHash(raw)
	}
	cl, err := a.client()
	if err != nil {
		return nil, err
	}
	for _, s := range p.Steps {
		id, err := cl.Mint(ctx)
		if err != nil {
			return nil, err
		}
		j.Steps = append(j.Steps, &sentStep{Step: s, ID: id})
	}
	if len(j.Steps) == 0 {
		return j, nil
	}
	raw, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	return j, f.write(applyFile, append(raw, '\n'))
}

// carryOut does the steps, and brings the folder up to the board. A refusal ends it: what was done before stands on the
// board, and what was not is left in the files.
func (a *app) carryOut(ctx context.Context, f *folder, j *journal, out *applyAnswer) error {
	failed := a.steps(ctx, j, out)
	if code := board.CodeOf(failed); failed != nil && (code == board.UnknownOutcome || code == board.Unavailable || code == "" || code == board.Internal) {
		return failed // the journal stays: the next run asks again
	}
	now, err := a.liveBoard(ctx, f.base.Board)
	if err != nil {
		return errors.Join(failed, err)
	}
	if err := f.refresh(now, j, out); err != nil {
		return errors.Join(failed, err)
	}
	return failed
}

func (a *app) steps(ctx context.Context, j *journal, out *applyAnswer) error {
	cl, err := a.client()
	if err != nil {
		return err
	}
	out.Filed = j.ids
	for i, s := range j.Steps {
		if len(j.Steps) > 100 && i%100 == 0 && !a.quiet && !a.json {
			fmt.Fprintf(a.io.Err, "muster: %d of %d\n", i, len(j.Steps))
		}
		ans, err := api.Decode[doneAnswer](cl.Do(ctx, s.Verb, s.Resolve(j.ids), s.ID, j.again))
		if err != nil {
			return j.failed(s, err)
		}
		if s.done = true; s.Files != "" {
			j.ids[s.Files] = ans.ID
		}
		out.Steps++
	}
	return nil
}

// failed is the error of a step, which says what it was about.
func (j *journal) failed(s *sentStep, err error) error {
	var e *board.Error
	if !errors.As(err, &e) {
		return err
	}
	x, about := *e, s.Card
	if s.Files != "" {
		about = s.Files + ".md"
	}
	x.Message = fmt.Sprintf("%s%s: %s", s.Verb, mark(about != "", " "+about), e.Message)
	if e.Code == board.UnknownOutcome {
		x.Hint = "ask again: muster board apply --dir DIR"
		if j.again {
			x.Hint = "see whether the board has it; then remove " + applyFile + " from the folder and apply again"
		}
	}
	return &x
}

// left are the steps of a card's file that were not done, its comments apart.
func (j *journal) left() (steps map[string]bool, say map[string][]string) {
	steps, say = map[string]bool{}, map[string][]string{}
	for _, s := range j.Steps {
		if s.done {
			continue
		}
		file := s.File(j.ids)
		if text := s.Says(); text != "" {
			say[file] = append(say[file], text)
		} else {
			steps[file] = true
		}
	}
	return steps, say
}

// refresh brings the folder up to the board. What was not done stays in its files, and so does a file that was changed
// again since it was read; of those the base stays as it was.
func (f *folder) refresh(now *document.Board, j *journal, out *applyAnswer) error {
	before := f.effective()
	f.files, f.problems = map[string][]byte{}, nil
	if err := f.read(); err != nil { // as they are now
		return err
	}
	left, say := j.left()
	left[document.ProfilesFile] = left[document.WorkflowFile]
	for file, texts := range say {
		now.Say(file, texts)
	}
	u := document.UpdateOf(now, f.files, before, func(name, hash string) bool {
		return f.known(name, hash) || j.Taken[name] == hash && !left[name]
	})
	out.Kept = append(out.Kept, u.Kept...)
	if err := f.update(u); err != nil {
		return err
	}
	if err := reach("the end"); err != nil {
		return err
	}
	if err := f.root.Remove(applyFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
