//go:build linux && (amd64 || arm64)

package powercut

import (
	"context"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
)

// Mount serves the disk at dir, an existing folder, until unmount, which lets syncs return first. Errors: ErrUnavailable.
func (h *Hang) Mount(dir string) (unmount func() error, err error) {
	var st syscall.Stat_t
	if err := syscall.Stat(h.folder, &st); err != nil {
		return nil, err
	}
	root := &fs.LoopbackRoot{Path: h.folder, Dev: uint64(st.Dev)}
	root.RootNode = &hangNode{&fs.LoopbackNode{RootData: root}, h}
	detach, err := mount(dir, fs.NewNodeFS(root.RootNode, &fs.Options{}))
	if err != nil {
		return nil, err
	}
	return func() error { h.Go(); return detach() }, nil
}

type hangNode struct {
	*fs.LoopbackNode
	h *Hang
}

// WrapChild implements fs.NodeWrapChilder: what is in a folder hangs as the folder does.
func (n *hangNode) WrapChild(_ context.Context, child fs.InodeEmbedder) fs.InodeEmbedder {
	return &hangNode{child.(*fs.LoopbackNode), n.h}
}

// Fsync implements fs.NodeFsyncer, for files and folders.
func (n *hangNode) Fsync(ctx context.Context, f fs.FileHandle, flags uint32) syscall.Errno {
	n.h.wait()
	if s, ok := f.(fs.FileFsyncer); ok {
		return s.Fsync(ctx, flags)
	}
	return 0
}

var (
	_ fs.NodeFsyncer     = (*hangNode)(nil)
	_ fs.NodeWrapChilder = (*hangNode)(nil)
)
