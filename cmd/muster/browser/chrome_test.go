package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// window is one page of a browser.
type window struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	faults []string // exceptions, and what the browser refused for the page's policy
}

// chromium is the browser's program; a test that has none is skipped.
func chromium(t *testing.T) string {
	t.Helper()
	if !*run {
		t.Skip("needs -browser: make browser")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			return p
		}
	}
	t.Skip("needs chromium: the page is proved in a real browser")
	return ""
}

// open starts a browser of its own profile.
func open(t *testing.T) *window {
	t.Helper()
	program := chromium(t)
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1600, 900),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("disable-background-networking", true))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	w := &window{t: t}
	ctx, cancel := chromedp.NewContext(alloc, chromedp.WithListener(w.hear))
	t.Cleanup(func() { cancel(); stop() })
	w.ctx = ctx
	if err := chromedp.Do(ctx, send(log.Enable, cdp.Empty{}), send(page.Enable, page.EnableParams{})); err != nil {
		t.Fatalf("chromium: %v", err)
	}
	w.size(1600, 900, "light")
	return w
}

// send is a command of the protocol as an action.
func send[P, R any](c cdp.Command[P, R], p P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, p)
		return err
	})
}

// hear notes what must never happen: an uncaught exception, and anything that the policy stopped.
func (w *window) hear(ev any) {
	said := ""
	switch e := ev.(type) {
	case *runtime.EventExceptionThrown:
		said = e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			said += " " + x.Description
		}
	case *log.EventEntryAdded:
		if text := e.Entry.Text; strings.Contains(text, "Content Security Policy") || strings.Contains(text, "TrustedHTML") {
			said = text
		}
	case *page.EventJavascriptDialogOpening:
		said = "a dialog of script: " + e.Message
	default:
		return
	}
	if said != "" {
		w.mu.Lock()
		w.faults = append(w.faults, said)
		w.mu.Unlock()
	}
}

// clean fails the test when something happened that must not.
func (w *window) clean() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.faults {
		w.t.Errorf("in the page: %s", f)
	}
}

// do runs actions, within a bound that only a defect reaches.
func (w *window) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		w.shot("failed")
		w.t.Fatalf("%s: %v", what, err)
	}
}

// eval is the value of an expression, with promises awaited.
func eval[T any](w *window, expr string) T {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
	defer cancel()
	x, err := chromedp.Run(ctx, chromedp.Evaluate[T](expr, chromedp.EvalAwaitPromise))
	if err != nil {
		w.shot("failed")
		w.t.Fatalf("%s: %v", expr, err)
	}
	return x
}

// until waits for an expression to be true.
func (w *window) until(what, expr string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](expr, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(0))); err != nil {
		w.shot("failed")
		w.t.Fatalf("waiting until %s: %v\n%s", what, err, expr)
	}
}

// key presses one key; text types.
func (w *window) key(k string) {
	w.t.Helper()
	w.do("key "+k, chromedp.KeyEvent(k))
}

// click clicks what a selector finds.
func (w *window) click(selector string) {
	w.t.Helper()
	w.do("click "+selector, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// shot keeps a picture of the window.
func (w *window) shot(name string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, 20*time.Second)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		w.t.Logf("no picture %s: %v", name, err)
		return
	}
	dir := *shots
	if dir == "" {
		dir = filepath.Join(os.TempDir(), "muster-shots")
	}
	file := filepath.Join(dir, strings.ReplaceAll(w.t.Name(), "/", "-")+"-"+name+".png")
	if err := os.MkdirAll(dir, 0o755); err != nil || os.WriteFile(file, png, 0o644) != nil {
		w.t.Logf("picture %s: %v", file, err)
		return
	}
	w.t.Logf("picture: %s", file)
}

// size makes the window another one, with the dark or the light scheme.
func (w *window) size(cols, rows int64, scheme string) {
	w.t.Helper()
	w.do("size", send(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: cols, Height: rows, DeviceScaleFactor: 1, Mobile: cols < 600}),
		send(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}))
}

// visit goes to an address.
func (w *window) visit(url string) {
	w.t.Helper()
	w.do("go to the page", chromedp.Navigate(url))
}

// write puts text into a field, as typing does.
func (w *window) write(selector, text string) {
	w.t.Helper()
	w.do("write into "+selector, chromedp.SetValue(chromedp.CSS(selector), text))
	eval[bool](w, fmt.Sprintf(`document.querySelector(%q).dispatchEvent(new Event('input', {bubbles: true}))`, selector))
}

// card is the selector of a card on the board.
func card(id string) string { return fmt.Sprintf(`a.card[data-id=%q]`, id) }

// in is an expression: the card is in the column.
func in(id, status string) string {
	return fmt.Sprintf(`document.querySelector('.column[data-status=%q] a.card[data-id=%q]') !== null`, status, id)
}
