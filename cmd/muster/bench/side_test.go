package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestMachineCalibrationMeasuresEachPart(t *testing.T) {
	dir := t.TempDir()
	c, err := MachineCalibration(dir)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c.Fdatasync <= 0 || c.ForkExec <= 0 || c.Spin <= 0 {
		t.Errorf("a part was not measured: %+v", c)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := MachineCalibration(dir)(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := MachineCalibration(dir + "/none")(t.Context()); err == nil {
		t.Error("a folder that is not there was synced")
	}
}

func TestPrimitiveSidesMeasure(t *testing.T) {
	dir := t.TempDir()
	for _, s := range []Side{Fdatasync(dir), ForkExec(), FirstWord(), LoopbackRTT(), SyncAndRTT(dir)} {
		t.Run(s.Name, func(t *testing.T) {
			sample, err := s.Run(t.Context(), 20*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			if sample.Value <= 0 || sample.Latency == nil || sample.Latency.N < 1 {
				t.Errorf("measured nothing: %+v", sample)
			}
		})
	}
	if _, err := FirstWord("true").Run(t.Context(), time.Millisecond); err == nil || !strings.Contains(err.Error(), "wrote nothing") {
		t.Errorf("a silent program: %v", err)
	}
}

func TestSyncFileDoesNotFillTheDisk(t *testing.T) {
	f, err := newSyncFile(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	f.size = syncLimit
	if err := f.appendAndSync(); err != nil {
		t.Fatal(err)
	}
	if info, err := f.f.Stat(); err != nil || info.Size() != syncBlock {
		t.Errorf("size %v, %v; want one block", info, err)
	}
}

// In a bubble time is exact: 3 clients with operations of 10 ms do 10 each in
// 100 ms, and an operation under way at the end is finished and counted.
func TestClosedLoopCounts(t *testing.T) {
	for _, c := range []struct {
		op   time.Duration
		ops  int64
		took time.Duration
	}{{10 * time.Millisecond, 30, 100 * time.Millisecond}, {30 * time.Millisecond, 12, 120 * time.Millisecond}, {time.Second, 3, time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			seen := make([]int, 3)
			l, err := ClosedLoop(t.Context(), 100*time.Millisecond, 3, func(_ context.Context, client, n int) error {
				if seen[client] != n {
					t.Errorf("client %d was told %d, did %d", client, n, seen[client])
				}
				seen[client]++
				time.Sleep(c.op)
				return nil
			})
			if err != nil || l.Ops != c.ops || l.Took != c.took || l.Latency.P50 != c.op || l.Latency.N != int(c.ops) {
				t.Errorf("ops of %s: %+v, %v; want %d in %s", c.op, l, err, c.ops, c.took)
			}
		})
	}
}

func TestClosedLoopEndsWithTheFirstError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("refused")
		from := time.Now()
		_, err := ClosedLoop(t.Context(), time.Hour, 4, func(ctx context.Context, client, n int) error {
			if client == 2 && n == 1 {
				return broken
			}
			time.Sleep(time.Second)
			return ctx.Err()
		})
		if !errors.Is(err, broken) || time.Since(from) > 3*time.Second {
			t.Errorf("%v after %s", err, time.Since(from))
		}
	})
	once, err := ClosedLoop(t.Context(), 0, 2, func(context.Context, int, int) error { return nil })
	if err != nil || once.Ops != 2 {
		t.Errorf("a window of nothing: %+v, %v; want one operation a client", once, err)
	}
	if _, err := ClosedLoop(t.Context(), time.Second, 0, nil); err == nil {
		t.Error("a loop without clients")
	}
}

