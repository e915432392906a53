package document

import "strings"

// An Update is how a folder comes to hold a board: which files are written, which
// are taken away, and which stay as they are because somebody changed them.
type Update struct {
	Write  []string // in order, the base last
	Remove []string
	Kept   []string // changed in the folder, and not ours to replace
	Files  map[string][]byte
}

// Known tells of a file's content whether it may be replaced: it is what an export
// or an update under way wrote there, or what was taken back just now.
type Known func(name, hash string) bool

// UpdateOf plans the update of a folder that holds files, to the board's. Of a file
// that is kept the base stays what it was, so that what is changed in it is found again.
func UpdateOf(b *Board, files map[string][]byte, old *Base, known Known) *Update {
	u := &Update{Files: b.Render()}
	next := b.base(u.Files)
	delete(next.Files, BaseFile)
	if old == nil {
		old = &Base{}
	}
	for _, name := range sorted(u.Files) {
		has, there := files[name]
		switch hash := FileHash(has); {
		case name == BaseFile || there && hash == next.Files[name]:
		case strings.HasPrefix(name, SchemaFolder): // muster's own
			u.Write = append(u.Write, name)
		case !there && (old.Files[name] == "" || known(name, "")):
			u.Write = append(u.Write, name)
		case there && known(name, hash):
			u.Write = append(u.Write, name)
		default:
			u.Kept = append(u.Kept, name)
			next.keep(name, old)
		}
	}
	for _, name := range sorted(files) {
		if u.Files[name] != nil || !ours(name) {
			continue
		}
		if known(name, FileHash(files[name])) {
			u.Remove = append(u.Remove, name)
		}
	}
	u.Files[BaseFile] = next.Bytes()
	return u
}

// SchemaNames are the files of the schemas.
func SchemaNames() []string { return sorted(schemas()) }

// ours are the files that an export writes.
func ours(name string) bool {
	return name == BoardFile || name == WorkflowFile || name == ProfilesFile || cardFileRE.MatchString(name)
}

// keep leaves of one file what the base before said.
func (x *Base) keep(name string, old *Base) {
	delete(x.Files, name)
	if h := old.Files[name]; h != "" {
		x.Files[name] = h
	}
	if m := cardFileRE.FindStringSubmatch(name); m != nil {
		delete(x.Cards, m[1])
		if c := old.Cards[m[1]]; c != nil {
			x.Cards[m[1]] = c
		}
		return
	}
	workflow := name != BoardFile
	for field := range x.Values {
		if (field == fieldWorkflow) == workflow {
			delete(x.Values, field)
		}
	}
	for field, h := range old.Values {
		if (field == fieldWorkflow) == workflow {
			x.Values[field] = h
		}
	}
}

// Over is the base of a folder in which an update was broken off: of each file that
// holds what the update wrote, the update's; of the others the one before.
func (x *Base) Over(next *Base, files map[string][]byte) *Base {
	out := *next
	for name := range next.Files {
		if raw, ok := files[name]; !ok || FileHash(raw) != next.Files[name] {
			out.keep(name, x)
		}
	}
	return &out
}
