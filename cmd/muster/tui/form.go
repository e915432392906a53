package tui

import (
	"strings"

	"muster/cmd/muster/api"
)

// boxes are what stands before a view: at most one of them.
type boxes struct {
	form  *form
	menu  *menu
	forms int // number of the last form
}

// field is one thing that a form asks.
type field struct {
	name, label string
	must        bool
	choices     [][2]string // value and text; none: it is typed
	chosen      int
	in          lineInput
}

func (f *field) value() string {
	if f.choices != nil {
		return f.choices[f.chosen][0]
	}
	return strings.TrimSpace(f.in.String())
}

// form asks a person for words; it stays until it is left, or until what was asked is done.
type form struct {
	number  int
	title   string
	note    string
	fields  []field
	at      int
	wrong   string
	busy    bool
	request string // id of a try whose outcome is unknown
	sent    string // what that try said
	makes   func(values map[string]string) askDo
}

// menu lets a person choose. One without rows is a word that stays until Esc: keys that were meant for something
// else do nothing.
type menu struct {
	title string
	rows  []string
	looks []string
	at    int
	pick  func(i int) []ask
}

func (m *model) ask(f *form) []ask {
	m.forms++
	f.number = m.forms
	m.form, m.menu, m.toast = f, nil, ""
	return nil
}

func (m *model) formKey(k keyMsg) []ask {
	f := m.form
	if k.name == "esc" {
		if f.busy {
			m.say("it was sent; its outcome is told when it is known", false)
		}
		m.form = nil
		return nil
	}
	if f.busy {
		return nil
	}
	var here *field
	if len(f.fields) > 0 {
		here = &f.fields[f.at]
	}
	switch {
	case k.name == "ctrl+s", k.name == "enter" && f.at >= len(f.fields)-1:
		return m.submit()
	case k.name == "enter", k.name == "tab", k.name == "down":
		f.at = (f.at + 1) % max(len(f.fields), 1)
	case k.name == "shift+tab", k.name == "up":
		f.at = (f.at + len(f.fields) - 1) % max(len(f.fields), 1)
	case here == nil:
	case here.choices != nil:
		switch k.name {
		case "left", "h":
			here.chosen = (here.chosen + len(here.choices) - 1) % len(here.choices)
		case "right", "l", "space":
			here.chosen = (here.chosen + 1) % len(here.choices)
		}
	case k.name == "ctrl+j", k.name == "alt+enter":
		here.in.insert("\n")
	default:
		here.in.key(k)
	}
	return nil
}

func (m *model) submit() []ask {
	f := m.form
	values := map[string]string{}
	said := ""
	for i := range f.fields {
		x := &f.fields[i]
		v := x.value()
		if x.must && v == "" {
			f.at, f.wrong = i, x.label+": say something"
			return nil
		}
		values[x.name] = v
		said += x.name + "=" + v + "\x00"
	}
	a := f.makes(values)
	a.form = f.number
	if f.request != "" && f.sent == said { // the same words: under the same id they are taken once
		a.id = f.request
	}
	f.busy, f.wrong, f.request, f.sent = true, "", "", said
	return []ask{a}
}

func (m *model) menuKey(k keyMsg) []ask {
	n := m.menu
	if len(n.rows) == 0 && k.name != "esc" {
		return nil
	}
	switch k.name {
	case "esc", "q":
		m.menu = nil
	case "j", "down":
		n.at = min(n.at+1, len(n.rows)-1)
	case "k", "up":
		n.at = max(n.at-1, 0)
	case "enter":
		m.menu = nil
		return n.pick(n.at)
	}
	return nil
}

// box draws the form or the menu, and tells where the cursor stands.
func (m *model) box(room int) (rows []string, x, y int) {
	if m.menu != nil {
		for _, r := range wrap(line(m.menu.title), m.w) {
			rows = append(rows, paint(bold, r))
		}
		fits := max(room-len(rows), 1)
		top := min(max(m.menu.at-fits+1, 0), max(len(m.menu.rows)-fits, 0))
		for i := top; i < len(m.menu.rows) && i < top+fits; i++ {
			text, look := "  "+m.menu.rows[i], m.menu.looks[i]
			if i == m.menu.at {
				text, look = "> "+m.menu.rows[i], chosen
			}
			rows = append(rows, paint(look, fit(text, m.w)))
		}
		return rows, -1, -1
	}
	return m.form.draw(m.w, room)
}

