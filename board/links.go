package board

import "fmt"

// mintCard makes the record of a board's next card; the board is stored, the card is not.
func (t *tx) mintCard(b *Board) *Card {
	b.NextCard++
	t.putBoard(b)
	return &Card{ID: fmt.Sprintf("%s-%d", b.Prefix, b.NextCard), Board: b.Slug, Created: t.env.Now, Creator: t.req.Actor}
}

// Bounds of dependencies: of one card, and of a walk that looks for a circle.
const (
	maxParents = 500
	maxWalk    = 10_000
)

// addLink makes child wait for parent (BRD-10). Both are stored. A link that is
// there already is no error; a circle is.
func (t *tx) addLink(child, parent string) *Error {
	switch {
	case child == parent:
		return Errorf(Refused, "card %s cannot wait for itself", child).WithCheck("link")
	case !t.cardThere(parent, child):
		return Errorf(NotFound, "there is no card %q to wait for", clip(parent, 60)).WithCheck("link")
	case GetCard(t, child) == nil:
		return Errorf(NotFound, "there is no card %q", clip(child, 60)).WithCheck("link")
	case t.Has(TLink, LinkKey(child, parent)):
		return nil
	}
	if n := len(Parents(t, child)); n >= maxParents {
		return Errorf(Exhausted, "card %s waits for %d cards already", child, n).WithCheck("link")
	}
	if err := t.noCircle(child, parent); err != nil {
		return err
	}
	t.put(TLink, LinkKey(child, parent), &Link{Child: child, Parent: parent, At: t.env.Now})
	t.write(Op{Table: TChild, Key: ChildKey(parent, child)})
	return nil
}

// noCircle walks from parent to what it waits for; child must not be there.
func (t *tx) noCircle(child, parent string) *Error {
	seen := map[string]bool{parent: true}
	for todo := []string{parent}; len(todo) > 0; {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if id == child {
			return Errorf(Refused, "card %s waits for %s already: they would wait for each other", parent, child).WithCheck("link")
		}
		for _, p := range Parents(t, id) {
			if !seen[p] {
				seen[p] = true
				todo = append(todo, p)
			}
		}
		if len(seen) > maxWalk {
			return Errorf(Exhausted, "card %s stands on more than %d cards", parent, maxWalk).WithCheck("link")
		}
	}
	return nil
}

// cardThere tells whether a card may be named by another: it is there, and so is
// its board, unless both are being imported with it.
func (t *tx) cardThere(id, by string) bool {
	c := GetCard(t, id)
	return c != nil && (t.Has(TBoard, c.Board) || PrefixOfCard(id) == PrefixOfCard(by))
}
