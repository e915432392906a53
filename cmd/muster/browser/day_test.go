package browser

import (
	"fmt"
	"strings"
	"testing"

	"muster/cmd/muster/api"

	"github.com/chromedp/chromedp"
)

// TestDay is a person's day with the page open on a machine that does not lead: they
// file, comment, block, answer and drag, and read why a card stays.
func TestDay(t *testing.T) {
	fleet := newFleet(t, "atlas", "borea", "cygni")
	atlas := fleet[0]
	grammar := atlas.add("Move the parser to the new grammar", "--body", `i=0; while [ $i -lt 900 ]; do i=$((i+1)); echo "step $i"; sleep 1; done`, "--label", "area=parser", "--priority", "2")
	release := atlas.add("Publish the release", "--after", grammar, "--label", "area=release")
	atlas.add("Flaky test in the importer", "--assignee", "slow", "--label", "area=tests")
	waits := atlas.add("Cache the index between runs", "--assignee", "slow", "--label", "area=index")
	atlas.add("What about a dark theme?", "--triage")
	for i := range 4 {
		atlas.add(fmt.Sprintf("Upgrade dependency %d", i+1), "--body", "echo upgraded", "--label", "area=deps")
	}

	others := followers(t, fleet)
	here := others[0]
	w := open(t)
	here.page(w)
	if got := eval[string](w, `location.href`); strings.Contains(got, "code") {
		t.Errorf("the code stays in the address: %s", got)
	}
	w.until("a card runs", in(grammar, "running"))
	w.until("another waits for room", in(waits, "ready"))
	w.shot("board")

	w.key("n") // file a card
	w.until("the form is there", `document.querySelector('dialog[open] #f-title') !== null`)
	w.write("#f-title", "Choose the licence header")
	w.write("#f-body", "sleep 1000")
	w.click("dialog button.primary")
	w.until("it is filed and runs", `[...document.querySelectorAll('.column[data-status=running] .card .title')].some(x => x.textContent === 'Choose the licence header')`)
	filed := eval[string](w, `[...document.querySelectorAll('.card')].find(x => x.textContent.includes('Choose the licence')).dataset.id`)

	w.click(card(filed)) // comment on it
	w.until("its drawer is open", `document.querySelector('.composer textarea') !== null`)
	w.write(".composer textarea", "Legal has no preference.")
	w.click(".composer button")
	w.until("the thread has it", `document.querySelector('.thread')?.textContent.includes('Legal has no preference.')`)

	eval[bool](w, `[...document.querySelectorAll('.actions button')].find(x => x.textContent === 'Block').click(); true`) // block it
	w.until("it asks why", `document.querySelector('dialog[open] #f-reason') !== null`)
	w.write("#f-reason", "MIT or Apache?")
	w.click("dialog button.primary")
	w.until("it is blocked", in(filed, "blocked"))
	w.until("it is on the list of what needs a person", `document.querySelector('#needs').textContent.includes('MIT or Apache?')`)
	w.shot("drawer")
	w.key("Escape")

	dragTo := func(id, status string) {
		eval[bool](w, fmt.Sprintf(`(async () => { const m = await import('/js/drag.js'); m.dropped(%q, %q); return true; })()`, id, status))
	}
	dragTo(release, "running") // nothing leads there: the reason
	w.until("the reason is told", `document.querySelector('.toast.bad')?.textContent.includes('stays in todo')`)
	dragTo(filed, "ready") // from todo it goes on at once
	w.until("it asks for the answer", `document.querySelector('dialog[open] #f-why') !== null`)
	w.write("#f-why", "Apache.")
	w.click("dialog button.primary")
	w.until("it goes on", in(filed, "running"))

	w.do("drag a card", chromedp.DragAndDrop(chromedp.CSS(card(release)), chromedp.CSS(`.column[data-status="running"]`)))
	w.until("it stays where it was", in(release, "todo"))

	w.shot("end")
	w.clean()
}

// followers are the machines that do not lead.
func followers(t *testing.T, fleet []*machine) (others []*machine) {
	t.Helper()
	name := ""
	fleet[0].until("one leads", func(s api.Status) bool {
		for _, n := range s.Nodes {
			if n.Leader {
				name = n.Name
			}
		}
		return name != ""
	})
	for _, m := range fleet {
		if m.name != name {
			others = append(others, m)
		}
	}
	return others
}
