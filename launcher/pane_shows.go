package launcher

// shown tells output that a pane shows from such that only names its window: Codex, while it asks a person, blinks its
// title, and its pane stands still. A title is ESC ] 0, 1 or 2 ; text, up to BEL or ESC \; it may come in pieces.
type shown struct{ state shownState }

type shownState uint8

const (
	shownText  shownState = iota
	shownEsc              // after ESC
	shownOSC              // after ESC ]
	shownKind             // after the digit of a title
	shownTitle            // in the title
	shownEnd              // after ESC in the title
)

// by tells whether a piece of output has anything that the pane shows.
func (s *shown) by(b []byte) (shows bool) {
	for _, c := range b {
		switch {
		case s.state == shownText && c == 0x1b:
			s.state = shownEsc
		case s.state == shownEsc && c == ']':
			s.state = shownOSC
		case s.state == shownOSC && c >= '0' && c <= '2':
			s.state = shownKind
		case s.state == shownKind && c == ';':
			s.state = shownTitle
		case s.state == shownTitle && c == 0x07, s.state == shownEnd && c == '\\':
			s.state = shownText
		case s.state == shownTitle && c == 0x1b:
			s.state = shownEnd
		case s.state == shownTitle && c != 0x18 && c != 0x1a: // CAN and SUB break a sequence off
		default:
			s.state, shows = shownText, true
		}
	}
	return shows
}
