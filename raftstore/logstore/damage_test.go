package logstore

import (
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func crcOf(b []byte) uint32 { return crc32.ChecksumIEEE(b) }

// made returns a closed folder with 400 entries (many segments) and a vote.
func made(t *testing.T, kind Kind) string {
	t.Helper()
	dir := t.TempDir()
	l := mustOpen(t, kind, dir, Options{})
	for i := uint64(1); i <= 400; i += 10 {
		mustStore(t, l, i, i+9)
	}
	if err := l.Set([]byte("vote"), []byte("me")); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func segmentsOf(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	if err != nil || len(names) < 3 {
		t.Fatalf("segments: %v, %v", names, err)
	}
	return names
}

func edit(t *testing.T, path string, fn func(b []byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, fn(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

func flip(at int) func([]byte) []byte {
	return func(b []byte) []byte { b[at] ^= 0x40; return b }
}

// Whatever is broken, Open and Check say ErrDamaged, what to do, and do not crash.
func TestDamage(t *testing.T) {
	for _, c := range []struct {
		name   string
		kind   Kind
		damage func(t *testing.T, dir string)
	}{
		{"an old entry", WAL, func(t *testing.T, dir string) { edit(t, segmentsOf(t, dir)[0], flip(5000)) }},
		{"an entry of the tail", WAL, func(t *testing.T, dir string) {
			names := segmentsOf(t, dir)
			edit(t, names[len(names)-1], flip(300))
		}},
		{"a segment's head", WAL, func(t *testing.T, dir string) { edit(t, segmentsOf(t, dir)[1], flip(9)) }},
		{"a segment is gone", WAL, func(t *testing.T, dir string) { os.Remove(segmentsOf(t, dir)[1]) }},
		{"a segment is cut short", WAL, func(t *testing.T, dir string) {
			edit(t, segmentsOf(t, dir)[1], func(b []byte) []byte { return b[:3000] })
		}},
		{"meta file is gone", WAL, func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, walMetaFile)) }},
		{"meta file is empty", WAL, func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, walMetaFile), func([]byte) []byte { return nil })
		}},
		{"meta file is garbage", WAL, func(t *testing.T, dir string) { edit(t, filepath.Join(dir, walMetaFile), scramble) }},
		{"an entry", Bolt, func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, boltFile), func(b []byte) []byte {
				return []byte(strings.ReplaceAll(string(b), "200,200,", "200,201,"))
			})
		}},
		{"file is empty", Bolt, func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, boltFile), func([]byte) []byte { return nil })
		}},
		{"file is garbage", Bolt, func(t *testing.T, dir string) { edit(t, filepath.Join(dir, boltFile), scramble) }},
		{"file is cut short", Bolt, func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, boltFile), func(b []byte) []byte { return b[:20_000] })
		}},
		{"both kinds", Bolt, func(t *testing.T, dir string) {
			os.WriteFile(filepath.Join(dir, walMetaFile), []byte("x"), 0o600)
		}},
	} {
		t.Run(string(c.kind)+"/"+c.name, func(t *testing.T) {
			dir := made(t, c.kind)
			c.damage(t, dir)
			before := listing(t, dir)
			_, err := Check(dir)
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("check: %v, want ErrDamaged", err)
			}
			if after := listing(t, dir); after != before {
				t.Errorf("check has changed the folder:\n%s\n%s", before, after)
			}
			l, err := Open(c.kind, dir, Options{SegmentSize: testSegment})
			if err == nil {
				l.Close()
			}
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), dir) ||
				!strings.Contains(err.Error(), "new store id") {
				t.Errorf("open: %v, want ErrDamaged that says what to do", err)
			}
		})
	}
}

func scramble(b []byte) []byte {
	for i := range b {
		b[i] ^= byte(i*7 + 13)
	}
	return b
}

func TestCheckOfAGoodFolder(t *testing.T) {
	eachKind(t, func(t *testing.T, kind Kind) {
		dir := t.TempDir()
		l := mustOpen(t, kind, dir, Options{})
		mustStore(t, l, 1, 200)
		for _, r := range [][2]uint64{{1, 30}, {171, 200}} {
			if err := l.DeleteRange(r[0], r[1]); err != nil {
				t.Fatal(err)
			}
		}
		mustStore(t, l, 171, 180)
		if err := l.SetUint64([]byte("term"), 3); err != nil {
			t.Fatal(err)
		}
		bytes := l.Bytes()
		l.Close()
		r, err := Check(dir)
		if err != nil {
			t.Fatal(err)
		}
		if r.Kind != kind || r.First != 31 || r.Last != 180 || r.Entries != 150 || r.Bytes != bytes || r.Stable != 1 ||
			len(r.Unfinished) != 0 {
			t.Errorf("report: %+v, want 150 entries, 31 to 180, %d bytes", r, bytes)
		}
	})
}

func TestCheckOfNothing(t *testing.T) {
	dir := t.TempDir()
	if _, err := Check(dir); !errors.Is(err, ErrMissing) {
		t.Errorf("check of an empty folder: %v, want ErrMissing", err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("check made %v", files)
	}
}

// A disk that refuses is not damage: the same store id may go on when the disk is back.
func TestNoPermissionIsNotDamage(t *testing.T) {
	_, err := Open(WAL, filepath.Join(t.TempDir(), "no", "such", "parent"), Options{})
	if err == nil || errors.Is(err, ErrDamaged) {
		t.Errorf("open below a missing folder: %v, want an error that is not ErrDamaged", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o600)
	if _, err := Open(WAL, file, Options{}); err == nil || errors.Is(err, ErrDamaged) {
		t.Errorf("open of a file: %v, want an error that is not ErrDamaged", err)
	}
}
