package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// pack is what goes into one archive.
type pack struct {
	version, arch string
	program       []byte
	docs          map[string][]byte // README.md, man/muster.1, completion/muster.bash...
	at            time.Time
}

// entry is one file of an archive.
type entry struct {
	name string
	mode int64
	data []byte
}

// writeTar writes files, with the folders above them, owned by root.
func (p pack) writeTar(w io.Writer, prefix string, list []entry) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	made := map[string]bool{}
	for _, e := range list {
		for _, dir := range above(prefix + e.name) {
			if made[dir] {
				continue
			}
			made[dir] = true
			if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: p.at, Format: tar.FormatUSTAR, Uname: "root", Gname: "root"}); err != nil {
				return err
			}
		}
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: prefix + e.name, Mode: e.mode, Size: int64(len(e.data)), ModTime: p.at, Format: tar.FormatUSTAR, Uname: "root", Gname: "root"}); err != nil {
			return err
		}
		if _, err := t.Write(e.data); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}

// above are the folders that a file stands in, outermost first.
func above(name string) (list []string) {
	for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
		list = append(list, dir)
	}
	slices.Reverse(list)
	return list
}

// tarball is the archive that one unpacks anywhere.
func (p pack) tarball(w io.Writer) error {
	list := []entry{{"muster", 0o755, p.program}}
	for _, name := range slices.Sorted(maps.Keys(p.docs)) {
		list = append(list, entry{name, 0o644, p.docs[name]})
	}
	return p.writeTar(w, "muster-"+strings.TrimPrefix(p.version, "v")+"/", list)
}

// installed are the files of a Debian package, where Debian has them.
func (p pack) installed() ([]entry, error) {
	list := []entry{{"usr/bin/muster", 0o755, p.program}}
	for _, name := range slices.Sorted(maps.Keys(p.docs)) {
		data, base := p.docs[name], path.Base(name)
		switch {
		case strings.HasPrefix(name, "man/"):
			packed, err := p.gzipped(data)
			if err != nil {
				return nil, err
			}
			list = append(list, entry{"usr/share/man/man1/" + base + ".gz", 0o644, packed})
		case name == "completion/muster.bash":
			list = append(list, entry{"usr/share/bash-completion/completions/muster", 0o644, data})
		case name == "completion/_muster":
			list = append(list, entry{"usr/share/zsh/vendor-completions/_muster", 0o644, data})
		case name == "completion/muster.fish":
			list = append(list, entry{"usr/share/fish/vendor_completions.d/muster.fish", 0o644, data})
		case name == "LICENSE":
			list = append(list, entry{"usr/share/doc/muster/copyright", 0o644, data})
		default:
			list = append(list, entry{"usr/share/doc/muster/" + base, 0o644, data})
		}
	}
	return list, nil
}

func (p pack) gzipped(data []byte) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}

// debVersion is a version as Debian orders them: it begins with a digit.
func debVersion(v string) string {
	v = strings.TrimPrefix(v, "v")
	if v == "" || v[0] < '0' || v[0] > '9' {
		v = "0~" + v
	}
	return strings.ReplaceAll(v, "-", "~")
}

// deb is a package for Debian: an ar archive of three members.
func (p pack) deb(w io.Writer) error {
	files, err := p.installed()
	if err != nil {
		return err
	}
	var sums strings.Builder
	size := 0
	for _, f := range files {
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(f.data), f.name)
		size += len(f.data)
	}
	about := fmt.Sprintf(`Package: muster
Version: %s
Architecture: %s
Maintainer: muster <muster@localhost>
Section: utils
Priority: optional
Installed-Size: %d
Recommends: tmux (>= 3.2), git
Description: a board of work for a fleet of equal machines
 You file cards; the fleet starts a session for each where there is room, and
 the board says at any moment what waits for what. Every node holds every
 board, and any machine may die.
 .
 A node is yours and runs as you: muster up, then muster service install.
`, debVersion(p.version), p.arch, (size+1023)/1024)
	var control, data bytes.Buffer
	if err := p.writeTar(&control, "./", []entry{{"control", 0o644, []byte(about)}, {"md5sums", 0o644, []byte(sums.String())}}); err != nil {
		return err
	}
	if err := p.writeTar(&data, "./", files); err != nil {
		return err
	}
	if _, err := io.WriteString(w, "!<arch>\n"); err != nil {
		return err
	}
	for _, m := range []entry{{"debian-binary", 0o100644, []byte("2.0\n")}, {"control.tar.gz", 0o100644, control.Bytes()}, {"data.tar.gz", 0o100644, data.Bytes()}} {
		if _, err := fmt.Fprintf(w, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", m.name, p.at.Unix(), 0, 0, m.mode, len(m.data)); err != nil {
			return err
		}
		if len(m.data)%2 == 1 {
			m.data = append(m.data, '\n')
		}
		if _, err := w.Write(m.data); err != nil {
			return err
		}
	}
	return nil
}
