package board

import (
	"strings"
	"testing"
)

// Fields that nothing could come of are refused at filing, not when the card
// would start, and leave nothing behind.
func TestCardFieldsRefused(t *testing.T) {
	f := newFleet(t)
	text := func(s string) *string { return &s }
	num := func(n int64) *int64 { return &n }
	for name, x := range map[string]struct {
		fields CardFields
		code   Code
		words  string
	}{
		"other workspace":   {CardFields{Workspace: text("moon:1")}, Invalid, "use scratch, dir:/PATH or worktree:REPO"},
		"no repository":     {CardFields{Workspace: text("worktree:")}, Invalid, "worktree:REPO"},
		"option for one":    {CardFields{Workspace: text("worktree:--upload-pack=x")}, Invalid, "no URL, path or name"},
		"command for one":   {CardFields{Workspace: text("worktree:ext::sh")}, Invalid, "no URL, path or name"},
		"lines for one":     {CardFields{Workspace: text("worktree:a\nb")}, Invalid, "no URL, path or name"},
		"relative folder":   {CardFields{Workspace: text("dir:tmp")}, Invalid, "dir:/PATH"},
		"folder of lines":   {CardFields{Workspace: text("dir:/tmp\nx")}, Invalid, "dir:/PATH"},
		"branch of a dir":   {CardFields{Branch: text("b"), Workspace: text("dir:/tmp")}, Invalid, "a branch is that of a worktree"},
		"option as branch":  {CardFields{Branch: text("--upload-pack=x")}, Invalid, "no name for a branch"},
		"range as branch":   {CardFields{Branch: text("a..b")}, Invalid, "no name for a branch"},
		"lock as branch":    {CardFields{Branch: text("a.lock/b")}, Invalid, "no name for a branch"},
		"no part of branch": {CardFields{Branch: text("a//b")}, Invalid, "no name for a branch"},
		"branch of spaces":  {CardFields{Branch: text("a b")}, Invalid, "no name for a branch"},
		"revision":          {CardFields{Branch: text("a@{1}")}, Invalid, "no name for a branch"},
		"no runtime":        {CardFields{MaxRuntime: num(0)}, Invalid, "at least a second"},
		"runtime below 0":   {CardFields{MaxRuntime: num(-1)}, Invalid, "max_runtime=-1"},
		"after 2200":        {CardFields{StartAfter: num(253402214400000)}, Invalid, "after 2200"},
		"far after 2200":    {CardFields{StartAfter: num(1 << 62)}, Invalid, "after 2200"},
		"before 1970":       {CardFields{StartAfter: num(-1)}, Invalid, "before 1970"},
		"label of lines":    {CardFields{Labels: map[string]string{"a\nb": "c"}}, Invalid, "one line"},
		"value of lines":    {CardFields{Labels: map[string]string{"a": "b\rc"}}, Invalid, "one line"},
		"label with a sign": {CardFields{Labels: map[string]string{"a=b": "c"}}, Invalid, "has no ="},
	} {
		t.Run(name, func(t *testing.T) {
			x.fields.Title = text("x")
			before := f.v.Seq()
			res := f.do(f.person(VCardAdd), CardAdd{Board: "default", CardFields: x.fields})
			if res.Err == nil || res.Err.Code != x.code || !strings.Contains(res.Err.Message, x.words) || f.v.Seq() != before {
				t.Errorf("%v, want %s with %q; seq %d, was %d", res.Err, x.code, x.words, f.v.Seq(), before)
			}
		})
	}
	f.must(f.person(VCardAdd), CardAdd{Board: "default", CardFields: CardFields{Title: text("x"), StartAfter: num(lastStart), MaxRuntime: num(1), Labels: map[string]string{"a": "b=c"}}})
}

// The first node of a fleet is looked at like every other, and labels of nodes are one line.
func TestFirstNodeIsChecked(t *testing.T) {
	for _, n := range []NodeUp{{Name: "\xff"}, {Name: strings.Repeat("x", 300)}, {Name: ""}, {Name: "a", Labels: map[string]string{"k\n": "v"}}} {
		n.ID = "n1"
		f := &fleet{t: t, v: NewMemView(), ws: NewWorkflows(), now: t0}
		if res := f.do(Request{Actor: Platform(), Verb: VFleetInit}, FleetInit{ID: "f", EraTag: "t", Node: n}); res.Err == nil || GetFleet(f.v) != nil {
			t.Errorf("node %q, labels %q start a fleet", n.Name, n.Labels)
		}
	}
}
