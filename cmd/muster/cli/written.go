package cli

import (
	"io"
	"sync"
)

// output is where a command's words go. It remembers that they could not be written: a script that reads a file cut
// off by a full disk would take it for the whole.
type output struct {
	w io.Writer

	mu     sync.Mutex
	failed error  // of the first write that failed; nothing is written after it
	stop   func() // ends a command that follows
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed != nil {
		return 0, o.failed
	}
	n, err := o.w.Write(b)
	if err != nil {
		o.failed = err
		if o.stop != nil {
			o.stop()
		}
	}
	return n, err
}

// failure is why the output is not whole, nil when it is.
func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}

// whenFailed has a command end that would go on for nobody.
func (o *output) whenFailed(stop func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stop = stop
}
