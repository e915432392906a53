package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"
)

// exitClosed is what a shell sees of a program that wrote into a pipe nobody reads (128 + SIGPIPE).
const exitClosed = 128 + 13

// endWithReader ends a command that follows as soon as nobody reads its output any more: it would
// notice at its next line only, which may be tomorrow's.
func (a *app) endWithReader(c *cobra.Command) {
	if follows(c) {
		ctx, cancel := context.WithCancel(c.Context())
		c.SetContext(ctx)
		a.out.whenFailed(cancel)
	}
	out, ok := a.out.w.(*os.File)
	if !ok || !follows(c) {
		return
	}
	if st, err := out.Stat(); err != nil || st.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return
	}
	go func() {
		if waitClosed(int(out.Fd())) {
			os.Exit(exitClosed)
		}
	}()
}

// follows tells whether a call goes on until somebody ends it.
func follows(c *cobra.Command) bool {
	for _, name := range []string{"follow", "watch"} {
		if f := c.Flags().Lookup(name); f != nil && f.Value.String() == "true" {
			return true
		}
	}
	return false
}
