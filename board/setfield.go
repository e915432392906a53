package board

import (
	"math"
	"strconv"
	"strings"

	"muster/board/rule"
)

// setField gives a field of a card the value of an expression; nil clears it.
func setField(t *tx, c *Card, name string, v any) *Error {
	wrong := func(want string) *Error {
		return Errorf(Invalid, "card %s: %s takes %s, not %s", c.ID, name, want, clip(strconv.Quote(rule.Format(v)), 80)).WithCheck("field")
	}
	switch name {
	case "priority", "max_runtime", "max_retries", "goal_max_turns", "start_after":
		n, ok := v.(float64)
		if v != nil && !ok || math.Abs(n) > 1e11 {
			return wrong("a number")
		}
		setNumber(c, name, n, v == nil)
		return nil
	case "goal_mode":
		on, ok := v.(bool)
		if v != nil && !ok {
			return wrong("true or false")
		}
		c.Goal = on
		return nil
	case "skills":
		list, ok := v.([]any)
		if v != nil && !ok || len(list) > 100 {
			return wrong("a list of names")
		}
		c.Skills = nil
		for _, s := range list {
			c.Skills = append(c.Skills, clip(rule.Format(s), 200))
		}
		return nil
	case "labels":
		m, ok := v.(map[string]any)
		if v != nil && !ok || len(m) > 100 {
			return wrong("a map of labels")
		}
		c.Labels = map[string]string{}
		for k, s := range m {
			c.Labels[clip(k, 200)] = clip(rule.Format(s), 1000)
		}
		return nil
	}
	return setText(t, c, name, v, wrong)
}

func setNumber(c *Card, name string, n float64, none bool) {
	whole := int64(n)
	opt := &whole
	if none {
		opt = nil
	}
	switch name {
	case "priority":
		c.Priority = whole
	case "max_runtime":
		c.MaxRuntime = opt
	case "max_retries":
		c.MaxRetries = opt
	case "goal_max_turns":
		c.GoalMaxTurns = opt
	case "start_after":
		c.StartAfter = int64(min(max(n*1000, 0), lastStart))
	}
}

func setText(t *tx, c *Card, name string, v any, wrong func(string) *Error) *Error {
	s, ok := v.(string)
	if v != nil && !ok {
		return wrong("a text")
	}
	limit := 1 << 10
	if name == "body" {
		limit = maxBody
	}
	if len(s) > limit {
		return Errorf(Exhausted, "card %s: %s has %d bytes, more than %d", c.ID, name, len(s), limit).WithCheck("field")
	}
	switch name {
	case "title":
		if s = strings.TrimSpace(s); s == "" || strings.ContainsAny(s, "\r\n") {
			return wrong("one line of text")
		}
		c.Title = s
	case "body":
		t.putBody(c.ID, s)
	case "assignee":
		c.Assignee = s
	case "machine":
		c.Machine = s
	case "model":
		c.Model = s
	case "workspace":
		if err := checkWorkspace(s); err != nil {
			return err
		}
		c.setWorkspace(s)
	case "branch":
		if err := checkBranch(s); s != "" && err != nil {
			return err
		}
		c.setBranch(s)
	case "tenant":
		c.Tenant = s
	case "kind":
		c.Kind = s
	default:
		return Errorf(Internal, "card %s: there is no field %q to set", c.ID, name)
	}
	return nil
}
