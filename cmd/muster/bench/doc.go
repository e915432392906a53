// Package bench compares two sides in paired windows and says how sure it is.
//
// Every benchmark of the repository goes through Pair: two sides take turns in
// ABBA order on one machine, one disk and one run, each window stands between
// two calibrations, and the result is the ratio of the medians with the middle
// 50 % of the windows' ratios. A window between calibrations that differ by
// 1.5x or more is measured again, three times at most; after that the answer
// is "no verdict", never a number that looks like one. Counters stand beside
// the ratios, because they do not depend on the mood of the host.
//
// Guarantees: what is printed was measured in this run; a baseline that is not
// there (no etcd, say) is named as missing and nothing takes its place.
//
// Concurrency: Pair runs its sides one after the other in the caller's
// goroutine; a side may start what it likes in its window and has ended it all
// when it returns. Nothing is shared between benches.
package bench
