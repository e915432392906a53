package document

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"muster/board"
)

// Bounds of what is read of a folder.
const (
	MaxCardFile  = 4 << 20   // bytes
	MaxOtherFile = 512 << 10 // bytes, of settings, workflow and profiles
	MaxCards     = 100_000
)

// Board is a board as documents.
type Board struct {
	Fleet  string
	Values Values // settings, params.NAME, workflow
	Cards  []*Card

	Version uint64 // of its workflow
	at      map[string]*Card
}

// Slug is the board's name.
func (b *Board) Slug() string { return b.Values.text("board") }

// Card is the card of an id, or nil.
func (b *Board) Card(id string) *Card { return b.at[id] }

// Say leaves texts in a card's file that are still to be said.
func (b *Board) Say(file string, texts []string) {
	for _, c := range b.Cards {
		if c.File == file {
			c.Fresh = append(c.Fresh, texts...)
		}
	}
}

func (b *Board) add(c *Card) {
	if b.at == nil {
		b.at = map[string]*Card{}
	}
	b.Cards = append(b.Cards, c)
	if id := c.ID(); id != "" {
		b.at[id] = c
	}
}

// FromExport reads the lines of a board's export but the last, as they come.
func FromExport(next func() ([]byte, error), done func(error) bool) (*Board, error) {
	b := &Board{Values: Values{}}
	for n := 1; ; n++ {
		line, err := next()
		if done(err) {
			break
		}
		if err != nil {
			return nil, err
		}
		if n == 1 {
			err = b.head(line)
		} else {
			err = b.line(line)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d of the export: %w", n, err)
		}
	}
	b.ready()
	return b, nil
}

// ready orders what came as it came.
func (b *Board) ready() {
	for _, c := range b.Cards {
		c.bound()
		if l := c.Values.list(fieldAfter); l != nil {
			slices.Sort(l)
		}
	}
	slices.SortFunc(b.Cards, func(x, y *Card) int { return strings.Compare(x.File, y.File) })
}

func (b *Board) head(line []byte) error {
	h, err := board.ParseExportHead(line)
	if err != nil {
		return err
	}
	b.Fleet, b.Version = h.Fleet, h.WorkflowVersion
	for name, v := range map[string]any{"board": h.Slug, "prefix": h.Prefix, "label": h.Label, "home": h.Home, "zone": h.Zone, "keep": h.Keep, fieldWorkflow: h.Workflow} {
		b.Values.set(name, v)
	}
	params := map[string]json.RawMessage{}
	if len(h.Params) > 0 {
		if err := json.Unmarshal(h.Params, &params); err != nil {
			return err
		}
	}
	for name, raw := range params {
		c, err := canonical(raw)
		if err != nil {
			return err
		}
		b.Values[paramPrefix+name] = c
	}
	return nil
}

func (b *Board) line(raw []byte) error {
	var x board.ExportLine
	if err := json.Unmarshal(raw, &x); err != nil {
		return err
	}
	switch {
	case x.Card != nil:
		b.add(cardOf(x.Card))
	case x.Event != nil && x.Event.Said:
		if c := b.at[x.Event.Card]; c != nil {
			c.say(x.Event)
		}
	case x.Link != nil:
		if c := b.at[x.Link.Card]; c != nil {
			c.Values[fieldAfter] = append(c.Values.list(fieldAfter), x.Link.After)
		}
	}
	return nil
}

func payloadText(raw []byte) string {
	var p struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &p) // an event's payload is JSON, or there is none
	return p.Text
}

// Render is the board's folder: its files by name, with the base that an apply is held against.
func (b *Board) Render() map[string][]byte {
	files := map[string][]byte{BoardFile: b.renderSettings()}
	w, p := split(b.Values.text(fieldWorkflow))
	files[WorkflowFile] = withSchema("workflow", w)
	if p != "" {
		files[ProfilesFile] = withSchema("profiles", p)
	}
	for _, c := range b.Cards {
		files[c.File] = c.render()
	}
	maps.Copy(files, schemas())
	files[BaseFile] = b.base(files).Bytes()
	return files
}

// Base is what an export remembers in the folder: for each file its hash, and for each field that of its value.
type Base struct {
	Version int                          `json:"muster_folder"`
	Fleet   string                       `json:"fleet"`
	Board   string                       `json:"board"`
	Files   map[string]string            `json:"files"`
	Values  map[string]string            `json:"values"`
	Cards   map[string]map[string]string `json:"cards"`
}

