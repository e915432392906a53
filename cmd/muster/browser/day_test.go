package browser

import (
	"fmt"
	"strings"
	"testing"

	"muster/cmd/muster/api"

	"github.com/chromedp/chromedp"
)

// TestDay is a person's day with the page open on a machine that does not lead: every
// flow once, the leader killed in the middle, and the page's own node started anew.
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

	leader, others := split(t, fleet)
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
	dragTo(filed, "todo")
	w.until("it asks for the answer", `document.querySelector('dialog[open] #f-why') !== null`)
	w.write("#f-why", "Apache.")
	w.click("dialog button.primary")
	w.until("it goes on", in(filed, "running"))

	w.do("drag a card", chromedp.DragAndDrop(chromedp.CSS(card(release)), chromedp.CSS(`.column[data-status="running"]`)))
	w.until("it stays where it was", in(release, "todo"))

	w.key("/") // filter
	w.write("#search", "area=deps")
	w.until("only those are shown", `[...document.querySelectorAll('a.card')].every(x => x.textContent.includes('Upgrade')) && document.querySelectorAll('a.card').length === 4`)
	w.write("#search", "")

	eval[bool](w, fmt.Sprintf(`location.hash = '#/default/%s'; true`, grammar))
	w.until("the drawer is the card's", fmt.Sprintf(`document.querySelector('#drawer .bar .id')?.textContent === %q && document.querySelector('.tabs')`, grammar))
	w.key("2")
	w.until("the log is followed", `/step \d+\nstep/.test(document.querySelector('pre.log')?.textContent || '')`)
	w.shot("log")
	w.key("3")
	w.until("the timeline is there", `document.querySelector('.timeline')?.textContent.includes('claimed')`)

	leader.kill() // while the page looks on
	w.until("the fleet shows who is away", fmt.Sprintf(`[...document.querySelectorAll('.machine:not(.state-online)')].some(x => x.textContent.includes(%q))`, leader.name))
	w.shot("leader-killed")
	late := others[1].add("Filed after the leader died", "--triage")
	w.until("what is filed elsewhere is seen", in(late, "triage"))

	w.key("Escape")
	here.kill() // its own node: it says so, and comes back by itself
	w.until("the page says that it is away", `document.querySelector('#link').classList.contains('down') && document.querySelector('#banner').textContent.includes('as of')`)
	w.shot("node-away")
	leader.up()
	here.up()
	w.until("it is live again", `document.querySelector('#link').classList.contains('live') && document.querySelector('#banner').hidden`)
	again := leader.add("Filed after all came back", "--triage")
	w.until("and shows what happens", in(again, "triage"))

	for _, view := range []string{"flow", "workflow", "round", "doctor"} {
		eval[bool](w, fmt.Sprintf(`location.hash = '#/default/-/%s'; true`, view))
		w.until(view+" is there", fmt.Sprintf(`document.querySelector('#view.view-%s h2') !== null`, view))
		w.shot(view)
	}
	eval[bool](w, `location.hash = '#/default'; true`)
	w.size(1600, 900, "dark")
	w.until("the board is there again", in(again, "triage"))
	w.shot("dark")
	w.size(390, 844, "light")
	w.shot("phone")
	w.clean()
}

// split is the machine that leads, and the others.
func split(t *testing.T, fleet []*machine) (leader *machine, others []*machine) {
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
		if m.name == name {
			leader = m
		} else {
			others = append(others, m)
		}
	}
	return leader, others
}