// grpcServer is a gRPC server made of net/http alone: another reading of the
// protocol than the client's, and one that does not know its code.
func grpcServer(t *testing.T, answer func(path string, message []byte) (body []byte, status string)) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		framed, err := io.ReadAll(r.Body)
		if err != nil || len(framed) < 5 || int(binary.BigEndian.Uint32(framed[1:])) != len(framed)-5 {
			t.Errorf("the server read %q, %v", framed, err)
			return
		}
		if r.ProtoMajor != 2 || r.Header.Get("Content-Type") != "application/grpc" || r.Header.Get("Te") != "trailers" {
			t.Errorf("a request gRPC would refuse: %s %v", r.Proto, r.Header)
		}
		body, status := answer(r.URL.Path, framed[5:])
		w.Header().Set("Trailer", "Grpc-Status")
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...))
		w.Header().Set("Grpc-Status", status)
	}))
	s.Config.Protocols = &http.Protocols{}
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func dialTest(t *testing.T, addr string) *grpcConn {
	t.Helper()
	c, err := dialGRPC(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// Many callers share a connection; each gets its own answer, and more bytes go
// each way than a fresh connection's window of 64 KiB holds.
func TestGRPCCallsShareAConnection(t *testing.T) {
	addr := grpcServer(t, func(path string, m []byte) ([]byte, string) { return append([]byte(path+" "), m...), "0" })
	c := dialTest(t, addr)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var wait sync.WaitGroup
	for caller := range 16 {
		wait.Go(func() {
			for n := range 40 {
				message := bytes.Repeat([]byte{byte('a' + caller)}, 1000+n)
				got, err := c.call(ctx, "/s/M", message)
				if err != nil || string(got) != "/s/M "+string(message) {
					t.Errorf("caller %d: %.20q, %v", caller, got, err)
					return
				}
			}
		})
	}
	wait.Wait()
}

func TestGRPCFailsHonestly(t *testing.T) {
	addr := grpcServer(t, func(string, []byte) ([]byte, string) { return []byte("x"), "14" })
	c := dialTest(t, addr)
	if _, err := c.call(t.Context(), "/s/M", []byte("m")); err == nil || !strings.Contains(err.Error(), "grpc-status 14") {
		t.Errorf("status 14: %v", err)
	}
	if _, err := c.call(t.Context(), "/s/M", make([]byte, streamWindow)); err == nil {
		t.Error("a message larger than a window was sent")
	}
	c.close()
	if _, err := c.call(t.Context(), "/s/M", []byte("m")); !errors.Is(err, errGRPCClosed) {
		t.Errorf("closed: %v", err)
	}

	// A peer that goes away in the middle of a call: the caller hears of it.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if conn, err := l.Accept(); err == nil {
			_, _ = conn.Read(make([]byte, 10))
			_ = conn.Close()
		}
	}()
	gone := dialTest(t, l.Addr().String())
	if _, err := gone.call(t.Context(), "/s/M", []byte("m")); err == nil {
		t.Error("an answer from nobody")
	}
}

func TestPutRequest(t *testing.T) {
	if got, want := fmt.Sprintf("%x", putRequest("k", []byte("vw"))), "0a016b12027677"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := putRequest("k", make([]byte, 300)); len(got) != 3+3+300 || got[4] != 0xac || got[5] != 0x02 {
		t.Errorf("a long value: %x", got[:8])
	}
}

func TestMetric(t *testing.T) {
	text := "# TYPE a counter\na_count_x 1\na_count 42\n"
	if v, err := metric(text, "a_count"); err != nil || v != 42 {
		t.Errorf("%v, %v", v, err)
	}
	if _, err := metric(text, "b"); err == nil {
		t.Error("found what is not there")
	}
}

// The baseline itself, where the machine has it.
func TestEtcdSides(t *testing.T) {
	if _, err := exec.LookPath("etcd"); err != nil {
		t.Skip("needs etcd: starts the three members that benches are compared with")
	}
	e, err := StartEtcd(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, s := range []Side{e.Ack(256), e.Puts(16, 256, 0)} {
		sample, err := s.Run(t.Context(), 200*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if sample.Value <= 0 || sample.Counters["log syncs a member per 1,000"] <= 0 {
			t.Errorf("%s: %+v", s.Name, sample)
		}
	}
}

func TestEtcdThatIsMissingIsSaid(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := StartEtcd(t.Context(), t.TempDir())
	var missing *Missing
	if !errors.As(err, &missing) || missing.What != "etcd" {
		t.Errorf("got %v", err)
	}
}
