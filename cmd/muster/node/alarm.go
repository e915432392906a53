package node

import (
	"fmt"
	"slices"
	"time"
)

// alarm is what people should know of this node, shown by every node's status.
type alarm struct {
	text string
	at   time.Time
}

// alarmFor is how long an alarm is shown that nothing ends by itself.
const alarmFor = time.Hour

// warn raises an alarm, and logs it.
func (n *Node) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	n.log.Error(text)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.alarms = slices.DeleteFunc(n.alarms, func(a alarm) bool { return a.text == text })
	n.alarms = append(n.alarms, alarm{text: text, at: time.Now()})
	if len(n.alarms) > 10 {
		n.alarms = n.alarms[1:]
	}
}

// ownAlarms are this node's, as they are told with each contact.
func (n *Node) ownAlarms() (list []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.alarms = slices.DeleteFunc(n.alarms, func(a alarm) bool { return time.Since(a.at) > alarmFor })
	for _, a := range n.alarms {
		list = append(list, a.text)
	}
	return list
}
