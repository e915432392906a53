package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// maxText is how much is read of a file or of stdin; a node takes less.
const maxText = 64 << 20

// utf8Only refuses bytes that are no text: written as JSON they would be stored
// as something else, and nobody would be told.
func utf8Only(what, s string) error {
	if utf8.ValidString(s) {
		return nil
	}
	at := 0
	for at < len(s) {
		r, n := utf8.DecodeRuneInString(s[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	return usagef("%s is no text in UTF-8 (byte %d of %d is 0x%02x); nothing was sent", what, at+1, len(s), s[at])
}

// utf8Args looks at all words of a call before anything is done with them.
func utf8Args(args []string) error {
	for i, s := range args {
		if err := utf8Only(fmt.Sprintf("argument %d", i+1), s); err != nil {
			return err
		}
	}
	return nil
}

// source is the text of a file; "-" is stdin.
func (a *app) source(file string) ([]byte, error) {
	in, what := a.io.In, "stdin"
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, notFile(err)
		}
		defer f.Close()
		in, what = f, file
	}
	b, err := io.ReadAll(io.LimitReader(in, maxText+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if len(b) > maxText {
		return nil, usagef("%s holds more than %d MB", what, maxText>>20)
	}
	return b, utf8Only(what, string(b))
}

// notFile says which file cannot be read, without the name of a system call.
func notFile(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("%s: %w", p.Path, p.Err)
	}
	return err
}

// orStdin is a text as given, or what stdin holds when it is "-".
func (a *app) orStdin(s string) (string, error) {
	if s != "-" {
		return s, nil
	}
	b, err := a.source("-")
	return string(b), err
}

// named are the flags that name something: an empty one is a variable of a
// script that was not set, and must not mean "all" or "the default".
var named = []string{"after", "parent", "subtask-of", "card", "node", "token-file", "request-id", "since", "kind", "status", "data", "board", "until", "file", "webhook", "secret-file", "join"}

// emptyFlags refuses flags that name something and are empty.
func emptyFlags(c *cobra.Command) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		if err != nil || !slices.Contains(named, f.Name) {
			return
		}
		list := []string{f.Value.String()}
		if s, ok := f.Value.(pflag.SliceValue); ok {
			if list = s.GetSlice(); len(list) == 0 {
				list = []string{""}
			}
		}
		for _, s := range list {
			if strings.TrimSpace(s) == "" {
				err = usagef("--%s is empty: which one is meant?", f.Name)
			}
		}
	})
	return err
}

// emptyArgs refuses arguments without a text; use is the command's form, whose
// words say what is missing.
func emptyArgs(use string, args []string) error {
	var words []string
	for _, w := range strings.Fields(use)[1:] {
		if strings.HasPrefix(w, "-") {
			break
		}
		w, flag, _ := strings.Cut(w, "|--")
		words = append(words, strings.Trim(w, "[]."))
		if flag != "" {
			break
		}
	}
	skip := max(0, len(words)-len(args)) // a session leaves out the card, which comes first
	for i, s := range args {
		if strings.TrimSpace(s) != "" {
			continue
		}
		word := "an argument"
		if i+skip < len(words) {
			word = words[i+skip]
		}
		if which := strings.ToLower(word); word == "CARD" || word == "RUN" || word == "CARD|RUN" {
			return usagef("which %s? it is empty; use: muster %s", which, use)
		}
		return usagef("%s is empty; use: muster %s", word, use)
	}
	return nil
}
