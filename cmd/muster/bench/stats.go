package bench

import (
	"math"
	"slices"
	"time"
)

// quantile returns the q-quantile (0..1) of the values, interpolated between
// neighbours; NaN when there are none. It does not change values.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	low := int(math.Floor(at))
	high := int(math.Ceil(at))
	return sorted[low] + (sorted[high]-sorted[low])*(at-float64(low))
}

// incomparable is farther apart than any drift; JSON has no infinity.
const incomparable = 1e9

func median(values []float64) float64 { return quantile(values, 0.5) }

// apart says how many times one value is the other, the larger over the
// smaller: 1 for equals. What is not positive is incomparable.
func apart(a, b float64) float64 {
	if !(a > 0) || !(b > 0) {
		return incomparable
	}
	return max(a, b) / min(a, b)
}

// Latency sums up the durations of many operations.
type Latency struct {
	N   int           `json:"n"`
	P50 time.Duration `json:"p50_ns"`
	P99 time.Duration `json:"p99_ns"`
	Max time.Duration `json:"max_ns"`
}

// LatencyOf sums up durations; it sorts them in place. Nearest rank: p50 and
// p99 are durations that were measured.
func LatencyOf(durations []time.Duration) Latency {
	n := len(durations)
	if n == 0 {
		return Latency{}
	}
	slices.Sort(durations)
	rank := func(q float64) time.Duration { return durations[max(0, int(math.Ceil(q*float64(n)))-1)] }
	return Latency{N: n, P50: rank(0.50), P99: rank(0.99), Max: durations[n-1]}
}

// Milliseconds gives a duration as the unit most values here have.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
