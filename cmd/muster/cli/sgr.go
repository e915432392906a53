package cli

import (
	"strings"

	"muster/cmd/muster/harmless"
)

// coloured makes control characters visible but for colours (SGR), which can do
// no harm and end with the line; a carriage return before the line's end is dropped.
func coloured(s string) string {
	end := ""
	if strings.HasSuffix(s, "\n") {
		s, end = strings.TrimSuffix(strings.TrimSuffix(s, "\n"), "\r"), "\n"
	}
	var b strings.Builder
	painted := false
	for {
		i := strings.Index(s, "\x1b[")
		if i < 0 {
			b.WriteString(harmless.Keep(s, "\t"))
			break
		}
		b.WriteString(harmless.Keep(s[:i], "\t"))
		n := 2
		for i+n < len(s) && n < 40 && (s[i+n] >= '0' && s[i+n] <= '9' || s[i+n] == ';' || s[i+n] == ':') {
			n++
		}
		if i+n < len(s) && s[i+n] == 'm' {
			b.WriteString(s[i : i+n+1])
			painted = true
			n++
		} else {
			b.WriteString(harmless.Keep(s[i:i+n], "\t"))
		}
		s = s[i+n:]
	}
	if painted {
		b.WriteString("\x1b[0m")
	}
	return b.String() + end
}
