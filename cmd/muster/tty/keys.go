package tty

import "bytes"

// LeaveKey ends a look and leaves the session running: Ctrl-].
const LeaveKey = 0x1d

// Keys tells the key that leaves from the same byte in what is pasted. The zero value is ready.
type Keys struct {
	pasting bool
	tail    []byte // the end of what came before: a mark may be cut in two
}

var pasteBegins, pasteEnds = []byte("\x1b[200~"), []byte("\x1b[201~")

// Leaves tells whether what a terminal just gave is the key that leaves. It is when it comes by itself,
// as keys of people do, and outside of a marked paste. With loose it may come among others: what is typed
// goes nowhere then.
func (k *Keys) Leaves(b []byte, loose bool) bool {
	was := k.pasting
	all := append(k.tail, b...)
	begin, end := bytes.LastIndex(all, pasteBegins), bytes.LastIndex(all, pasteEnds)
	if begin >= 0 || end >= 0 {
		k.pasting = begin > end
	}
	k.tail = append([]byte(nil), all[max(0, len(all)-len(pasteBegins)+1):]...)
	if loose {
		return bytes.IndexByte(b, LeaveKey) >= 0
	}
	return !was && len(b) == 1 && b[0] == LeaveKey
}
