package mesh

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base32"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// NodeID names a node: the first 20 bytes of the SHA-256 of its Ed25519 public
// key, as 32 lower-case base32 characters.
type NodeID string

const idBytes = 20

var idEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// IDOfKey is the node id of a public key.
func IDOfKey(key ed25519.PublicKey) NodeID {
	sum := sha256.Sum256(key)
	return NodeID(idEncoding.EncodeToString(sum[:idBytes]))
}

// ParseNodeID checks the form of a node id.
func ParseNodeID(s string) (NodeID, error) {
	raw, err := idEncoding.DecodeString(s)
	if err != nil || len(raw) != idBytes || len(s) != idEncoding.EncodedLen(idBytes) {
		return "", fmt.Errorf("node id %q: want 32 characters of a-z and 2-7", s)
	}
	return NodeID(s), nil
}

// virtualIP is the address gossip knows a node by. It is made of the id, so that
// a node that moves is never a conflict of addresses; the transport looks up
// where the node really is.
func (id NodeID) virtualIP() (netip.Addr, bool) {
	raw, err := idEncoding.DecodeString(string(id))
	if err != nil || len(raw) != idBytes {
		return netip.Addr{}, false
	}
	ip := [16]byte{0: 0xfd}
	copy(ip[1:], raw)
	return netip.AddrFrom16(ip), true
}

// Identity is a node's key and what is made of it.
type Identity struct {
	ID   NodeID
	key  ed25519.PrivateKey
	cert tls.Certificate
}

// keyFile is the name of the key inside the data folder.
const keyFile = "node.key"

// machineHeader binds a key file to the machine it was made on (invariant 15).
const machineHeader = "Machine"

// PublicKey is the key whose hash is the id.
func (id *Identity) PublicKey() ed25519.PublicKey { return id.key.Public().(ed25519.PublicKey) }

// LoadOrCreateIdentity reads dir/node.key or makes it (0600, written to a
// temporary file, synced and renamed). It refuses a key that others can read,
// that belongs to another user, that is no plain file, that is damaged, or that
// was copied from another machine.
func LoadOrCreateIdentity(dir string) (*Identity, error) {
	return loadOrCreate(dir, machineID())
}

// LoadIdentity reads dir/node.key and changes nothing; a copy on another machine
// is read as well. fs.ErrNotExist: there is none.
func LoadIdentity(dir string) (*Identity, error) { return loadKey(filepath.Join(dir, keyFile), "") }

func loadOrCreate(dir, machine string) (*Identity, error) {
	path := filepath.Join(dir, keyFile)
	id, err := loadKey(path, machine)
	if !errors.Is(err, fs.ErrNotExist) {
		return id, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("node key: %w", err)
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("node key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("node key: %w", err)
	}
	block := &pem.Block{Type: "PRIVATE KEY", Bytes: der}
	if machine != "" {
		block.Headers = map[string]string{machineHeader: machine}
	}
	if err := writeFileSynced(path, pem.EncodeToMemory(block)); err != nil {
		return nil, fmt.Errorf("node key: %w", err)
	}
	return newIdentity(key)
}

func loadKey(path, machine string) (*Identity, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		if errors.Is(err, syscall.ELOOP) {
			return nil, fmt.Errorf("node key %s is a symbolic link; put the key itself there", path)
		}
		return nil, fmt.Errorf("node key: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("node key: %w", err)
	}
	if err := checkKeyFile(path, info); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, 16<<10))
	if err != nil {
		return nil, fmt.Errorf("node key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, fmt.Errorf("node key %s is damaged: no PRIVATE KEY block in it; restore the file, or move it away to start as a new node", path)
	}
	if was := block.Headers[machineHeader]; was != "" && machine != "" && was != machine {
		return nil, fmt.Errorf("node key %s was made on another machine: two machines must not be one node; "+
			"move the folder away to start as a new node, or, if the other machine no longer runs it, delete the line %q of that file",
			path, machineHeader+": "+was)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, fmt.Errorf("node key %s is damaged: it holds no Ed25519 key; restore the file, or move it away to start as a new node", path)
	}
	return newIdentity(key)
}

// checkKeyFile refuses a key that somebody else may read or have put there.
func checkKeyFile(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("node key %s is no plain file", path)
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return fmt.Errorf("node key %s can be read by other users (mode %04o); if nobody took it: chmod 600 %s", path, perm, path)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("node key %s belongs to user %d, and this is user %d; run as that user, or chown the folder", path, st.Uid, os.Geteuid())
	}
	return nil
}

func newIdentity(key ed25519.PrivateKey) (*Identity, error) {
	pub, _ := key.Public().(ed25519.PublicKey)
	id := IDOfKey(pub)
	// The certificate only carries the key. It says nothing that anybody checks
	// and, as there is nothing to renew, it does not expire.
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: string(id)},
		NotBefore:    time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:     time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, pub, key)
	if err != nil {
		return nil, fmt.Errorf("node certificate: %w", err)
	}
	return &Identity{
		ID:   id,
		key:  key,
		cert: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
	}, nil
}

// machineID is a hash of the machine's id, or "" where there is none to read:
// then a copied folder is only found by its generation.
func machineID() string {
	if runtime.GOOS != "linux" {
		return ""
	}
	text, err := os.ReadFile("/etc/machine-id")
	if err != nil || len(strings.TrimSpace(string(text))) < 16 {
		return ""
	}
	sum := sha256.Sum256([]byte("muster machine\n" + strings.TrimSpace(string(text))))
	return hex.EncodeToString(sum[:8])
}

// writeFileSynced replaces a file (mode 0600) so that a crash leaves the old or
// the new content, whole.
func writeFileSynced(path string, data []byte) (err error) {
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name())
		}
	}()
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Sync()
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
