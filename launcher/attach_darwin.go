package launcher

import "errors"

var (
	errNotTold = errors.New("told to end")
	errNoWatch = errors.New("this version attaches sessions on Linux only")
)

func ownProcess(int) (own, error) { return own{}, errNoWatch }
func foreground(int) (int, error) { return 0, errNoWatch }
func ownProcesses() []own         { return nil }
func (a *Attached) lives() bool   { return false }

func (k *keeper) watch() (*Exit, error) { return nil, errNoWatch }