// BaseVersion is the version of a folder's form.
const BaseVersion = 1

func (b *Board) base(files map[string][]byte) *Base {
	x := &Base{Version: BaseVersion, Fleet: b.Fleet, Board: b.Slug(), Files: map[string]string{}, Values: hashes(b.Values), Cards: map[string]map[string]string{}}
	for name, raw := range files {
		x.Files[name] = FileHash(raw)
	}
	for _, c := range b.Cards {
		x.Cards[c.ID()] = c.hashes()
	}
	return x
}

func (c *Card) hashes() map[string]string {
	h := hashes(c.Values)
	h[fieldSaid] = Hash(c.thread())
	return h
}

func hashes(v Values) map[string]string {
	m := map[string]string{}
	for name, x := range v {
		m[name] = Hash(x)
	}
	return m
}

// FileHash is what a base remembers of a file.
func FileHash(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}

// Bytes is the base as a file: a line a card, so that git shows what changed.
func (x *Base) Bytes() []byte {
	var s strings.Builder
	fmt.Fprintf(&s, "{\"muster_folder\":%d,\"fleet\":%s,\"board\":%s,\n\"files\":{", x.Version, plain(x.Fleet), plain(x.Board))
	lines(&s, x.Files)
	s.WriteString("},\n\"values\":{")
	lines(&s, x.Values)
	s.WriteString("},\n\"cards\":{")
	lines(&s, x.Cards)
	s.WriteString("}}\n")
	return []byte(s.String())
}

func lines[V any](s *strings.Builder, m map[string]V) {
	for i, k := range sorted(m) {
		if i > 0 {
			s.WriteByte(',')
		}
		s.WriteString("\n" + plain(k) + ":" + plain(m[k]))
	}
	s.WriteByte('\n')
}

// ParseBase reads a base.
func ParseBase(raw []byte) (*Base, error) {
	x := &Base{}
	if err := json.Unmarshal(raw, x); err != nil || x.Version == 0 {
		return nil, board.Errorf(board.Invalid, "%s is not what an export writes", BaseFile).WithHint("make the folder anew: muster board export BOARD --dir DIR")
	}
	if x.Version != BaseVersion {
		return nil, board.Errorf(board.Invalid, "the folder has form %d; this version reads %d", x.Version, BaseVersion).WithHint("see: muster version")
	}
	return x, nil
}

var (
	cardFileRE = regexp.MustCompile(`^cards/([^/]+)\.md$`)
	idRE       = regexp.MustCompile(`^[a-z][a-z0-9]*-[0-9]+$`)
)

// Parse reads a folder's files; the board is nil where a problem is too large for a comparison.
func Parse(files map[string][]byte) (*Board, []Problem) {
	b := &Board{Values: Values{}}
	var list []Problem
	for _, name := range []string{BoardFile, WorkflowFile} {
		if files[name] == nil {
			list = append(list, Problem{File: name, Text: "the file is missing", Hint: "bring it back: muster board export BOARD --dir DIR --force"})
		}
	}
	list = append(list, b.parseSettings(files[BoardFile])...)
	list = append(list, b.parseWorkflow(files[WorkflowFile], files[ProfilesFile])...)
	for _, name := range sorted(files) {
		m := cardFileRE.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		c, bad := parseCard(name, files[name])
		list = append(list, bad...)
		if p := b.place(c, m[1]); p != nil {
			list = append(list, *p)
			continue
		}
		b.add(c)
	}
	return b, list
}

// place holds a card's id against the name of its file.
func (b *Board) place(c *Card, stem string) *Problem {
	id := c.ID()
	other := b.at[id]
	switch {
	case id == "" && idRE.MatchString(stem):
		return &Problem{File: c.File, Text: "a card's file without its id", Hint: "write id: " + stem + ", or give a new card's file another name"}
	case id == "":
		c.New = stem
	case other != nil:
		return &Problem{File: c.File, Text: "card " + id + " is in " + other.File + " as well", Hint: "keep one of the two; a new card has no id"}
	case id != stem:
		return &Problem{File: c.File, Text: "the file says that it is card " + Show(id), Hint: "name it " + cardFile("ID") + "; a new card has no id"}
	}
	return nil
}
