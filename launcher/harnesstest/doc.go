// Package harnesstest brings real agent programs to tests: which versions, from
// where, and which of their flags the presets use.
//
// The programs are npm packages, pinned in testdata/pins.json and installed once
// into a folder outside the repository ("make harness-install"). A test asks for
// one with Program, which skips where it is not installed: no test installs
// anything by itself. testdata/flags holds the options that each pinned program
// showed in its help, so that another version can be held against it.
package harnesstest
