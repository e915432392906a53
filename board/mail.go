package board

import (
	"fmt"
	"strings"
)

// mailText is what the sessions of a slot could not be told, for the next
// run's prompt; "" when there is nothing.
func mailText(v View, card, slot string) string {
	var list []*Delivery
	scan(v, TDelivery, SlotKey(card, slot)+"/", "", func(_ string, d *Delivery) bool { list = append(list, d); return true })
	lost := GetMailbox(v, SlotKey(card, slot)).Lost
	if len(list) == 0 && lost == 0 {
		return ""
	}
	var lines []string
	size, left := 0, int(lost)
	for i := len(list) - 1; i >= 0; i-- { // the newest are told first of all
		line := mailLine(list[i])
		if len(lines) == maxPromptList || size+len(line) > maxPromptMail {
			left += i + 1
			break
		}
		size += len(line)
		lines = append(lines, line)
	}
	var b strings.Builder
	b.WriteString("\n\nNot told to a session of this card before:\n")
	if left > 0 {
		fmt.Fprintf(&b, "- (%d older ones are left out: muster events --card %s)\n", left, card)
	}
	for i := len(lines) - 1; i >= 0; i-- {
		b.WriteString(lines[i])
	}
	return b.String()
}

func mailLine(d *Delivery) string {
	mark := ""
	if d.State == DeliveryUnknown {
		mark = " (it may have been told)"
	}
	if d.Kind == DeliverNotice {
		text := strings.TrimSpace(d.Text)
		if lines := strings.Split(text, "\n"); len(lines) > 2 { // without what marks it, and the way to see it: the heading says the first
			text = strings.Join(lines[1:len(lines)-1], " ")
		}
		return fmt.Sprintf("- %s%s: %s\n", stamp(d.At), mark, clip(text, maxNotice))
	}
	return fmt.Sprintf("- %s%s: %s\n", stamp(d.At), mark, clip(d.Text, maxPromptEach))
}
