package browser

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// corpus is text that runs something where text becomes markup, an address or a template.
var corpus = []string{
	`<img src=x onerror="window.owned=1">`, `<script>window.owned=2</script>`, `"><svg onload=window.owned=3>`, `'" autofocus onfocus=window.owned=4 x="`,
	`javascript:window.owned=5`, `<a href="javascript:window.owned=6">x</a>`, `<iframe srcdoc="<script>parent.owned=7</script>">`, `{{constructor.constructor('window.owned=8')()}}`,
	`<style>*{display:none}</style>`, `</textarea><script>window.owned=9</script>`, `<math><mtext><img src=x onerror=window.owned=10>`, "red \x1b[31m \x1b]0;owned\x07 \u202eturned\u202c",
	`<meta http-equiv=refresh content="0;url=http://127.0.0.1:1/">`, `<form action=http://127.0.0.1:1><button>`, `${window.owned=11}`,
}

// TestHostileTextRunsNothing has the corpus in every field that a person or a session fills, and looks at all of them (T22).
func TestHostileTextRunsNothing(t *testing.T) {
	m := newFleet(t, "atlas")[0]
	var ids []string
	for i, text := range corpus {
		args := []string{"--body", text, "--triage"}
		if i < 6 {
			args = append(args, "--label", "k"+fmt.Sprint(i)+"="+text[:min(len(text), 60)])
		}
		id := m.add(text, args...)
		ids = append(ids, id)
		m.must("comment", id, text)
	}
	m.must("block", ids[0], corpus[0], "--kind", "needs_input")
	m.must("block", ids[1], corpus[1], "--kind", "needs_input")
	m.must("pause", "--why", corpus[0])
	m.must("board", "set", "default", "label="+corpus[2])

	w := open(t)
	m.page(w)
	w.until("the cards are there", fmt.Sprintf(`document.querySelectorAll('a.card').length === %d`, len(ids)))
	eval[bool](w, `document.querySelector('#search').value = '<img'; true`)
	for _, id := range ids {
		eval[bool](w, fmt.Sprintf(`location.hash = '#/default/%s'; true`, id))
		w.until("the drawer is "+id+"'s", fmt.Sprintf(`document.querySelector('#drawer .bar .id')?.textContent === %q && document.querySelector('.thread li') !== null`, id))
		eval[bool](w, `document.querySelector('#tab-timeline').click(); true`)
		w.until("its timeline", `document.querySelector('.timeline li') !== null`)
	}
	for _, view := range []string{"flow", "workflow", "round"} {
		eval[bool](w, fmt.Sprintf(`location.hash = '#/default/-/%s'; true`, view))
		w.until(view, fmt.Sprintf(`document.querySelector('#view.view-%s h2') !== null`, view))
	}
	eval[bool](w, `location.hash = '#/default'; true`)
	w.shot("board")
	if owned := eval[string](w, `String(window.owned)`); owned != "undefined" {
		t.Errorf("something ran: %s", owned)
	}
	for _, sel := range []string{"img:not(.brand img)", "iframe", "script:not([src='/js/main.js'])", "style", "math", "form[action]", "[onerror]", "[onload]", "[onfocus]", "a[href^=javascript]"} {
		if n := eval[int](w, fmt.Sprintf(`document.querySelectorAll(%q).length`, sel)); n != 0 {
			t.Errorf("%d elements %s stand in the page", n, sel)
		}
	}
	if out := eval[int](w, `performance.getEntriesByType('resource').filter(x => new URL(x.name).origin !== location.origin).length`); out != 0 {
		t.Errorf("%d requests went elsewhere", out)
	}
	w.clean()
}

// axe-core, as npm gives it: a development dependency, never part of the binary.
const (
	axeVersion = "4.14.1"
	axeSum     = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
)

func axe(t *testing.T) string {
	t.Helper()
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("needs npm: axe-core comes from its registry")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	file := filepath.Join(cache, "muster-axe-"+axeVersion+".js")
	b, err := os.ReadFile(file)
	if err != nil {
		dir := t.TempDir()
		for _, argv := range [][]string{{npm, "pack", "--silent", "axe-core@" + axeVersion}, {"tar", "xzf", "axe-core-" + axeVersion + ".tgz"}} {
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Skipf("needs npm's registry: axe-core cannot be had: %v %s", err, out)
			}
		}
		if b, err = os.ReadFile(filepath.Join(dir, "package", "axe.min.js")); err != nil {
			t.Fatal(err)
		}
		_ = os.WriteFile(file, b, 0o600) // the next run takes it from there
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != axeSum {
		t.Fatalf("%s is not axe-core %s", file, axeVersion)
	}
	return string(b)
}

// TestAccessible: axe finds nothing serious in any part of the page, in both schemes.
func TestAccessible(t *testing.T) {
	source := axe(t)
	m := newFleet(t, "atlas")[0]
	id := m.add("Write the release notes", "--body", "sleep 1000", "--label", "area=docs", "--priority", "2")
	m.add("Tell the customers", "--after", id, "--label", "area=docs")
	m.add("What about a dark theme?", "--triage")
	b := m.add("Choose the licence header", "--triage")
	m.must("block", b, "MIT or Apache?", "--kind", "needs_input")
	m.must("comment", id, "The old ones stay.")
	w := open(t)
	m.page(w)
	w.until("it runs", in(id, "running"))
	eval[bool](w, source+"; true")
	look := func(what string) {
		t.Helper()
		type fault struct {
			ID, Impact, Help string
			Nodes            []struct{ HTML, FailureSummary string }
		}
		var found []fault
		raw := eval[string](w, `axe.run(document, {resultTypes: ['violations']}).then(r => JSON.stringify(r.violations))`)
		if err := json.Unmarshal([]byte(raw), &found); err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if f.Impact == "serious" || f.Impact == "critical" {
				t.Errorf("%s: %s: %s: %.600v", what, f.ID, f.Help, f.Nodes)
			} else {
				t.Logf("%s: %s (%s): %s", what, f.ID, f.Impact, f.Help)
			}
		}
	}
	for _, scheme := range []string{"light", "dark"} {
		w.size(1600, 900, scheme)
		look("board, " + scheme)
		eval[bool](w, fmt.Sprintf(`location.hash = '#/default/%s'; true`, id))
		w.until("the drawer", `document.querySelector('.composer') !== null`)
		look("drawer, " + scheme)
		w.key("2")
		w.until("the log", `document.querySelector('pre.log') !== null`)
		look("log, " + scheme)
		w.key("Escape")
		w.key("n")
		w.until("the form", `document.querySelector('dialog[open]') !== null`)
		look("form, " + scheme)
		eval[bool](w, `document.querySelector('dialog').close(); true`)
		for _, view := range []string{"flow", "workflow", "round", "doctor"} {
			eval[bool](w, fmt.Sprintf(`location.hash = '#/default/-/%s'; true`, view))
			w.until(view, fmt.Sprintf(`document.querySelector('#view.view-%s h2') !== null`, view))
			look(view + ", " + scheme)
		}
		eval[bool](w, `location.hash = '#/default'; true`)
	}
	w.size(390, 844, "light")
	look("phone")
	w.clean()
}
