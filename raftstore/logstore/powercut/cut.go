package powercut

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// Lost says what a cut has taken.
type Lost struct {
	Pages int // pages of which the newest version is gone
	Torn  int // pages that are a mix of two versions
	Sizes int // files that have an older size
	Names int // creates, renames, unlinks undone
}

// None tells that everything was synced at the moment of the cut, or survived by chance.
func (l Lost) None() bool { return l == Lost{} }

func (l Lost) String() string {
	return fmt.Sprintf("%d pages, %d torn, %d sizes, %d names", l.Pages, l.Torn, l.Sizes, l.Names)
}

// Cut takes the power away: every later call on the disk fails, and what a disk could hold then is written to dir, a
// new folder. What survives of what was not synced is chosen by rng: nothing, everything but one page, or any part.
func (d *Disk) Cut(rng *rand.Rand, dir string) (Lost, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stop()
	c := cut{disk: d, rng: rng, keep: []float64{0, 0, 0.3, 0.7, 0.95}[rng.IntN(5)], names: map[uint64]map[string]uint64{}}
	c.chooseNames()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return c.lost, err
	}
	return c.lost, c.write(rootIno, dir)
}

type cut struct {
	disk  *Disk
	rng   *rand.Rand
	keep  float64 // the chance of what is not synced
	names map[uint64]map[string]uint64
	lost  Lost
}

func (c *cut) kept() bool { return c.rng.Float64() < c.keep }

// chooseNames lets a prefix of the changes survive, and in every fourth cut any of them.
func (c *cut) chooseNames() {
	for _, ino := range slices.Sorted(maps.Keys(c.disk.inodes)) {
		if n := c.disk.inodes[ino]; n.dir {
			c.names[ino] = maps.Clone(n.durable)
		}
	}
	anyOrder := c.rng.IntN(4) == 0
	for i, change := range c.disk.loose {
		if !c.kept() {
			if !anyOrder {
				c.lost.Names += len(c.disk.loose) - i
				return
			}
			c.lost.Names++
			continue
		}
		for _, e := range change {
			set(c.names[e.dir], e)
		}
	}
}

func (c *cut) write(ino uint64, dir string) error {
	names := c.names[ino]
	for _, name := range slices.Sorted(maps.Keys(names)) {
		n, path := c.disk.inodes[names[name]], filepath.Join(dir, name)
		if n.dir {
			if err := os.Mkdir(path, os.FileMode(n.mode)); err != nil {
				return err
			}
			if err := c.write(names[name], path); err != nil {
				return err
			}
			continue
		}
		if err := c.writeFile(n, path); err != nil {
			return err
		}
	}
	return nil
}

func (c *cut) writeFile(n *inode, path string) error {
	size := n.durableSize
	if len(n.looseSizes) > 0 {
		if c.kept() {
			size = n.looseSizes[c.rng.IntN(len(n.looseSizes))]
		}
		if size != n.size {
			c.lost.Sizes++
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, os.FileMode(n.mode))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		return err
	}
	pages := maps.Clone(n.durablePages)
	for _, at := range slices.Sorted(maps.Keys(n.loosePages)) {
		pages[at] = c.choose(n.durablePages[at], n.loosePages[at])
	}
	for _, at := range slices.Sorted(maps.Keys(pages)) {
		if page := pages[at]; page != nil && at*pageSize < size {
			if _, err := f.WriteAt(page[:min(pageSize, size-at*pageSize)], at*pageSize); err != nil {
				return err
			}
		}
	}
	return f.Close()
}

// choose picks what is on the disk of a page: the newest version, an older one, or sectors of two.
func (c *cut) choose(durable []byte, loose [][]byte) []byte {
	all := append([][]byte{durable}, loose...)
	newest := len(all) - 1
	pick := 0
	if c.kept() {
		pick = newest
		if c.rng.IntN(4) == 0 {
			pick = c.rng.IntN(len(all))
		}
	}
	if c.keep > 0 && c.rng.IntN(8) == 0 {
		c.lost.Torn++
		a, b := all[pick], all[c.rng.IntN(len(all))]
		mix := make([]byte, pageSize)
		copy(mix, a)
		for at := 0; at < pageSize; at += sectorSize {
			if c.rng.IntN(2) == 0 {
				clear(mix[at : at+sectorSize])
				if b != nil {
					copy(mix[at:at+sectorSize], b[at:])
				}
			}
		}
		return mix
	}
	if pick != newest {
		c.lost.Pages++
	}
	return all[pick]
}
