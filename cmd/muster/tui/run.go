package tui

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"muster/cmd/muster/api"
)

// Config is how the program reaches its node and its terminal.
type Config struct {
	Client  *api.Client
	Board   string   // slug
	Attach  []string // this program and the flags that name the node; the verb `attach` and a card are added
	NoColor bool
	Env     []string
	In      io.Reader // the terminal
	Out     io.Writer
}

// program is the model as bubbletea drives it.
type program struct {
	m    *model
	wire *wire
}

// Run shows the board until the person leaves it, or ctx ends.
func Run(ctx context.Context, cfg Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	opts := []tea.ProgramOption{tea.WithContext(ctx), tea.WithInput(cfg.In), tea.WithOutput(cfg.Out), tea.WithEnvironment(cfg.Env), tea.WithFPS(30)}
	if cfg.NoColor {
		opts = append(opts, tea.WithColorProfile(colorprofile.Ascii))
	}
	w := &wire{ctx: ctx, cl: cfg.Client, attach: cfg.Attach}
	p := tea.NewProgram(&program{newModel(cfg.Board), w}, opts...)
	w.send = p.Send
	_, err := p.Run()
	if errors.Is(err, tea.ErrInterrupted) || errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return nil
	}
	return err
}

// Init implements tea.Model.
func (p *program) Init() tea.Cmd { return p.all(p.m.begin()) }

// Update implements tea.Model.
func (p *program) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	p.m.now = time.Now()
	switch x := msg.(type) {
	case tea.KeyPressMsg:
		return p, p.all(p.m.update(keyMsg{x.String(), x.Text}))
	case tea.WindowSizeMsg:
		return p, p.all(p.m.update(sizeMsg{x.Width, x.Height}))
	case tea.PasteMsg:
		return p, p.all(p.m.update(pasteMsg(x.Content)))
	}
	return p, p.all(p.m.update(msg))
}

func (p *program) all(asks []ask) tea.Cmd {
	var list []tea.Cmd
	for _, a := range asks {
		if c := p.wire.do(a); c != nil {
			list = append(list, c)
		}
	}
	return tea.Batch(list...)
}

// View implements tea.Model.
func (p *program) View() tea.View {
	rows, x, y := p.m.screen()
	v := tea.NewView(strings.Join(rows, "\n"))
	v.AltScreen, v.WindowTitle = true, "muster "+line(p.m.slug)
	if y >= 0 {
		v.Cursor = tea.NewCursor(x, y)
	}
	return v
}
