package api

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"muster/board"
)

// BoardFile reads the lines of a board's file and holds them against its last
// one: a file that is cut off or changed is found before it counts.
type BoardFile struct {
	r    *bufio.Reader
	hash hash.Hash
	n    int
	end  bool
}

// NewBoardFile begins to read a board's file.
func NewBoardFile(r io.Reader) *BoardFile {
	return &BoardFile{r: bufio.NewReaderSize(r, 64<<10), hash: sha256.New()}
}

// Line is the number of the line that Next gave last, from 1.
func (f *BoardFile) Line() int { return f.n }

// Next gives the next line without its end; io.EOF when the file is whole. An
// error says which line is wrong.
func (f *BoardFile) Next() ([]byte, error) {
	var line []byte
	for {
		part, err := f.r.ReadSlice('\n')
		if line = append(line, part...); len(line) > board.MaxImportLine {
			return nil, f.bad(f.n+1, "it is longer than %d bytes", board.MaxImportLine)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil, f.bad(f.n+1, "the file ends before its last line")
			}
			return nil, err
		}
	}
	f.n++
	if bytes.HasPrefix(line, []byte(`{"end":`)) {
		return nil, f.last(line)
	}
	f.hash.Write(line)
	return line[:len(line)-1], nil
}

func (f *BoardFile) last(line []byte) error {
	var e board.ExportEnd
	switch {
	case json.Unmarshal(line, &e) != nil || e.End == nil:
		return f.bad(f.n, "the file's last line cannot be read")
	case e.End.Lines != f.n-1 || e.End.SHA256 != hex.EncodeToString(f.hash.Sum(nil)):
		return f.bad(f.n, "the file has been changed: lines or hash are not those of its last line")
	}
	if _, err := f.r.ReadByte(); !errors.Is(err, io.EOF) {
		return f.bad(f.n+1, "something follows the file's last line")
	}
	f.end = true
	return io.EOF
}

func (f *BoardFile) bad(n int, format string, a ...any) error {
	return board.Errorf(board.Invalid, "line %d: %s", n, fmt.Sprintf(format, a...)).WithCheck("import").WithHint("nothing of it was imported; make a new one with: muster board export BOARD FILE")
}
