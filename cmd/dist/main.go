package main

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// systems are what is built for.
var systems = [][2]string{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

func run(args []string, out io.Writer) error {
	f := flag.NewFlagSet("dist", flag.ContinueOnError)
	version := f.String("version", "", "of what is built, as v1.2.3 (default: git describe)")
	to := f.String("out", "dist", "folder that is filled")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *version == "" {
		*version = said("git", "describe", "--tags", "--always", "--dirty")
	}
	if *version == "" {
		return fmt.Errorf("which version? give -version")
	}
	at, err := stamp()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(*to, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "muster-dist-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	docs, err := documents(work, *version)
	if err != nil {
		return err
	}
	sums := map[string]string{}
	for _, s := range systems {
		fmt.Fprintf(out, "%s/%s\n", s[0], s[1])
		binary := filepath.Join(work, s[0]+"-"+s[1])
		if err := build(binary, *version, s[0], s[1]); err != nil {
			return err
		}
		program, err := os.ReadFile(binary)
		if err != nil {
			return err
		}
		p := pack{version: *version, arch: s[1], program: program, docs: docs, at: at}
		made := map[string]func(io.Writer) error{fmt.Sprintf("muster-%s-%s-%s.tar.gz", strings.TrimPrefix(*version, "v"), s[0], s[1]): p.tarball}
		if s[0] == "linux" {
			made[fmt.Sprintf("muster_%s_%s.deb", debVersion(*version), s[1])] = p.deb
		}
		for name, write := range made {
			if sums[name], err = file(filepath.Join(*to, name), write); err != nil {
				return err
			}
		}
	}
	var list strings.Builder
	names := []string{}
	for name := range sums {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&list, "%s  %s\n", sums[name], name)
	}
	fmt.Fprint(out, list.String())
	return os.WriteFile(filepath.Join(*to, "SHA256SUMS"), []byte(list.String()), 0o644)
}

// said is what a program prints, "" when it fails.
func said(name string, args ...string) string {
	b, err := exec.Command(name, args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// stamp is the time that everything in the archives bears.
func stamp() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		text = said("git", "log", "-1", "--format=%ct")
	}
	if text == "" {
		return time.Unix(0, 0), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH=%q is no number of seconds", text)
	}
	return time.Unix(n, 0).UTC(), nil
}

func build(to, version, system, arch string) error {
	c := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version="+version, "-o", to, "./cmd/muster")
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch)
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("build %s/%s: %w", system, arch, err)
	}
	return nil
}

// documents are the files beside the program: name in the archive to content.
func documents(work, version string) (map[string][]byte, error) {
	here := filepath.Join(work, "here")
	if err := build(here, version, runtime.GOOS, runtime.GOARCH); err != nil {
		return nil, err
	}
	made := filepath.Join(work, "docs")
	c := exec.Command(here, "docs", made)
	c.Stderr = os.Stderr
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("man pages: %w", err)
	}
	all := map[string][]byte{}
	for _, from := range []string{"README.md", "CHANGELOG.md", "LICENSE"} {
		b, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		all[from] = b
	}
	for _, dir := range []string{"man", "completion"} {
		list, err := os.ReadDir(filepath.Join(made, dir))
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			if all[dir+"/"+e.Name()], err = os.ReadFile(filepath.Join(made, dir, e.Name())); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// file writes one archive, whole or not at all, and gives its checksum.
func file(path string, write func(io.Writer) error) (string, error) {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return "", fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, b.Bytes(), 0o644); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sha256.Sum256(b.Bytes())), os.Rename(tmp, path)
}
