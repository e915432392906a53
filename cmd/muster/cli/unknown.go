package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// unknownVerb is what is said of a first word that is no verb: the one verb that is one slip away, or
// those that some nouns have under that name. Several verbs that merely look alike are not named.
func unknownVerb(root *cobra.Command, said string) string {
	said, _, _ = strings.Cut(said, "\n")
	_, rest, _ := strings.Cut(said, `"`)
	word, _, _ := strings.Cut(rest, `"`)
	var near, under []string
	for _, c := range root.Commands() {
		if c.Hidden {
			continue
		}
		if len(word) > 2 && oneSlip(word, c.Name()) {
			near = append(near, c.Name())
		}
		for _, sub := range c.Commands() {
			if sub.Name() == word {
				under = append(under, "muster "+c.Name()+" "+word)
			}
		}
	}
	switch {
	case len(near) == 1:
		return fmt.Sprintf("%s; did you mean: muster %s?", said, near[0])
	case len(under) > 0:
		return fmt.Sprintf("%s; there is: %s", said, strings.Join(under, ", "))
	}
	return said
}

// oneSlip tells whether two words differ by one letter more, less or other, or by two that are swapped.
func oneSlip(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch len(b) - len(a) {
	case 0:
		return a != b && (a[i+1:] == b[i+1:] || i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:])
	case 1:
		return a[i:] == b[i+1:]
	}
	return false
}