func (f *form) draw(w, room int) (rows []string, x, y int) {
	x, y = -1, -1
	rows = append(rows, paint(bold, cut(line(f.title), w)))
	if f.note != "" {
		rows = append(rows, paint(dim, cut(line(f.note), w)))
	}
	for i := range f.fields {
		d := &f.fields[i]
		label := "  " + d.label
		if d.must {
			label += " *"
		}
		if i == f.at {
			label = "> " + label[2:]
		}
		rows = append(rows, paint(dim, cut(label, w)))
		if d.choices != nil {
			text := "    < " + line(d.choices[d.chosen][1]) + " >"
			rows = append(rows, cut(text, w))
			continue
		}
		text, cx, cy := d.in.layout(w - 5)
		most := 1
		if d.in.area {
			most = 5
		}
		top := min(max(cy-most+1, 0), max(len(text)-most, 0))
		for k := top; k < min(len(text), top+most); k++ {
			if i == f.at && k == cy {
				x, y = 4+cx, len(rows)
			}
			rows = append(rows, "    "+text[k])
		}
	}
	switch {
	case f.busy:
		rows = append(rows, "", paint(dim, "  sending ..."))
	case f.wrong != "":
		rows = append(rows, "")
		for _, r := range wrap(line(f.wrong), w-2) {
			rows = append(rows, paint(redBold, "  "+r))
		}
	}
	if over := len(rows) - room; over > 0 { // what is being typed stays in sight
		top := min(max(y-room+2, 0), over)
		if f.wrong != "" || y < 0 {
			top = over
		}
		rows, y = rows[top:top+room], y-top
	}
	if y < 0 || f.busy {
		return rows, -1, -1
	}
	return rows, x, y
}

func typed(name, label string, area, must bool, text string) field {
	in := lineInput{area: area}
	in.insert(text)
	return field{name: name, label: label, must: must, in: in}
}

func (m *model) profiles(first, chosen string) field {
	f := field{name: "assignee", label: "profile"}
	if first != "" {
		f.choices = [][2]string{{"", first}}
	}
	if m.board != nil {
		for _, p := range sorted(m.board.Profiles) {
			if p == chosen {
				f.chosen = len(f.choices)
			}
			f.choices = append(f.choices, [2]string{p, p})
		}
	}
	if len(f.choices) == 0 {
		f.choices = [][2]string{{"", "none"}}
	}
	return f
}

// menuOfMoves lists what may be said of a card, then what may not and why.
func (m *model) menuOfMoves(x movesMsg) {
	delete(m.asking, "moves/"+x.id)
	switch {
	case x.err != nil:
		m.fail(x.err)
		return
	case x.id != m.target() || m.form != nil:
		return
	}
	n := &menu{title: x.id + ": what?"}
	var list []api.Move
	for _, ok := range []bool{true, false} {
		for _, v := range x.list {
			if v.OK != ok || elsewhere[v.Event] {
				continue
			}
			text, look := fit(sayOf(v.Event), 18), plain
			switch {
			case !ok:
				text, look = text+"  no: "+v.Text, dim
			case v.Target != "":
				text += "  -> " + v.Target
			}
			list = append(list, v)
			n.rows, n.looks = append(n.rows, line(text)), append(n.looks, look)
		}
	}
	if len(list) == 0 {
		m.say(x.id+": nothing can be said of it now", true)
		return
	}
	n.pick = func(i int) []ask {
		if v := list[i]; !v.OK {
			text := v.Text
			if v.Hint != "" {
				text += " (" + v.Hint + ")"
			}
			m.say(text, true)
			return nil
		}
		return m.fire(x.id, list[i].Event)
	}
	m.menu = n
}
